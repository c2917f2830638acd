"""The user's side of one pane inside the worker: keys, pastes, mouse, focus, and the page."""

from __future__ import annotations

import collections
import errno
import os
from typing import TYPE_CHECKING

from vm.terminal import stream, wire
from vm.terminal.screen import WHEEL_LINES, MouseAction
from vm.terminal.wire import PaneState, Up
from vm.terminal.wire_view import Paste
from vm.terminal.worker_news import News

if TYPE_CHECKING:
    from vm.terminal.engine import VTEngine
    from vm.terminal.screen import MouseEvent

WRITE = 65_536
"""Bytes written to the keeper at once."""

MAX_INPUT = 4 << 20
"""Bytes of input that wait for a guest that does not read; more is dropped with a bell."""

MAX_REPLIES = 256 << 10
"""Bytes that may wait before the engine's answers are dropped: they must not take the room that
the user's keys need."""


class Passage:
    """How much of the input the keeper has passed on, in bytes and in messages.

    The screen keeps what was not passed on and sends it again should this worker end.
    """

    def __init__(self) -> None:
        self.sent = self.taken = self.done = 0
        self.counted = False
        """The keeper counts what it passes on; else what was written to it counts as taken."""
        self.awaited = False
        """The keeper was asked how much it has passed on, and did not answer yet."""
        self._ends: collections.deque[int] = collections.deque()

    @property
    def waiting(self) -> int:
        """Bytes that were not passed on yet."""
        return self.sent - self.taken

    def finish(self) -> None:
        """Count a message that ends here."""
        if not self.counted:
            self._ends.append(self.sent)
            self._settle()

    def take(self, done: int, count: int) -> None:
        """Take how many messages the keeper has passed on, and how many bytes since the last."""
        if count > self.waiting:
            raise stream.StreamError(f"The keeper passed on {count} of {self.waiting} bytes.")
        self.done, self.awaited = done, False
        self.taken += count

    def written(self) -> None:
        """Note that everything has been written to the keeper."""
        if not self.counted:
            self.taken = self.sent
            self._settle()

    def _settle(self) -> None:
        while self._ends and self._ends[0] <= self.taken:
            self._ends.popleft()
            self.done = (self.done + 1) & 0xFFFFFFFF


class PaneInput:
    """A connection to a keeper and an engine: what the user does becomes bytes for the guest."""

    def __init__(self, number: int, descriptor: int, engine: VTEngine) -> None:
        self.number = number
        self.descriptor = descriptor
        self.engine = engine
        self.news = News(number)
        self.out = bytearray()
        self.passage = Passage()
        self._told_done: int | None = 0
        self._message: bytearray | None = None
        self._dirty = self._full = True

    # -- the connection ----------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """True while the connection to the keeper stands."""
        return self.descriptor >= 0

    def close(self) -> None:
        """Close the connection; the engine stays for drawing."""
        if self.open:
            os.close(self.descriptor)
            self.descriptor = -1

    def _lose(self, why: str) -> None:
        self.close()
        self.news.state(PaneState.LOST, 0, why)

    def _write(self, data: bytes) -> None:
        if self.open:
            self.out += data
            self.writable()

    def writable(self) -> None:
        """Write what waits, as far as the connection takes it."""
        try:
            while self.out and self.open:
                written = os.write(self.descriptor, memoryview(self.out)[:WRITE])
                del self.out[:written]
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(os.strerror(error.errno or errno.EIO))
        else:
            self.passage.written()

    def _send(self, data: bytes) -> None:
        """Send input to the guest; a guest that does not read loses what is too much."""
        if self.passage.waiting + len(data) > MAX_INPUT:
            self.news.bell()
            return
        self.passage.sent += len(data)
        if self._message is None:
            self._write(stream.pieces(stream.INPUT, data))
        else:
            self._message += data

    def begin_message(self) -> None:
        """Collect the input that one message of the screen makes."""
        self._message = bytearray()

    def end_message(self) -> None:
        """Send it, if only to have it counted."""
        data, self._message = bytes(self._message or b""), None
        if self.passage.counted:
            last = max(0, (len(data) - 1) // stream.MAX_PAYLOAD) * stream.MAX_PAYLOAD
            frames = stream.pieces(stream.INPUT, data[:last])
            self._write(frames + stream.frame(stream.COUNTED, data[last:]))
        elif data:
            self._write(stream.pieces(stream.INPUT, data))
        self.passage.finish()

    def name(self, client: int, taken: int) -> None:
        """Tell the keeper whose input this is; it answers with what it has passed on already."""
        self.passage.done = taken
        self.passage.awaited = True
        self._told_done = None
        self._write(stream.frame(stream.NAME, stream.NAMED.pack(client, taken)))

    def _answer(self, replies: bytes) -> None:
        """Send the engine's answers to a guest's queries."""
        if self.passage.waiting + len(replies) <= MAX_REPLIES:
            self._send(replies)

    @property
    def passed_on(self) -> bool:
        """Whether the screen is to be told of input that was passed on."""
        return self.passage.done != self._told_done and not self.passage.awaited

    def tell_passed_on(self) -> None:
        """Tell it."""
        self._told_done = self.passage.done
        self.news.add(Up.PASSED, wire.PASSED.pack(self.passage.done))

    # -- input -------------------------------------------------------------------------------

    def typed(self, data: bytes) -> None:
        """Send what the user typed and show the newest output again, with nothing selected."""
        self.engine.copy_mode(False)
        self.engine.select_none()
        if not self.engine.scrollback().at_end:
            self.engine.scroll_to_end()
        self.touch()
        if data:
            self._send(data)

    def paste(self, text: str, flags: Paste) -> None:
        """Send a piece of what the user pastes."""
        begin, end = bool(flags & Paste.BEGIN), bool(flags & Paste.END)
        self.typed(self.engine.encode_paste(text, begin=begin, end=end))

    def mouse(self, event: MouseEvent) -> None:
        """Pass a mouse event on, or let the wheel move the page."""
        if event.action in (MouseAction.SCROLL_UP, MouseAction.SCROLL_DOWN):
            self._wheel(event)
            return
        if event.action is MouseAction.PRESS:
            self.engine.select_none()
            self.touch()
        sent = b"" if self.engine.view.copying else self.engine.encode_mouse(event)
        if sent:
            self._send(sent)

    def _wheel(self, event: MouseEvent) -> None:
        wheel = None if self.engine.view.copying else self.engine.encode_wheel(event)
        if wheel is None:
            up = event.action is MouseAction.SCROLL_UP
            self.scroll(-WHEEL_LINES if up else WHEEL_LINES)
        elif wheel:
            self._send(wheel)

    def focus(self, focused: bool) -> None:
        """Tell a guest that asked about the focus."""
        sent = self.engine.encode_focus(focused)
        if sent:
            self._send(sent)

    # -- the page ----------------------------------------------------------------------------

    def scroll(self, lines: int) -> None:
        """Move the page, negative up."""
        self.engine.scroll(lines)
        self.touch()

    def touch(self) -> None:
        """Draw again what changed: something else than the guest may have changed the page."""
        self._dirty = True

    def redraw(self) -> None:
        """Send the whole page next."""
        self._dirty = self._full = True
