"""A keeper's `pane.sock` over a real local PTY: the process boundary without the machine behind it.

It speaks the protocol of docs/architecture.md from a record held in memory: size, output, end of
the replay, exit; input, resize, ack. Programs run on a real PTY, so what crosses is what a guest's
terminal would send.

    async with PaneServer(tmp_path / "pane.sock", ["bash", "--norc"]) as server: ...

Without a program the test itself plays the guest: `await server.put(b"...")`, `server.typed`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

HEAD = struct.Struct("<BI")
SIZE = struct.Struct("<HH")
CHUNK = 32_768
ENVIRONMENT = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "LANG": "C.UTF-8",
    "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    "HOME": "/nonexistent",
    "PS1": "$ ",
}


def frame(kind: str, payload: bytes = b"") -> bytes:
    return HEAD.pack(ord(kind), len(payload)) + payload


class PaneServer:
    """Serves one terminal to any number of clients. `size` is the guest's size right now."""

    def __init__(
        self,
        path: Path,
        argv: Sequence[str] = (),
        *,
        size: tuple[int, int] = (80, 24),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.path, self.argv, self.size = path, list(argv), size
        self.env = {**ENVIRONMENT, **(env or {})}
        self.cwd = cwd
        self.record = bytearray()
        self.typed = bytearray()
        self.sizes: list[tuple[int, int]] = []
        self.acked = 0
        self.connections = 0
        self.replay_on_connect = True
        self.program: int | None = None
        """When set it is told to clients, and input is acknowledged as a keeper does it."""
        self.takes = True
        """False: a guest that reads nothing; what is typed waits until `let_go`."""
        self.untaken: list[tuple[asyncio.StreamWriter, str, bytes]] = []
        self.counts: dict[int, int] = {}
        self._names: dict[asyncio.StreamWriter, int] = {}
        self.wishes: list[int] = []
        self.exit_status: int | None = None
        self.pid = 0
        self._pty = -1
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, str(self.path))
        if self.argv:
            self._spawn()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._kill()
        self._close_pty()
        await self.hang_up()
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _kill(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self.pid = 0

    # -- the guest ---------------------------------------------------------------------------

    def _spawn(self) -> None:
        pid, self._pty = pty.fork()
        if pid == 0:
            if self.cwd is not None:
                os.chdir(self.cwd)
            os.execvpe(self.argv[0], self.argv, self.env)
        self.pid = pid
        os.set_blocking(self._pty, False)
        self._set_size(*self.size)
        asyncio.get_running_loop().add_reader(self._pty, self._output)

    def _output(self) -> None:
        try:
            data = os.read(self._pty, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._append(data)
            return
        self._close_pty()
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        self.end(os.waitstatus_to_exitcode(status))

    def _close_pty(self) -> None:
        if self._pty >= 0:
            asyncio.get_running_loop().remove_reader(self._pty)
            os.close(self._pty)
            self._pty = -1

    def _set_size(self, columns: int, rows: int) -> None:
        self.size = columns, rows
        if self._pty >= 0:
            fcntl.ioctl(self._pty, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # -- what a test does --------------------------------------------------------------------

    def _append(self, data: bytes) -> None:
        self.record += data
        self._broadcast(_output_frames(data))

    async def put(self, data: bytes) -> None:
        """Print as the guest."""
        self._append(data)
        for writer in list(self._writers):
            with contextlib.suppress(ConnectionError):
                await writer.drain()

    def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be frames."""
        self._broadcast(data)

    def let_go(self) -> None:
        """Read what waits, and from now on everything."""
        self.takes, waiting, self.untaken = True, self.untaken, []
        for writer, kind, payload in waiting:
            self._typed(kind, payload, writer)

    def end(self, status: int) -> None:
        """End the terminal."""
        self.exit_status = status
        self._broadcast(frame("X", struct.pack("<i", status)))

    async def hang_up(self) -> None:
        """Close every connection, as a dying keeper does."""
        for writer in list(self._writers):
            writer.close()

    async def until(self, condition: Callable[[], bool], seconds: float = 10) -> None:
        """Wait for something that the server sees; it is looked at after each frame received."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(condition)

    async def until_typed(self, data: bytes, seconds: float = 10) -> None:
        await self.until(lambda: data in self.typed, seconds)

    # -- the protocol ------------------------------------------------------------------------

    def _broadcast(self, data: bytes) -> None:
        for writer in list(self._writers):
            writer.write(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.program is not None:
            writer.write(frame("P", struct.pack("<Q", self.program)))
        writer.write(frame("S", SIZE.pack(*self.size)))
        if self.replay_on_connect:
            writer.write(_output_frames(bytes(self.record)))
        writer.write(frame("L"))
        if self.exit_status is not None:
            writer.write(frame("X", struct.pack("<i", self.exit_status)))
        self._writers.add(writer)
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            while True:
                kind, length = HEAD.unpack(await reader.readexactly(HEAD.size))
                await self._receive(chr(kind), await reader.readexactly(length), writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()
            if task is not None:
                self._tasks.discard(task)

    def _typed(self, kind: str, payload: bytes, writer: asyncio.StreamWriter) -> None:
        if kind == "M" and self.program is not None and writer not in self._names:
            return  # left in the socket by a client that came back on another connection
        self.typed += payload
        if self._pty >= 0:
            os.write(self._pty, payload)
        name = self._names.get(writer)
        if name is not None:
            self.counts[name] += kind == "M"
            writer.write(frame("T", struct.pack("<II", self.counts[name], len(payload))))

    def _named(self, name: int, count: int, writer: asyncio.StreamWriter) -> None:
        if self.program is None:
            return
        count = self.counts.setdefault(name, count)
        self.untaken = [it for it in self.untaken if self._names.get(it[0]) != name]
        self._names = {it: other for it, other in self._names.items() if other != name}
        self._names[writer] = name
        writer.write(frame("T", struct.pack("<II", count, 0)))

    async def _receive(self, kind: str, payload: bytes, writer: asyncio.StreamWriter) -> None:
        if kind in "IM" and not self.takes:
            self.untaken.append((writer, kind, payload))
        elif kind in "IM":
            self._typed(kind, payload, writer)
        elif kind == "N":
            name, count = struct.unpack("<QI", payload)
            self._named(name, count, writer)
        elif kind == "H":
            self.wishes.append(payload[0])
            writer.write(frame("H", struct.pack("<BH", 1, len(self._writers))))
        elif kind == "W":
            columns, rows = SIZE.unpack(payload)
            self.sizes.append((columns, rows))
            self._set_size(columns, rows)
            self._broadcast(frame("S", SIZE.pack(columns, rows)))
        elif kind == "A":
            self.acked += struct.unpack("<I", payload)[0]
        else:
            raise AssertionError(f"a client sent {kind!r}")
        async with self._changed:
            self._changed.notify_all()


def _output_frames(data: bytes) -> bytes:
    starts = range(0, len(data), CHUNK)
    return b"".join(frame("O", data[at : at + CHUNK]) for at in starts)
