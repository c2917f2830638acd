"""What PID 1 says of a busy agent: real programs on a real terminal, in cgroups that are files."""

from __future__ import annotations

import errno
import os
import pty
import select
import struct
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.vm.guest_host import Guest

PATIENCE_S = 30.0
WATCHER = "bash --norc --noprofile -i; :"
"""As `/bin/enter` does, the session's leader waits for the agent, which controls its jobs."""


class Agent:
    """A shell on a terminal, with its watcher, as the guest's cgroups name them."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.printed = b""
        self.terminal, end = pty.openpty()
        # Whoever runs the tests in the background may have them ignore interrupts.
        self._process = subprocess.Popen(
            ["env", "--default-signal=INT", "setsid", "-c", "sh", "-c", WATCHER],
            stdin=end, stdout=end, stderr=end, env={**os.environ, "PS1": "ready> "},
        )  # fmt: skip
        os.close(end)
        self.watcher = self._process.pid
        self.until(b"ready> ")

    def until(self, mark: bytes) -> None:
        """Read to the end of `mark`; what follows it is kept."""
        while mark not in self.printed:
            assert select.select([self.terminal], [], [], PATIENCE_S)[0], self.printed
            self.printed += os.read(self.terminal, 4096)
        self.printed = self.printed.partition(mark)[2]

    def tell(self, cpu_us: int) -> None:
        """Write the cgroups' files."""
        children = Path(f"/proc/{self.watcher}/task/{self.watcher}/children").read_text().split()
        more = [
            pid for child in children
            for pid in Path(f"/proc/{child}/task/{child}/children").read_text().split()
        ]  # fmt: skip
        group = self.guest.folder / "cgroup"
        (group / "keep/cgroup.procs").write_text(f"{self.watcher}\n")
        (group / "agent/cgroup.procs").write_text("".join(f"{pid}\n" for pid in children + more))
        (group / "agent/cpu.stat").write_text(f"usage_usec {cpu_us}\nuser_usec 1\n")

    def activity(self, cpu_us: int = 0) -> tuple[bool, int]:
        self.tell(cpu_us)
        self.guest.bulk.ask(b"A")
        kind, payload = self.guest.bulk.answer()
        assert kind == b"a"
        waits, used = struct.unpack("<BQ", payload)
        return bool(waits), used

    def becomes(self, waits: bool) -> bool:
        """Ask until the terminal has changed hands, which takes the shell a moment."""
        until = time.monotonic() + PATIENCE_S
        while (now := self.activity()[0]) != waits and time.monotonic() < until:
            time.sleep(0.01)
        return now == waits

    def type(self, line: bytes) -> None:
        os.write(self.terminal, line)

    def close(self) -> None:
        os.close(self.terminal)
        self._process.kill()
        self._process.wait(PATIENCE_S)


@pytest.fixture
def agent(guest: Guest) -> Iterator[Agent]:
    started = Agent(guest)
    yield started
    started.close()


def test_a_program_in_front_of_the_shell_is_seen_and_its_end(agent: Agent) -> None:
    assert agent.activity(1_234_567) == (False, 1_234_567)
    # It says that it runs: an interrupt between bash's fork and the program's start may go astray.
    agent.type(b"sh -c 'echo begun; exec sleep 1000'\n")
    agent.until(b"begun\r\n")
    assert agent.becomes(True)
    agent.type(b"\x03")
    assert agent.becomes(False)


def test_one_that_reads_single_keys_waits_for_its_user(agent: Agent) -> None:
    agent.type(b"sh -c 'stty -icanon; echo no-lines; exec sleep 1000'\n")
    agent.until(b"no-lines\r\n")
    assert agent.activity() == (False, 0)
    agent.type(b"\x03")
    agent.until(b"ready> ")
    agent.type(b"sh -c 'echo in-lines; exec sleep 1000'\n")
    agent.until(b"in-lines\r\n")
    assert agent.becomes(True)


def test_a_program_in_the_background_is_none(agent: Agent) -> None:
    agent.type(b"sleep 1000 &\n")
    agent.until(b"ready> ")
    assert agent.activity() == (False, 0)
    agent.type(b"kill %1\n")


@pytest.mark.parametrize("pids", ["", "999999999\n", "1\n", "x\n", "0\n" * 9000])
def test_processes_that_are_gone_or_none_are_passed_over(guest: Guest, pids: str) -> None:
    group = guest.folder / "cgroup"
    (group / "keep/cgroup.procs").write_text("1\n")
    (group / "agent/cgroup.procs").write_text(pids)
    (group / "agent/cpu.stat").write_text("nonsense\n")
    guest.bulk.ask(b"A")
    assert guest.bulk.answer() == (b"a", bytes(9))


def test_it_takes_no_arguments(guest: Guest) -> None:
    guest.bulk.ask(b"A", b"x")
    kind, payload = guest.bulk.answer()
    assert (kind, struct.unpack_from("<II", payload)) == (b"x", (0, errno.EINVAL))
