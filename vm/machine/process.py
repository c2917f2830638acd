"""One process of another program, named for good by its pid and start time.

A machine outlives the keeper that started it, so everything here works for a process that is not
our child: its end is seen through a pidfd, and a pid that was given to somebody else is noticed.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

GUARD_S = 2.0
"""Longest wait for a guard after its process has ended; it takes a millisecond."""


def start_time(pid: int) -> int | None:
    """Return field 22 of /proc/PID/stat (clock ticks after boot), None without such a process."""
    return _field(pid, 22)


def age_s(pid: int) -> float:
    """Return for how many seconds a process has run, 0 without such a process."""
    started = start_time(pid)
    if started is None:
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def parent(pid: int) -> int | None:
    """Return the pid of a process's parent, None without such a process."""
    return _field(pid, 4)


def stands_still(pid: int) -> bool:
    """Tell whether a process was stopped by a signal or a debugger (state T or t in proc(5))."""
    text = _stat(pid)
    return bool(text) and text[text.rindex(b")") + 2 :][:1] in (b"T", b"t")


def _stat(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096)
    except OSError:
        return b""


def _field(pid: int, number: int) -> int | None:
    """Return a numeric field of /proc/PID/stat by its number in proc(5)."""
    text = _stat(pid)
    if not text:
        return None
    # the second field is the program's name in brackets and may hold anything, brackets included
    return int(text[text.rindex(b")") + 2 :].split()[number - 3])


def spawn(arguments: Sequence[str], log: Path, inherit: Mapping[int, int] | None = None) -> int:
    """Start a program in a session of its own, output appended to `log`, and return its pid.

    It inherits no descriptor but those of `inherit` (its number: ours), and next to no environment.
    Raises OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    output = (os.POSIX_SPAWN_OPEN, 1, os.fspath(log), flags, 0o600)
    return os.posix_spawn(
        arguments[0],
        list(arguments),
        {"PATH": os.defpath, "LC_ALL": "C"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            output,
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_DUP2, ours, its) for its, ours in (inherit or {}).items()),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGPIPE, signal.SIGHUP],
    )


class Process:
    """A process whose end can be awaited. Belongs to the running event loop; `close` it."""

    def __init__(self, pid: int, guard: Process | None = None) -> None:
        """Take hold of `pid`. Raises ProcessLookupError when there is none.

        `guard` is a child of ours that started the process, ends with it and passes on how it
        ended, as a shell would. It is closed with the process.
        """
        self.pid = pid
        self._guard = guard
        self._handle = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int | None] = self._loop.create_future()
        self._loop.add_reader(self._handle, self._reap)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet (a zombie has)."""
        if self._ended.done() or self._handle < 0:
            return False
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return not poll.poll(0)

    async def wait(self) -> int | None:
        """Wait for the end; the exit status (negative = signal), None if nobody can tell us."""
        code = await asyncio.shield(self._ended)
        if self._guard is None or not await self._guard.ends_within(GUARD_S):
            return code
        passed = await self._guard.wait()
        # a guard that was killed itself tells nothing
        return None if passed is None or passed < 0 else passed if passed < 128 else 128 - passed

    async def ends_within(self, seconds: float) -> bool:
        """Wait at most so long for the end; whether it came. A guard is waited for besides."""
        done, _ = await asyncio.wait((self._ended,), timeout=max(0.0, seconds))
        if done and self._guard is not None:
            await self._guard.ends_within(GUARD_S)
        return bool(done)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to exactly this process; nothing happens when it has ended."""
        if self._handle >= 0:
            try:
                signal.pidfd_send_signal(self._handle, number)
            except ProcessLookupError:
                return

    def close(self) -> None:
        """Let go of the process; it runs on."""
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1
        if self._guard is not None:
            self._guard.close()

    def _reap(self) -> None:
        self._loop.remove_reader(self._handle)
        try:
            _, status = os.waitpid(self.pid, os.WNOHANG)
            code: int | None = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            code = None
        if not self._ended.done():
            self._ended.set_result(code)
