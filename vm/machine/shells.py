"""A toolkit shell that waits for its next command, so that sshd's part of a start is done ahead.

Under emulation a channel, sshd's fork and the shell's start take longer than most programs run.
The shell has said its pid and reads one line, byte by byte, which leaves the input that follows it
to the program. One waits a connection; it is replaced when the program that took it has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import asyncssh

from vm.errors import GuestProtocol, LinkLost
from vm.machine.opening import open_process

if TYPE_CHECKING:
    from collections.abc import Coroutine

Process = asyncssh.SSHClientProcess[bytes]

WAITS: Final = 'echo $$ >&2; IFS= read -r line; eval "$line"'

MAX_LINE: Final = 4096
"""Longer commands are started the usual way: byte by byte they would take longer."""

START_S: Final = 20.0
"""Seconds until a shell must have said its pid."""

AGAIN_S: Final = 1.0
"""A program that runs for longer than this does not hold up the next shell."""

_MAX_PID: Final = 16


@dataclass(frozen=True, slots=True)
class Ready:
    """A shell that has said its pid, which is its process group."""

    process: Process
    group: int


async def shell_pid(stream: asyncssh.SSHReader[bytes]) -> int:
    """Read the line with which a shell of ours begins. Raises GuestProtocol after START_S."""
    line = b""
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(START_S):
            while not line.endswith(b"\n") and len(line) < _MAX_PID:
                line += await stream.readexactly(1)
    if not line.strip().isdigit():
        raise GuestProtocol("The guest's shell did not say who it is.")
    return int(line)


class Shells:
    """Keeps a shell waiting on one connection, from the first command on."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self.connection = connection
        self._waiting: asyncio.Task[Ready] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def take(self, script: str) -> Ready | None:
        """Give the waiting shell `exec SCRIPT`.

        None when none waits (then one will, later) or the script is not for it: the caller starts
        a shell of its own.
        """
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            if not self._closed:
                self._soon(self._prepare_later())
            return None
        if not _fits(script):
            self._waiting = waiting
            return None
        try:
            ready = await waiting
        except (LinkLost, GuestProtocol):
            return None
        except asyncio.CancelledError:
            waiting.cancel()
            raise
        if ready.process.is_closing() or self.connection.is_closed():
            return None
        ready.process.stdin.write(f"exec {script}\n".encode())
        self._soon(self._prepare_after(ready.process))
        return ready

    async def close(self) -> None:
        """End the shell that waits, and whatever would start another."""
        self._closed = True
        waiting, self._waiting = self._waiting, None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait({waiting})
            if not waiting.cancelled() and waiting.exception() is None:
                waiting.result().process.close()

    def _soon(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _prepare_later(self) -> None:
        await asyncio.sleep(AGAIN_S / 10)
        self._prepare()

    async def _prepare_after(self, process: Process) -> None:
        with contextlib.suppress(TimeoutError, asyncssh.Error, OSError):
            async with asyncio.timeout(AGAIN_S):
                await process.wait_closed()
        self._prepare()

    def _prepare(self) -> None:
        if self._waiting is None and not self._closed and not self.connection.is_closed():
            self._waiting = asyncio.get_running_loop().create_task(self._start())
            self._waiting.add_done_callback(_looked_at)

    async def _start(self) -> Ready:
        process = await open_process(self.connection, WAITS, what="shell")
        try:
            return Ready(process, await shell_pid(process.stderr))
        except BaseException:
            process.close()
            raise


def _fits(script: str) -> bool:
    return len(script) < MAX_LINE and "\n" not in script


def _looked_at(task: asyncio.Task[Ready]) -> None:
    # a shell that failed to start is noticed when it is needed; until then it is no news
    if not task.cancelled():
        task.exception()
