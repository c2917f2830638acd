"""The user's terminal for tests of the keyboard: a PTY with the pane app in it, and the guest.

`async with outer_pty(folder) as (outer, guest)`: type bytes at one end, read them at the other.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.doubles.engines import engine, lines
from tests.doubles.pane_server import PaneServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

PROGRAM = Path(__file__).with_name("pane_app.py")
DEADLINE = 20.0


class OuterScreen:
    """The user's terminal: all that the program on it writes, and its screen."""

    def __init__(self, fd: int, columns: int = 80, rows: int = 24) -> None:
        self.fd = fd
        self.written = bytearray()
        self.screen = engine(columns, rows)
        self._news = asyncio.Event()
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            asyncio.get_running_loop().remove_reader(self.fd)
            data = b""
        self.written += data
        self.screen.feed(data)
        self._news.set()

    async def until(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """Wait for what the screen shows."""
        return await self.seen(condition, DEADLINE)

    async def seen(self, condition: Callable[[list[str]], bool], seconds: float) -> list[str]:
        """Wait some time for what the screen shows; TimeoutError when it does not by then."""
        async with asyncio.timeout(seconds):
            while not condition(shown := lines(self.screen)):
                self._news.clear()
                await self._news.wait()
        return shown


class Outer(OuterScreen):
    """Types at the program and sees its screen."""

    def __init__(self, fd: int, guest: PaneServer) -> None:
        super().__init__(fd)
        self.guest = guest
        self._steps = 0

    async def type(self, data: bytes) -> None:
        """Type bytes, as fast as the program takes them."""
        loop = asyncio.get_running_loop()
        view = memoryview(data)
        async with asyncio.timeout(DEADLINE):
            while view:
                room = asyncio.Event()
                loop.add_writer(self.fd, room.set)
                try:
                    await room.wait()
                finally:
                    loop.remove_writer(self.fd)
                view = view[os.write(self.fd, view) :]

    async def print(self, data: bytes) -> None:
        """Let the guest write something, and wait until the program has taken it."""
        self._steps += 1
        sign = f"step {self._steps}"
        await self.guest.put(data + b"\r\n" + sign.encode() + b"\r\n")
        await self.until(lambda shown: any(line == sign for line in shown))

    async def gets(self, data: bytes, wanted: bytes) -> bytes:
        """Type bytes and return what the guest got when all that is wanted came, and a `z`."""
        self.guest.typed.clear()
        await self.type(data)
        if wanted:
            try:
                await self.guest.until(lambda: len(self.guest.typed) >= len(wanted), DEADLINE)
            except TimeoutError as error:
                got = self.guest.typed
                came = f"{len(got)} of {len(wanted)} bytes, the last ones {bytes(got[-20:])!r}"
                raise AssertionError(came) from error
        await self.type(b"z")
        await self.guest.until(lambda: self.guest.typed.endswith(b"z"), DEADLINE)
        return bytes(self.guest.typed[:-1])


@asynccontextmanager
async def pane_app(*argv: str) -> AsyncGenerator[int]:
    """Run the pane app on a terminal of its own and give the terminal's other end."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
        os.execv(sys.executable, [sys.executable, "-P", str(PROGRAM), *argv])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    try:
        yield fd
    finally:
        await end_terminal(pid, fd)


async def end_terminal(pid: int, fd: int) -> None:
    """End a program and the terminal that it runs on."""
    asyncio.get_running_loop().remove_reader(fd)
    os.close(fd)
    os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(os.waitpid, pid, 0)


@asynccontextmanager
async def outer_pty(folder: Path, *argv: str) -> AsyncGenerator[Outer]:
    """Run the pane app on a terminal before a guest whose input and output the test holds."""
    async with PaneServer(folder / "s") as guest, pane_app(str(folder / "s"), *argv) as fd:
        outer = Outer(fd, guest)
        await outer.print(b"ready")
        yield outer
