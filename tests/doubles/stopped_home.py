"""A user's folders with stopped sessions in them, whose keepers and commands are real."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from app.agents import shell
from app.client.connection import new_host_key
from app.files import write_atomic
from app.paths import Paths, private_folder
from app.records import SessionRecord, StateRecord, write_record

if TYPE_CHECKING:
    from collections.abc import Generator

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

    def stopped(self, session: str, workspace: Path | None = None) -> Path:
        """Make a session's folder; of one with a workspace the caller takes the snapshot."""
        folder = private_folder(self.paths.sessions) / session
        folder.mkdir(mode=0o700)
        public, key = new_host_key()
        write_atomic(folder / "control_key", key)
        place = str(workspace or self.root)
        record = SessionRecord(session, session, shell(), place, 0.0, "none", public)
        write_record(folder / "session.json", record)
        prepared = workspace is not None
        write_record(folder / "state.json", StateRecord(state="stopped", prepared=prepared))
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

    def until_keepers_left(self) -> None:
        """Wait for the end of the last keeper."""
        until = time.monotonic() + COMMAND_S
        while self.keepers():
            assert time.monotonic() < until
            time.sleep(0.1)


@contextlib.contextmanager
def stopped_home() -> Generator[Home]:
    """A home of its own; its keepers are told to leave at the end, as at the end of a login."""
    with tempfile.TemporaryDirectory(prefix="cr-") as folder:  # sockets have short addresses
        made = Home(Path(folder))
        yield made
        for keeper in made.keepers():
            with contextlib.suppress(ProcessLookupError):  # it left by itself
                os.kill(int(keeper), signal.SIGTERM)
        made.until_keepers_left()
