"""Two commands at once about the same session or the same name: one wins, the other says why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app import records
from app.agents import shell
from app.client.connection import new_host_key
from app.client.launch import take_lock
from app.errors import AppError
from app.files import write_atomic
from app.locking import locked
from app.paths import Paths, private_folder
from app.records import SessionRecord, StateRecord, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator

LAUNCHER = Path(__file__).resolve().parents[2] / "cloche.py"
COMMAND_S = 120


class Home:
    """A user's folders with stopped sessions in them, and real commands."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {"HOME": str(root), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        for name in ("STATE_HOME", "DATA_HOME", "CONFIG_HOME", "CACHE_HOME", "RUNTIME_DIR"):
            self.environment[f"XDG_{name}"] = str(root / name[0])
        (root / "R").mkdir(mode=0o700)
        self.paths = Paths(*(root / name / "cloche" for name in "SDCCR"))
        private_folder(self.paths.state)

    def stopped(self, session: str) -> Path:
        folder = private_folder(self.paths.sessions) / session
        folder.mkdir(mode=0o700)
        public, key = new_host_key()
        write_atomic(folder / "control_key", key)
        record = SessionRecord(session, session, shell(), str(self.root), 0.0, "none", public)
        write_record(folder / "session.json", record)
        write_record(folder / "state.json", StateRecord(state="stopped"))
        return folder

    def begin(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-P", str(LAUNCHER), *words, "--json"]
        return subprocess.Popen(
            command, env=self.environment, cwd="/", stdout=subprocess.PIPE, text=True
        )

    def at_once(self, *commands: tuple[str, ...]) -> list[tuple[int, str]]:
        """Run commands at the same time; the status of each and the code of its error."""
        running = [self.begin(*words) for words in commands]
        said = [one.communicate(timeout=COMMAND_S)[0] for one in running]
        codes = [json.loads(text).get("error", {}).get("code", "") for text in said]
        return list(zip((one.returncode for one in running), codes, strict=True))

    def keepers(self) -> list[str]:
        found: list[str] = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [entry.name for word in words if os.fsencode(self.paths.sessions) in word]
        return found


@pytest.fixture
def home() -> Iterator[Home]:
    with tempfile.TemporaryDirectory(prefix="cr-") as folder:  # sockets have short addresses
        made = Home(Path(folder))
        yield made
        until = time.monotonic() + COMMAND_S
        while made.keepers():  # they leave by themselves when nobody needs them
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_name_is_given_to_one_session_only(home: Home) -> None:
    first, second = "0000000001", "0000000002"
    for session in (first, second):
        home.stopped(session)
    with locked(home.paths.state / "names.lock"):
        running = [home.begin("rename", session, "same") for session in (first, second)]
        with pytest.raises(subprocess.TimeoutExpired):
            running[0].wait(2)  # it asks for the name only when nobody else does
    statuses = sorted(one.wait(COMMAND_S) for one in running)
    for one in running:
        assert one.stdout is not None
        one.stdout.close()
    assert statuses == [0, 2]
    names = [info.name for info in records.all_sessions(home.paths)]
    assert names.count("same") == 1


ALLOWED = {"", "not-found", "busy", "keeper-lost", "image-missing", "host-lacks", "failed"}


@pytest.mark.parametrize("other", ["rm", "resume", "rename", "changes"])
def test_a_session_that_is_removed_is_gone_whatever_else_is_asked_of_it(
    home: Home, other: str
) -> None:
    for number in range(2):
        session = f"000000001{number}"
        folder = home.stopped(session)
        more = ("new",) if other == "rename" else ()
        removed, answer = home.at_once(("rm", session), (other, session, *more))
        assert {removed[1], answer[1]} <= ALLOWED
        if folder.exists():  # the other one was quicker and used it
            assert removed[0] != 0
            assert home.at_once(("rm", "--force", session))[0][0] == 0
        assert sorted(os.listdir(home.paths.sessions)) == []
        runtime = home.paths.runtime
        left = [one for one in runtime.iterdir() if one.is_dir()] if runtime.exists() else []
        assert left == []


def test_a_lock_of_a_session_that_went_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "0000000001"
    folder.mkdir()
    lock = take_lock(folder)
    assert lock is not None
    os.rename(folder, tmp_path / "away")
    with pytest.raises(AppError) as caught:
        take_lock(folder)
    assert caught.value.code == "not-found"
    os.close(lock)
