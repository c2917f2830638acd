"""One connection to `pane.sock`, as the keeper sees it."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from app import pane_frames as frames

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_INPUT: Final = 1 << 20
"""Bytes of one client's input that wait for a guest that does not read; then the client waits."""

OVERHEAD: Final = 64
"""Bytes that a frame of input counts for besides its payload: an empty one takes memory as well."""


class Keyboard(Protocol):
    """Where input and sizes go: the attached terminal of the agent."""

    @property
    def program(self) -> int:
        """Which run of the agent is behind the terminal; 0 while there is none."""
        ...

    async def send(self, data: bytes) -> None:
        """Send input; waits while the guest has no room."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal its new size."""
        ...

    def repaint(self) -> None:
        """Make the program paint again (size minus one and back)."""
        ...


@dataclass(slots=True)
class Count:
    """Messages of one client, whatever connection it has (modulo 2^32)."""

    begun: int = 0
    """Passed on, or being passed on: none of these may be sent again."""
    done: int = 0
    sending: asyncio.Task[None] | None = None
    """What is being passed on. It goes on when its connection ends: the client is told that it need
    not send it again."""

    def begin(self) -> None:
        """Count one more that is passed on."""
        self.begun = (self.begun + 1) & 0xFFFFFFFF


class Client:
    """Where a connection stands in the record, what it typed, and whether it holds the terminal."""

    def __init__(
        self, position: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader, self.writer = reader, writer
        self.sent = position
        self.acked = position
        self.heard = time.monotonic()
        self.prelude = b""
        """What switches the terminal to the moment at which its replay begins."""
        self.size: tuple[int, int] | None = None
        """The size that this client asked for last."""
        self.news = asyncio.Event()
        """Set when there may be something to send."""
        self.tell_holding = False
        self.count: Count | None = None
        """Set once the client said which one it is."""
        self._asked = False
        self._holding = (False, 0)
        self._program: int | None = None
        self._input: deque[tuple[bytes, bool]] = deque()
        self._input_bytes = 0
        self._input_changed = asyncio.Event()
        self._told = (0, 0)
        self._passed = 0
        self._tell_count = False

    # -- to the client -----------------------------------------------------------------------

    def write(self, kind: int, payload: bytes = b"") -> None:
        """Hand a frame to the socket."""
        self.writer.write(frames.frame(kind, payload))

    def say_program(self, program: int) -> None:
        """Say which program runs, if that is news."""
        if program != self._program:
            self._program = program
            self.write(frames.PROGRAM_IS, frames.PROGRAM.pack(program))

    def say_rest(self) -> None:
        """Say what was passed on of the input, and who holds the terminal."""
        if self._tell_count and self.count is not None:
            self.write(frames.TAKEN, frames.PASSED.pack(self.count.done, self._passed))
            self._passed = 0
            self._tell_count = False
        if self.tell_holding:
            self.tell_holding = False
            self._asked = True
            holds, clients = self._holding
            self.write(frames.HOLD, frames.HOLDER.pack(holds, min(clients, 0xFFFF)))

    def held_by(self, holds: bool, clients: int) -> None:
        """Take how this client stands; it is told if it ever asked and anything is new."""
        self.tell_holding |= self._asked and (holds, clients) != self._holding
        self._holding = holds, clients
        if self.tell_holding:
            self.news.set()

    # -- input -------------------------------------------------------------------------------

    def named(self, count: Count) -> None:
        """Take which client it is; it is told how many of its messages were passed on."""
        self.count = count
        self._tell_count = True
        self.news.set()

    def forget_input(self) -> None:
        """Drop what waits: the client came back on another connection and sends it again."""
        self._input.clear()
        self._input_bytes = 0
        self._input_changed.set()

    async def take(self, data: bytes, *, counted: bool) -> None:
        """Take input; waits while too much of it waits already."""
        while self._input_bytes + len(data) + OVERHEAD > MAX_INPUT:
            self._input_changed.clear()
            await self._input_changed.wait()
        if counted and self.count is None:
            return  # left in the socket by a client that came back on another connection
        self._input.append((data, counted))
        self._input_bytes += len(data) + OVERHEAD
        self._input_changed.set()

    async def pass_on(self, keyboard: Keyboard, holds: Callable[[Client], bool]) -> None:
        """Pass input on for ever, apart from the acks, which must not wait for the guest.

        What a watching client typed is dropped, and it is told again that it only watches.
        """
        while True:
            while not self._input:
                self._input_changed.clear()
                await self._input_changed.wait()
            data, counted = self._input.popleft()
            self._input_bytes -= len(data) + OVERHEAD
            count = self.count if counted else None
            if not data or holds(self):
                await self._pass(data, keyboard, count)
            else:
                self.tell_holding = True
                if count is not None:
                    count.begin()
                    count.done = count.begun
            self._passed += len(data)
            self._tell_count = True
            self._input_changed.set()
            self.news.set()

    async def _pass(self, data: bytes, keyboard: Keyboard, count: Count | None) -> None:
        if count is None:
            await keyboard.send(data)
            return
        if count.sending is not None:
            await asyncio.wait([count.sending])
        if count is not self.count:
            return  # the client came back meanwhile, and sends this again
        count.begin()
        if data:
            count.sending = asyncio.create_task(_send(keyboard, data))
            await asyncio.shield(count.sending)
        count.done = count.begun


async def _send(keyboard: Keyboard, data: bytes) -> None:
    await keyboard.send(data)
