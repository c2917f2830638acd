"""One pane inside the worker: its connection to the keeper, its engine, its frames."""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

from vm.terminal import stream, wire, wire_view
from vm.terminal.screen import Happenings, MouseAction, clamp_size
from vm.terminal.wire import Copy, PaneState, Rate, Up
from vm.terminal.wire_frame import pack_frame
from vm.terminal.wire_view import Paste

if TYPE_CHECKING:
    from vm.terminal.engine import VTEngine
    from vm.terminal.screen import Frame, MouseEvent

READ = 65_536
"""Bytes read from one connection before the others get their turn (1 … 2 ms of parsing)."""

INTERVALS = {Rate.FOCUSED: 1 / 60, Rate.VISIBLE: 1 / 12}
"""Seconds between frames; a hidden pane is parsed and not drawn."""

HOLD = 0.15
"""Seconds that a guest may hold drawing back (synchronised output)."""

REPLAY = 1.0
"""Seconds after which a replay that goes on is shown as it stands."""

HAPPENINGS = 0.1
"""Seconds between reports of titles, bells and the like; what comes meanwhile is merged."""

MAX_INPUT = 4 << 20
"""Bytes of input that wait for a guest that does not read; more is dropped with a bell."""

WHEEL_LINES = 3
NEVER = float("inf")


class WorkerPane:
    """A terminal: bytes from the keeper into the engine, the user's input to the keeper."""

    def __init__(
        self, number: int, descriptor: int, engine: VTEngine, rate: Rate, *, active: bool
    ) -> None:
        self.number = number
        self.descriptor = descriptor
        self.engine = engine
        self.rate = rate
        self.active = active
        self.out = bytearray()
        self._reader = stream.FrameReader()
        self._wish = engine.size
        self._happened = Happenings()
        self._replaying = True
        self._ended = False
        self._started = time.monotonic()
        self._held_since: float | None = None
        self._dirty = self._full = True
        self._told: Frame | None = None
        self._sent = self._acked = 0
        self._last_frame = self._last_report = 0.0
        self._reports: list[bytes] = []

    @property
    def open(self) -> bool:
        """True while the connection to the keeper stands."""
        return self.descriptor >= 0

    def close(self) -> None:
        """Close the connection; the engine stays for drawing."""
        if self.open:
            os.close(self.descriptor)
            self.descriptor = -1

    # -- the keeper's side -------------------------------------------------------------------

    def readable(self) -> None:
        """Read once and feed the engine."""
        try:
            data = os.read(self.descriptor, READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(os.strerror(error.errno or errno.EIO))
            return
        if not data:
            self._lose("the keeper closed the terminal")
            return
        try:
            self._take(data)
        except stream.StreamError as error:
            self._lose(error.message)

    def _take(self, data: bytes) -> None:
        consumed = 0
        for kind, payload in self._reader.feed(data):
            if kind == stream.OUTPUT:
                consumed += len(payload)
                self._feed(payload)
            elif kind == stream.SIZE_FRAME:
                self._resized(*stream.unpack(stream.SIZE, payload))
            elif kind == stream.REPLAYED:
                self._replayed()
            elif kind == stream.EXITED:
                (status,) = stream.unpack(stream.STATUS, payload)
                self._ended = True
                self._state(PaneState.ENDED, status)
        if consumed:
            self._write(stream.frame(stream.ACK, stream.COUNT.pack(consumed)))

    def _feed(self, data: bytes) -> None:
        self.engine.feed(data)
        self._dirty = True
        if self._ended:
            # the connection outlives a terminal: a resumed session has a new one
            self._ended = False
            self._state(PaneState.LIVE, 0)
        replies = self.engine.take_replies()
        if replies and not self._replaying:
            self._send(replies)
        self._note(self.engine.take_happenings())
        if not self.engine.held:
            self._held_since = None
        elif self._held_since is None:
            self._held_since = time.monotonic()

    def _note(self, news: Happenings) -> None:
        """Merge what happened; of a replay only what still holds counts."""
        kept = self._happened
        kept.title = news.title if news.title is not None else kept.title
        kept.folder = news.folder if news.folder is not None else kept.folder
        if self._replaying:
            return
        kept.bell |= news.bell
        kept.clipboard = news.clipboard if news.clipboard is not None else kept.clipboard
        kept.notification = news.notification or kept.notification
        kept.progress = news.progress or kept.progress

    def _resized(self, columns: int, rows: int) -> None:
        if clamp_size(columns, rows) != self.engine.size:
            self.engine.resize(columns, rows)
            self._dirty = self._full = True

    def _replayed(self) -> None:
        self._replaying = False
        self._dirty = self._full = True
        self._state(PaneState.LIVE, 0)
        self._ask_size()

    def _lose(self, why: str) -> None:
        self.close()
        self._state(PaneState.LOST, 0, why)

    def _state(self, state: PaneState, status: int, why: str = "") -> None:
        payload = wire.STATE.pack(state, status) + wire.pack_texts(why)
        self._reports.append(wire.message(Up.STATE, self.number, payload))

    # -- the user's side ---------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        """Send input to the guest; a guest that does not read loses what is too much."""
        if len(self.out) + len(data) > MAX_INPUT:
            self._happened.bell = True
            return
        self._write(stream.pieces(stream.INPUT, data))

    def _write(self, data: bytes) -> None:
        if self.open:
            self.out += data
            self.writable()

    def writable(self) -> None:
        """Write what waits, as far as the connection takes it."""
        try:
            while self.out and self.open:
                written = os.write(self.descriptor, memoryview(self.out)[:READ])
                del self.out[:written]
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(os.strerror(error.errno or errno.EIO))

    def typed(self, data: bytes) -> None:
        """Send what the user typed and show the newest output again."""
        if not self.engine.scrollback().at_end:
            self.scroll(None)
        if data:
            self._send(data)

    def paste(self, text: str, flags: Paste) -> None:
        """Send a piece of what the user pastes."""
        begin, end = bool(flags & Paste.BEGIN), bool(flags & Paste.END)
        self.typed(self.engine.encode_paste(text, begin=begin, end=end))

    def mouse(self, event: MouseEvent) -> None:
        """Pass a mouse event on, or let the wheel move the page."""
        if event.action not in (MouseAction.SCROLL_UP, MouseAction.SCROLL_DOWN):
            sent = self.engine.encode_mouse(event)
            if sent:
                self._send(sent)
            return
        wheel = self.engine.encode_wheel(event)
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

    def scroll(self, lines: int | None) -> None:
        """Move the page, or show the newest output when None."""
        if lines is None:
            self.engine.scroll_to_end()
        else:
            self.engine.scroll(lines)
        self._dirty = True

    def resize(self, columns: int, rows: int) -> None:
        """Take the view's size; an active pane makes it the guest's."""
        self._wish = clamp_size(columns, rows)
        if not self._replaying:
            self._ask_size()

    def set_active(self, active: bool) -> None:
        """Say whether the view's size is the guest's."""
        self.active = active
        if active and not self._replaying:
            self._ask_size()

    def _ask_size(self) -> None:
        """Resize the engine first, then the guest, so that what it draws next finds room."""
        if self.active:
            self._resized(*self._wish)
            self._write(stream.frame(stream.RESIZE, stream.SIZE.pack(*self._wish)))

    def ack(self, number: int) -> None:
        """Note that a frame is on the screen."""
        if number == self._sent & 0xFFFFFFFF:
            self._acked = self._sent

    def touch(self) -> None:
        """Draw again what changed: something else than the guest may have changed the page."""
        self._dirty = True

    def redraw(self) -> None:
        """Send the whole page next."""
        self._dirty = self._full = True

    # -- frames ------------------------------------------------------------------------------

    def due(self, now: float) -> float:
        """Return when there is something to send, in seconds of the monotonic clock."""
        when = now if self._reports else NEVER
        if self._happened:
            when = min(when, self._last_report + HAPPENINGS)
        return min(when, self._frame_due())

    def _frame_due(self) -> float:
        interval = INTERVALS.get(self.rate)
        if interval is None or not self._dirty or self._sent != self._acked:
            return NEVER
        when = self._last_frame + interval
        if self._replaying and self.open:
            when = max(when, self._started + REPLAY)
        if self._held_since is not None:
            when = max(when, self._held_since + HOLD)
        return when

    def collect(self, now: float) -> bytes:
        """Return the messages that are due."""
        parts = list(self._reports)
        self._reports.clear()
        if self._happened and now >= self._last_report + HAPPENINGS:
            self._last_report = now
            parts += self._report()
        if now >= self._frame_due():
            parts.append(self._frame(now))
        return b"".join(parts)

    def _frame(self, now: float) -> bytes:
        frame = self.engine.frame(full=self._full)
        self._dirty = self._full = False
        self._held_since = None
        rest = frame._replace(rows={})
        if not frame.rows and rest == self._told:
            return b""  # and the next change is drawn at once, not an interval later
        self._told = rest
        self._last_frame = now
        self._sent += 1
        return wire.message(Up.FRAME, self.number, pack_frame(self._sent, frame))

    def _report(self) -> list[bytes]:
        """Return messages for what happened, one of each kind."""
        it, self._happened = self._happened, Happenings()
        texts = [(Up.TITLE, it.title), (Up.FOLDER, it.folder), (Up.CLIPBOARD, it.clipboard)]
        found = [
            wire.message(kind, self.number, wire.pack_texts(text))
            for kind, text in texts
            if text is not None
        ]
        if it.bell:
            found.append(wire.message(Up.BELL, self.number))
        if it.notification is not None:
            found.append(wire.message(Up.NOTIFY, self.number, wire.pack_texts(*it.notification)))
        if it.progress is not None:
            state, value = it.progress
            payload = wire.PROGRESS.pack(state & 0x7F, max(-1, min(value, 100)))
            found.append(wire.message(Up.PROGRESS, self.number, payload))
        return found

    # -- text on request ---------------------------------------------------------------------

    def copy(self, payload: bytes) -> bytes:
        """Answer a request for text."""
        request, what, x0, y0, x1, y1, rectangle = wire.exactly(wire.COPY, payload)
        if what == Copy.RANGE:
            text = self.engine.selection_text((x0, y0), (x1, y1), rectangle=bool(rectangle))
        elif what == Copy.SELECTION:
            text = self.engine.selected_text()
        else:
            text = self.engine.text(scrollback=what == Copy.ALL)
        # of a whole terminal the newest text counts
        answer = wire_view.pack_copied(request, text, newest=what in (Copy.SCREEN, Copy.ALL))
        return wire.message(Up.COPIED, self.number, answer)
