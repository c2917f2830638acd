"""One pane worker: its process, the socketpair to it, and what happens when either ends."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import cloche
from app.errors import AppError
from vm.errors import HostLacks
from vm.terminal import wire
from vm.terminal.wire import MessageReader, Up, WireError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vm.terminal.wire import Hello, Message

START_S = 15.0
"""Seconds that a worker may take to close its sandbox (a first start parses the declarations)."""

STOP_S = 1.0
"""Seconds between asking a worker to end and ending it."""

READ = 1 << 20
MAX_WAITING = 8 << 20
"""Bytes that may wait for a worker that does not read; then it counts as dead."""

ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
"""All that a worker sees of the environment: nothing of the user's."""


def default_launcher() -> list[str]:
    """Return the command that starts one of our roles; see 'Processes' in the architecture."""
    return [sys.executable, "-P", str(Path(cloche.__file__).resolve()), "_role", "pane-worker"]


class PaneEnd(Protocol):
    """A pane, as its worker's link sees it."""

    def heard(self, message: Message) -> None:
        """Take a message about this pane; WireError when it cannot be read."""

    def worker_died(self, link: WorkerLink) -> None:
        """Be told that the worker has ended."""


class WorkerLink:
    """A running worker. `on_message` gets what it says of panes, `on_death` one call at its end."""

    def __init__(
        self,
        launcher: Sequence[str],
        cache: Path | None,
        on_message: Callable[[WorkerLink, Message], None],
        on_death: Callable[[WorkerLink], None],
    ) -> None:
        self._on_message, self._on_death = on_message, on_death
        self._loop = asyncio.get_running_loop()
        self._reader = MessageReader()
        self._waiting: collections.deque[tuple[memoryview, int | None]] = collections.deque()
        self._waiting_bytes = 0
        self._writing = False
        self.alive = True
        self.panes: dict[int, PaneEnd] = {}
        self._numbers = 0
        self.ready: asyncio.Future[Hello] = self._loop.create_future()
        self.gone = asyncio.Event()
        self._socket, process = _start(launcher, cache)
        self._process = process
        self.pid = process.pid
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._reap)
        self._loop.add_reader(self._socket, self._readable)
        self._deadline = self._loop.call_later(START_S, self._too_slow)

    def number(self) -> int:
        """Return a number for a pane that no pane of this worker has."""
        while True:
            self._numbers = self._numbers % 0xFFFF + 1
            if self._numbers not in self.panes:
                return self._numbers

    # -- sending -----------------------------------------------------------------------------

    def send(self, data: bytes, descriptor: int | None = None) -> None:
        """Send a message; `descriptor` rides along and is closed here once it is on its way."""
        if not self.alive:
            if descriptor is not None:
                os.close(descriptor)
            return
        self._waiting.append((memoryview(data), descriptor))
        self._waiting_bytes += len(data)
        if self._waiting_bytes > MAX_WAITING:
            self.kill()
            return
        self._flush()

    def _flush(self) -> None:
        try:
            while self._waiting:
                self._send_one()
        except BlockingIOError:
            self._want_room(True)
            return
        except OSError:
            self._die()  # the worker has gone; its end is told as any other
            return
        self._want_room(False)

    def _send_one(self) -> None:
        data, descriptor = self._waiting[0]
        if descriptor is None:
            sent = self._socket.send(data)
        else:
            sent = socket.send_fds(self._socket, [data], [descriptor])
            os.close(descriptor)
        self._waiting_bytes -= sent
        if sent == len(data):
            self._waiting.popleft()
        else:
            self._waiting[0] = (data[sent:], None)

    def _want_room(self, wanted: bool) -> None:
        if wanted != self._writing:
            self._writing = wanted
            if wanted:
                self._loop.add_writer(self._socket, self._flush)
            else:
                self._loop.remove_writer(self._socket)

    # -- hearing -----------------------------------------------------------------------------

    def _readable(self) -> None:
        try:
            data = self._socket.recv(READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._die()
            return
        try:
            for message in self._reader.feed(data):
                if self.alive:
                    self._heard(message)
        except WireError:
            self.kill()  # what speaks nonsense may be in a guest's hands

    def _heard(self, message: Message) -> None:
        if message.kind == Up.HELLO and not self.ready.done():
            self._deadline.cancel()
            self.ready.set_result(wire.unpack_hello(message.payload))
        elif message.kind == Up.FATAL:
            code, text, hint = wire.unpack_texts(message.payload, 3, 4096)
            error = HostLacks(wire.one_line(text, 300), wire.one_line(hint, 300))
            error.code = wire.one_line(code, 40)
            self._fail(error)
        elif self.ready.done():
            self._on_message(self, message)
        else:
            raise WireError("A worker speaks before its sandbox is closed.")

    def _fail(self, error: Exception) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # whoever waits gets it; nobody has to

    def _too_slow(self) -> None:
        self._fail(
            AppError(
                "pane-worker",
                f"The pane worker was not ready within {START_S:.0f} s.",
                "Run: cloche doctor",
            )
        )
        self.kill()

    # -- ending ------------------------------------------------------------------------------

    def kill(self) -> None:
        """End the process now; `on_death` is called."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._die()

    def _die(self) -> None:
        """Give the link up; told once."""
        if not self.alive:
            return
        self._disconnect()
        self._fail(
            AppError("pane-worker", "The pane worker ended at its start.", "Run: cloche doctor")
        )
        self._on_death(self)

    def _disconnect(self) -> None:
        self.alive = False
        self._deadline.cancel()
        self._loop.remove_reader(self._socket)
        self._want_room(False)
        for _, descriptor in self._waiting:
            if descriptor is not None:
                os.close(descriptor)
        self._waiting.clear()
        self._socket.close()

    def _reap(self) -> None:
        """Collect the exit status; the process has ended."""
        self._process.poll()
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self.gone.set()
        self._die()

    async def close(self) -> None:
        """End the worker without telling anybody; it leaves when its link closes."""
        if self.alive:
            self._disconnect()
        try:
            await asyncio.wait_for(self.gone.wait(), STOP_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self.gone.wait()


def _start(
    launcher: Sequence[str], cache: Path | None
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start a worker: nothing of ours but its end of a socketpair, nothing of the environment."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    argv = [*launcher, str(theirs.fileno()), *([str(cache)] if cache else [])]
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            env=ENVIRONMENT,
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return ours, process
