"""The user's terminal with a program in it, and the guest: what goes in there, what comes out here.

async with lab_of(folder, "framed_app.py") as lab:
    await lab.guest.put(b"…"); await lab.until(lambda shown: …); lab.new()
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.doubles.engines import lines
from tests.doubles.outer_pty import OuterScreen, end_terminal
from tests.doubles.pane_server import PaneServer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from vm.terminal.screen import Frame

RESET = b"\x18\x1b\\\x1b[?2026l\x1bc"
"""Ends whatever sequence, string, margin or mode a payload left behind."""

UNFINISHED = re.compile(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?)?|[\xc2-\xf4][\x80-\xbf]{0,2})\Z"
)
"""A sequence or a character that goes on with what is read next."""

SOFT_RESET = b"\x18\x1b\\\x1b[?2026l\x1b[?6l\x1b[m\x1b[H"
"""Ends a string and holding back, but leaves the page as it is."""


class Lab(OuterScreen):
    """A program on a terminal; `guest` is the keeper's end of the pane in it."""

    def __init__(self, fd: int, guest: PaneServer, columns: int, rows: int) -> None:
        super().__init__(fd, columns, rows)
        self.guest = guest
        self._place = self._steps = 0

    def new(self) -> bytes:
        """Return what was written since this was last asked for, up to a sequence that is whole."""
        data = bytes(self.written[self._place :])
        unfinished = UNFINISHED.search(data)
        if unfinished is not None:
            data = data[: unfinished.start()]
        self._place += len(data)
        return data

    def frame(self) -> Frame:
        """Return the whole screen."""
        return self.screen.frame(full=True)

    async def until(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """Wait for what the screen shows."""
        try:
            return await super().until(condition)
        except TimeoutError:
            page = "\n".join(lines(self.screen))
            raise AssertionError(f"it was not shown:\n{page}") from None

    async def gone(self, text: str) -> None:
        """Wait until no line holds a text."""
        await self.until(lambda shown: not any(text in line for line in shown))

    async def shows_within(self, text: str, seconds: float) -> None:
        """Wait until some line holds a text; TimeoutError when none does by then."""
        await self.seen(lambda shown: any(text in line for line in shown), seconds)

    async def shows(self, text: str) -> None:
        """Wait until some line holds a text."""
        await self.until(lambda shown: any(text in line for line in shown))

    async def print(self, data: bytes, *, reset: bool = True) -> None:
        """Let the guest print, and wait until all of it was drawn."""
        self._steps += 1
        sign = b"step %d." % self._steps
        await self.guest.put(data + (RESET if reset else b"") + sign)
        await self.shows(sign.decode())

    async def draw(self, data: bytes) -> None:
        """Let the guest print, and wait until that is on the screen, whatever state it left.

        The sign of it is digits at the page's home: no charset and no margin makes others of them.
        """
        self._steps += 1
        sign = b"#%d#" % (10_000 + self._steps)
        await self.guest.put(data + SOFT_RESET + sign)
        await self.shows(sign.decode())

    def type(self, data: bytes) -> None:
        """Type a few bytes."""
        os.write(self.fd, data)


@asynccontextmanager
async def lab_of(
    folder: Path, program: str, *arguments: str, columns: int = 80, rows: int = 24
) -> AsyncGenerator[Lab]:
    """Run a program of this folder on a terminal."""
    path = Path(__file__).with_name(program)
    async with PaneServer(folder / "s") as guest:
        pid, fd = pty.fork()
        if pid == 0:
            # Of os.environ, not of C: there readline has left a COLUMNS that is believed first.
            own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
            argv = [sys.executable, "-P", str(path), str(folder / "s"), *arguments]
            os.execve(sys.executable, argv, {**os.environ, **own})
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        lab = Lab(fd, guest, columns, rows)
        try:
            yield lab
        finally:
            await end_terminal(pid, fd)
