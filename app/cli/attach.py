"""`cloche attach`: the agent's terminal in this one, raw; the prefix and d leaves it.

Attaching takes the terminal, so the guest has this one's size; another client may take it over, and
the prefix and t takes it back. With `--read-only` it is only watched, at whatever size its holder
gave it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import signal
import struct
import sys
import termios
import tty
from typing import TYPE_CHECKING, Final

from app.cli.attach_keys import PrefixFinder
from app.cli.filter import COLORS_BACK, OutputFilter
from app.cli.waiting import news_of
from app.client import fleet
from app.client.session import SessionClient
from app.client.terminal import PaneClient
from app.config import load_config
from app.errors import EXIT_DONE, AppError
from app.paths import Paths
from app.prefix import prefix_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Generator

    from app.cli.output import Output
    from app.cli.waiting import Wait

SETTLE_S: Final = 0.15
"""Time in which this terminal answers the queries of a replay; its answers are thrown away."""

WATCHING: Final = "read-only: {0} d leaves"
ELSEWHERE: Final = "another client took this terminal: {0} t takes it back, {0} d leaves"

NOTE: Final = "\x1b7\x1b[999;1H\x1b[0;7m %s \x1b[m\x1b8"
"""Shows a sentence in the last row until the program paints there again."""

COLUMNS: Final = 80
"""Width of a terminal that does not tell its own."""

MODES: Final = (5, 9, 69, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2031, 2048)
"""Private modes that make a terminal report something or look odd: reversed colours, side margins,
the mouse in all its forms, the focus, pastes, changes of theme and size."""

MARGINS_BACK: Final = b"\x1b7\x1b[r\x1b8"
"""Lets the whole screen scroll again; for terminals without a soft reset, too."""

RESET: Final = (
    b"\x1b[?2026l\x1b[!p\x1b[<99u\x1b[>4m\x1b[?7h\x1b[?25h"
    b"\x1b(B\x0f\x1b[0 q\x1b[m" + MARGINS_BACK + b"".join(b"\x1b[?%dl" % mode for mode in MODES)
)
"""Takes back what a program may have switched on, when we leave it running."""

ALTERNATE: Final = re.compile(rb"\x1b\[\?(?:[0-9;]*;)?(?:1049|1047|47)(?:;[0-9;]*)?([hl])|\x1bc")
"""What goes to the alternate screen or leaves it."""

MAIN_SCREEN: Final = b"\x1b[<99u\x1b[?1049l"
"""Leaves the alternate screen, which has a stack of keyboards of its own. Said on the main one it
would put the cursor back where some editor began."""

SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
"""What ends us from outside; the terminal is given back first."""


def attach(arguments: argparse.Namespace, output: Output) -> int:
    """Use the agent's terminal here; the exit status is the agent's if it ends meanwhile."""
    if output.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AppError("usage", "attach needs a terminal.", "Run it without --json and pipes.")
    paths = Paths.from_environment()
    info = fleet.find_session(paths, arguments.session)
    if info.state not in ("running", "starting"):
        raise AppError(
            "not-running", f"The session is {info.state}.", f"Start it: cloche resume {info.id}"
        )
    status = asyncio.run(attach_here(paths, info.id, read_only=arguments.read_only))
    if status is None:
        output.note(f"left {info.id}; it goes on")
        return EXIT_DONE
    return status


async def attach_here(paths: Paths, session_id: str, *, read_only: bool = False) -> int | None:
    """Carry this terminal until the agent ends (its status) or the user leaves (None)."""
    prefix = load_config(paths.config).ui.prefix
    async with await SessionClient.open(paths, session_id) as client:
        pane = await PaneClient.open(client.pane_socket_path)
        try:
            attachment = _Attachment(pane, prefix, read_only=read_only)
            with raw_terminal(main_screen=b""):
                status = await attachment.run(news_of(client))
            if attachment.signalled:
                os.kill(os.getpid(), attachment.signalled)  # which now does what it always does
            return status
        finally:
            await pane.close()


@contextlib.contextmanager
def raw_terminal(main_screen: bytes = MAIN_SCREEN) -> Generator[None]:
    """Put this terminal into raw mode and take everything back at the end.

    `main_screen`: what leaves the alternate screen; empty for who has seen to that already.
    """
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # what was typed ahead is meant for the guest
    try:
        yield
    finally:
        # a terminal that was closed meanwhile needs nothing back
        with contextlib.suppress(OSError):
            os.write(1, main_screen + RESET + b"\r\n")
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSAFLUSH, before)


class _Attachment:
    def __init__(self, pane: PaneClient, prefix: str, *, read_only: bool) -> None:
        self._pane = pane
        self._read_only = read_only
        self._holds = not read_only
        self._filter = OutputFilter()
        self._alternate = False
        self._writing = asyncio.Lock()
        """Held while a chunk is written: a sentence of ours comes between two."""
        self._prefix = prefix_name(prefix)
        self._finder = PrefixFinder(prefix, "d" if read_only else "dt")
        self._live = asyncio.Event()
        self._left = asyncio.Event()
        self.signalled = 0
        """The signal that asked us to end, else 0."""
        self._keys: asyncio.Queue[bytes] = asyncio.Queue(64)

    async def run(self, news: AsyncIterator[Wait]) -> int | None:
        """Carry the terminal; `news` are told in its last row."""
        loop = asyncio.get_running_loop()
        loop.add_reader(0, self._on_keys)
        loop.add_signal_handler(signal.SIGWINCH, self._resize)
        for number in SIGNALS:
            loop.add_signal_handler(number, self._end, number)
        if not self._read_only:
            self._resize()
            self._pane.take()
        output = loop.create_task(self._output())
        others = (loop.create_task(self._input()), loop.create_task(self._leave()))
        telling = loop.create_task(self._tell(news))
        try:
            await asyncio.wait((output, *others), return_when=asyncio.FIRST_COMPLETED)
            ended = output.done() and not self.signalled
            return output.result() if ended else None
        finally:
            loop.remove_reader(0)
            for number in (signal.SIGWINCH, *SIGNALS):
                loop.remove_signal_handler(number)
            tasks = (output, telling, *others)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            back = MAIN_SCREEN if self._alternate else b""
            with contextlib.suppress(OSError):
                os.write(1, back + (COLORS_BACK if self._filter.colored else b""))

    def _end(self, number: int) -> None:
        """Leave because of a signal; the same once more ends us whatever we wait for."""
        self.signalled = number
        asyncio.get_running_loop().remove_signal_handler(number)
        self._left.set()

    async def _leave(self) -> None:
        await self._left.wait()

    def _resize(self) -> None:
        rows, columns = _size()
        if rows and columns and not self._read_only:
            self._pane.resize(columns, rows)

    def _on_keys(self) -> None:
        try:
            data = os.read(0, 4096)
        except OSError:
            data = b""  # the terminal is gone
        if not data:
            self._left.set()
        elif not self._live.is_set() and data.startswith(b"\x1b"):
            return  # this terminal's answer to a question of the replay, asked long ago
        elif not self._keys.full():
            self._keys.put_nowait(data)

    async def _input(self) -> None:
        await self._live.wait()
        while True:
            passed = self._commands(await self._keys.get())
            if passed and self._holds:
                await self._pane.send(passed)
            elif passed:
                await self._say_why()

    async def _say_why(self) -> None:
        """Say why keys do nothing."""
        await self._say((WATCHING if self._read_only else ELSEWHERE).format(self._prefix))

    async def _tell(self, news: AsyncIterator[Wait]) -> None:
        """Say what begins to wait for the user, whose keys all go to the guest here."""
        await self._live.wait()
        async for wait in news:
            await self._say(fitting(wait, (_size()[1] or COLUMNS) - 2))

    async def _say(self, sentence: str) -> None:
        """Show a sentence in the last row; the filter lets no chunk end within a sequence."""
        async with self._writing:
            await _write((NOTE % sentence).encode())

    def _commands(self, data: bytes) -> bytes:
        passed = bytearray()
        for command in self._finder.feed(data):
            if command.do == "d":
                self._left.set()
                break
            if command.do == "t":
                self._pane.take()
            passed += command.data
        return bytes(passed)

    async def _show(self, data: bytes) -> None:
        """Write output; the filter lets no chunk end within a sequence."""
        for switch in ALTERNATE.finditer(data):
            self._alternate = switch[1] == b"h"
        async with self._writing:
            await _write(data)

    async def _output(self) -> int:
        while (event := await self._pane.next()) is not None:
            if event.kind == "output":
                await self._show(self._filter.feed(event.data))
            elif event.kind == "size":
                # A terminal that is resized forgets its margins; this one was not when that was.
                await _write(MARGINS_BACK)
            elif event.kind == "live":
                asyncio.get_running_loop().call_later(SETTLE_S, self._live.set)
            elif event.kind == "holder" and not self._read_only:
                lost, self._holds = self._holds and not event.holds, event.holds
                if lost:
                    await self._say_why()
            elif event.kind == "ended":
                return event.status & 0xFF
        raise AppError("keeper-lost", "The session's keeper went away.", "See: cloche ps")


def fitting(wait: Wait, width: int) -> str:
    """Return a sentence about what waits that fits into one row; the host's end always shows."""
    sentence = f"{wait.what}: {wait.command}"
    if len(sentence) <= width:
        return sentence
    tail = f"{wait.what}, elsewhere: cloche ps"
    return tail if len(tail) <= width else tail[-max(1, width) :]


def _size() -> tuple[int, int]:
    """Return rows and columns of this terminal; 0 where it does not know them."""
    rows, columns, _, _ = struct.unpack("4H", fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8)))
    return rows, columns


async def _write(data: bytes) -> None:
    """Write everything; a terminal that is slow to take it holds only us."""
    view = memoryview(data)
    while view:
        written = await asyncio.to_thread(os.write, 1, view)
        view = view[written:]
