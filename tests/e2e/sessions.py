"""A user's world for the end-to-end tests: folders of its own, and the real command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.egress.registries.asking import CACHE
from app.paths import Paths
from app.records import StateRecord, read_state
from tests.e2e.diagnosis import report

if TYPE_CHECKING:
    from vm.image.store import ImageSet

LAUNCHER = Path(__file__).resolve().parents[2] / "cloche.py"
COMMAND_S = 240
"""Longest that one command may take: a cold boot on a host that is busy with other builds."""


SMALL = "defaults: {memory: 1024, vcpus: 1}\n"
"""What a test's machines get: emulated ones of the usual size take half as much again to boot."""


@dataclass(frozen=True)
class Answer:
    status: int
    stdout: bytes
    stderr: bytes

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.stdout)
        return value


def store_of(image: ImageSet) -> Path:
    """Return the store that a found image lies in: `STORE/images/.built/DIGEST/base.squashfs`."""
    return image.base.parents[3]


class World:
    """Sessions of one test; `close` ends whatever the test left running."""

    def __init__(self, root: Path, store: Path, prefix: tuple[str, ...] = ()) -> None:
        """Make the folders; `prefix` stands before each command, as nsenter and its options."""
        self.prefix = prefix
        data = root / "data" / "cloche"
        data.mkdir(parents=True, mode=0o700)
        (data / "store").symlink_to(store)
        runtime = root / "run"
        runtime.mkdir(mode=0o700)
        cache = root / "cache" / "cloche"
        cache.mkdir(parents=True, mode=0o700)
        known = Paths.from_environment().cache / CACHE
        if known.exists():  # what the package tools of this host said; asking takes seconds
            shutil.copy(known, cache / CACHE)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_DATA_HOME": str(root / "data"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "XDG_CACHE_HOME": str(root / "cache"),
            "XDG_RUNTIME_DIR": str(runtime),
            "CLOCHE_ACCEL": "tcg",
            "LC_ALL": "C.UTF-8",
        }
        self.paths = Paths(
            root / "state" / "cloche",
            data,
            root / "config" / "cloche",
            cache,
            runtime / "cloche",
        )
        self.paths.config.mkdir(parents=True, mode=0o700)
        self.configure("")

    def configure(self, text: str, machines: str = SMALL) -> None:
        """Write the user's configuration; with its own `defaults:` say no `machines`."""
        (self.paths.config / "config.yaml").write_text(machines + text)

    @staticmethod
    def words(*arguments: str) -> list[str]:
        """Return the argument vector of one command."""
        return [sys.executable, "-P", str(LAUNCHER), *arguments]

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        cwd: Path | None = None,
        seconds: float = COMMAND_S,
    ) -> Answer:
        done = subprocess.run(
            [*self.prefix, *self.words(*arguments)],
            input=stdin,
            capture_output=True,
            env=self.environment,
            cwd=cwd or "/",
            timeout=seconds,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def json(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        answer = self.run(arguments[0], "--json", *arguments[1:])
        assert answer.status == status, (arguments, answer)
        return answer.json

    def state(self, session: str) -> StateRecord:
        return read_state(self.paths.session(session))

    def shown(self, session: str) -> dict[str, Any]:
        found = [one for one in self.json("ps")["sessions"] if one["id"] == session]
        assert len(found) == 1
        return dict(found[0])

    def wait_for(self, session: str, field: str, *values: object, seconds: float = 120) -> None:
        """Wait until the session's state on disk says one of `values`."""
        until = time.monotonic() + seconds
        while getattr(self.state(session), field) not in values:
            assert time.monotonic() < until, self.state(session)
            time.sleep(0.05)

    def keeper(self, session: str) -> int:
        """Return the pid of the session's keeper, 0 when none runs."""
        folder = str(self.paths.session(session))
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except (OSError, NotADirectoryError):
                continue
            if b"keeper" in words and folder.encode() in words:
                return int(entry.name)
        return 0

    def kill_keeper(self, session: str) -> None:
        pid = self.keeper(session)
        assert pid
        os.kill(pid, signal.SIGKILL)

    def kill_machine(self, session: str) -> None:
        machine = self.state(session).machine
        assert machine is not None
        os.kill(machine.pid, signal.SIGKILL)
        until = time.monotonic() + 10
        while machine.alive:
            assert time.monotonic() < until
            time.sleep(0.01)

    def close(self) -> None:
        """End all that is left; what is printed is shown where the test failed."""
        for session in self.json("ps")["sessions"]:
            said = report(self.paths.session(session["id"]), self.keeper(session["id"]))
            sys.stdout.write(f"{said}\n")
            answer = self.run("rm", "--force", session["id"], "--json")
            if answer.status == 0:
                continue
            machine = self.state(session["id"]).machine
            if machine is not None and machine.alive:
                os.kill(machine.pid, signal.SIGKILL)
            if keeper := self.keeper(session["id"]):
                os.kill(keeper, signal.SIGKILL)


Tree = dict[str, tuple[int, bytes]]


def tree(folder: Path) -> Tree:
    """Return every path below `folder` with its mode and content (or link target)."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        name, mode = str(path.relative_to(folder)), path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[name] = (mode, os.readlink(path).encode())
        else:
            found[name] = (mode, path.read_bytes() if stat.S_ISREG(mode) else b"")
    return found
