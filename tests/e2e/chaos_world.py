"""One user's sessions under `kill -9`, and what must hold after every death."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.client.fleet import list_sessions
from app.errors import EXIT_MISSING
from app.processes import start_time
from app.records import QEMU_LOG
from tests.e2e.chaos_gate import HELD_S
from tests.e2e.sessions import LAUNCHER, World, tree
from vm.machine.strays import inmost, machine_processes

if TYPE_CHECKING:
    from tests.e2e.chaos_gate import Gate, Held
    from vm.machine.strays import Stray

SETTLE_S = 120.0
ACTIVE = ("starting", "running", "paused", "stopping")
OVER = ("stopped", "failed", "lost")
MACHINES = "defaults: {memory: 512, vcpus: 1, scratch: 2}\n"


class Chaos:
    """A workspace, the sessions on it, and the gate at which they are killed."""

    def __init__(self, root: Path, store: Path, gate: Gate, socket: Path) -> None:
        self.root = root
        self.gate = gate
        self.world = World(root / "w", store)
        self.world.environment["CLOCHE_STEPS"] = str(socket)
        self.world.environment["TMPDIR"] = str(root / "tmp")
        (root / "tmp").mkdir()
        self.world.configure("", MACHINES)
        self.workspace = root / "project"
        (self.workspace / "src").mkdir(parents=True)
        (self.workspace / "old.txt").write_text("old\n")
        (self.workspace / "src" / "main.py").write_text("print('hello')\n" * 50)
        self.before = tree(self.workspace)
        self.command: subprocess.Popen[bytes] | None = None
        self.session = ""

    # What is done

    def act(self, *words: str) -> None:
        """Begin a command; `ID` among the words is the session."""
        words = tuple(self.session if word == "ID" else word for word in words)
        self.command = subprocess.Popen(
            [sys.executable, "-P", str(LAUNCHER), words[0], "--json", *words[1:]],
            env=self.world.environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end_command(self) -> None:
        """Wait for the command, whatever became of it."""
        assert self.command is not None
        self.command.communicate(timeout=SETTLE_S)

    def held(self) -> Held:
        """Wait until somebody stands at the step; a command that failed leads nobody there."""
        assert self.command is not None
        until = time.monotonic() + HELD_S
        while (found := self.gate.held(0.5)) is None:
            failed = self.command.poll() not in (None, 0)
            assert not failed, self.command.communicate()
            assert time.monotonic() < until, self.gate.seen[-20:]
        return found

    def kill(self, victim: str, held: Held) -> None:
        """End the victim: whoever stands at the step, QEMU with its jail, or both."""
        if victim in ("machine", "both"):
            found = self.machine()
            assert found, "there is no machine to kill at this step"
            kill(found)
        if victim in ("keeper", "command", "both"):
            kill_pid(held.pid)
        held.release()

    def kill_keeper(self) -> None:
        """End the session's keeper, if it has one."""
        if pid := self.world.keeper(self.session):
            kill_pid(pid)

    def machine(self) -> tuple[Stray, ...]:
        """Return the processes of the session's machine."""
        return machine_processes(self.world.paths.session(self.session) / QEMU_LOG)

    def find_session(self) -> None:
        """Learn the id of the one session, when there is one by now, without a command's start."""
        found = [info.id for info in list_sessions(self.world.paths)]
        assert len(found) <= 1
        self.session = found[0] if found else ""

    # What must hold

    def listed(self) -> list[dict[str, Any]]:
        return list(self.world.json("ps")["sessions"])

    def check_truth(self) -> str:
        """Wait until `ps` says what is the case, and return the state; it must be so soon.

        In the moment after a death a keeper may just be about to notice; it has no more than that.
        """
        until = time.monotonic() + SETTLE_S
        while True:
            shown = self.listed()
            if self.session and [info["id"] for info in shown] == [self.session]:
                state = str(shown[0]["state"])
                if (state in OVER) != self._lives() or self._works(state):
                    return state
            else:
                assert not shown, shown
                assert not self.session, "the session is missing in ps"
                return "gone"
            assert time.monotonic() < until, (shown, self.machine())
            time.sleep(0.05)

    def _lives(self) -> bool:
        return inmost(self.machine()) is not None

    def _works(self, state: str) -> bool:
        """Tell whether a keeper is on its way to a machine, or from one."""
        return state in ("starting", "stopping") and bool(self.world.keeper(self.session))

    def check_workspace(self) -> None:
        """The developer's files are as they were."""
        assert tree(self.workspace) == self.before

    def settle(self) -> str:
        """Wait until nothing is being started or stopped by a keeper any more."""
        until = time.monotonic() + SETTLE_S
        while (state := self.check_truth()) in ("starting", "stopping"):
            if not self.world.keeper(self.session):
                return state
            assert time.monotonic() < until, state
            time.sleep(0.05)
        return state

    def check_resume(self) -> None:
        """`resume` brings the session back with its workspace, from whatever it is in."""
        assert self.world.json("resume", self.session)["state"] == "running"
        done = self.world.run("exec", self.session, "--", "cat", "old.txt")
        assert (done.status, done.stdout) == (0, b"old\n"), done
        agents = "ls -d /proc/[0-9]* | while read p; do tr '\\0' ' ' < $p/cmdline; echo; done"
        said = self.world.run("exec", self.session, "--", "sh", "-c", agents).stdout
        assert said.count(b"bash -l") == 1, said

    def check_nothing_left(self) -> None:
        """After `rm` there is no process and no file of any session."""
        for name in os.listdir(self.world.paths.sessions):
            found = name.removeprefix(".new-").removeprefix(".removed-")
            status = self.world.run("rm", "--force", found).status
            # of what never became a session, `rm` says that it does not exist, and clears it away
            assert status == (EXIT_MISSING if name.startswith(".new-") else 0), name
        assert self.listed() == []
        until = time.monotonic() + 30  # the keeper was told to go, and a guard goes after its QEMU
        while others := processes_about(self.root):
            assert time.monotonic() < until, others
            time.sleep(0.05)
        paths = self.world.paths
        assert os.listdir(paths.sessions) == []
        assert [path for path in paths.runtime.glob("*") if path.is_dir()] == []
        assert os.listdir(self.root / "tmp") == []
        drafts = [path for path in self.root.rglob(".*") if path.is_file()]
        assert drafts == []

    def close(self) -> None:
        """End what a failed check left behind."""
        if self.command is not None and self.command.poll() is None:
            self.command.kill()
            self.command.communicate()
        for pid, _ in processes_about(self.root):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def kill(found: tuple[Stray, ...]) -> None:
    """End a machine: QEMU alone where it is there, for its guard follows it."""
    inner = inmost(found)
    assert inner is not None
    kill_pid(inner.pid)


def kill_pid(pid: int) -> None:
    """End a process and wait until it is gone."""
    started = start_time(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 30
    while started and start_time(pid) == started:
        assert time.monotonic() < until, f"process {pid} does not end"
        time.sleep(0.005)


def processes_about(root: Path) -> list[tuple[int, str]]:
    """Return every process that names, uses or stands in a folder; never the one that asks.

    Another test's folder may begin with the same letters: `homes/6` is not `homes/64`.
    """
    found: list[tuple[int, str]] = []
    place = re.compile(re.escape(os.fsencode(root)) + rb"(?![^/\0,:=])")
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes()
            if words and (place.search(words) or _uses(entry, place)):
                found.append((int(entry.name), words.replace(b"\0", b" ").decode()[:200]))
    return found


def _uses(entry: Path, place: re.Pattern[bytes]) -> bool:
    links = [entry / "cwd", *(entry / "fd").iterdir()]
    for link in links:
        with suppress(OSError):
            if place.match(os.fsencode(os.readlink(link))):
                return True
    return False
