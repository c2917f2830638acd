"""One pane inside the worker: its connection to the keeper, its engine, its frames."""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

from vm.terminal import stream, wire, wire_view
from vm.terminal.screen import clamp_size
from vm.terminal.wire import Copy, PaneState, Rate, Up
from vm.terminal.wire_frame import pack_frame
from vm.terminal.worker_input import PaneInput
from vm.terminal.worker_news import NEVER

if TYPE_CHECKING:
    from vm.terminal.engine import VTEngine
    from vm.terminal.screen import Frame

READ = 65_536
"""Bytes read from one connection before the others get their turn (1 … 2 ms of parsing)."""

INTERVALS = {Rate.FOCUSED: 1 / 60, Rate.VISIBLE: 1 / 12}
"""Seconds between frames; a hidden pane is parsed and not drawn."""

HOLD = 0.15
"""Seconds that a guest may hold drawing back (synchronised output)."""

REPLAY = 1.0
"""Seconds after which a replay that goes on is shown as it stands."""

RESIZE = 0.05
"""Seconds between two sizes: wrapping 10,000 rows anew takes 15 ms."""

WORK = 0.008
"""Seconds of one turn that a search may take."""


class WorkerPane(PaneInput):
    """A terminal: bytes from the keeper into the engine, frames and news to the screen."""

    def __init__(
        self, number: int, descriptor: int, engine: VTEngine, rate: Rate, *, active: bool
    ) -> None:
        super().__init__(number, descriptor, engine)
        self.rate = rate
        self.active = active
        self._reader = stream.FrameReader()
        self._wish = self._guest_size = engine.size
        self._holds = True
        self._quiet = False
        self._replaying = True
        self._ended = False
        self._started = time.monotonic()
        self._held_since: float | None = None
        self._told: Frame | None = None
        self._sent = self._acked = 0
        self._last_frame = self._last_size = 0.0
        self._working = self._size_waits = False
        if active:
            self.hold(stream.WILLING)

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
                columns, rows = self._guest_size = _size(payload)
                self._resized(columns, rows)
            elif kind == stream.TAKEN:
                self._passed(payload)
            elif kind == stream.HOLD:
                self._held_by(payload)
            elif kind == stream.PROGRAM_FRAME:
                self._running(payload)
            elif kind == stream.REPLAYED:
                self._replayed()
            elif kind == stream.EXITED:
                (status,) = stream.unpack(stream.STATUS, payload)
                self._ended = True
                self.news.state(PaneState.ENDED, status)
        if consumed:
            self._write(stream.frame(stream.ACK, stream.COUNT.pack(consumed)))

    def _feed(self, data: bytes) -> None:
        self.engine.feed(data)
        self._dirty = True
        if self._ended:
            # the connection outlives a terminal: a resumed session has a new one
            self._ended = False
            self.news.state(PaneState.LIVE, 0)
        replies = self.engine.take_replies()
        if replies and not self._replaying:
            self._answer(replies)
        self.news.note(self.engine.take_happenings(), replaying=self._replaying)
        if not self.engine.held:
            self._held_since = None
        elif self._held_since is None:
            self._held_since = time.monotonic()

    def _resized(self, columns: int, rows: int) -> None:
        if clamp_size(columns, rows) != self.engine.size:
            self.engine.resize(columns, rows)
            self.redraw()

    def _replayed(self) -> None:
        self._replaying = False
        self.redraw()
        self.passage.awaited &= self.passage.counted
        if self.passage.awaited:
            self._quiet = True  # or the screen would send again what the guest has already
        else:
            self._say_live()
        self._ask_size()

    def _say_live(self) -> None:
        self._quiet = False
        if self.passed_on:
            self.tell_room()
        if not self._ended:
            self.news.state(PaneState.LIVE, 0)

    def _passed(self, payload: bytes) -> None:
        done, count = stream.unpack(stream.PASSED, payload)
        self.passage.take(done, count)
        if self._quiet:
            self._say_live()

    def _running(self, payload: bytes) -> None:
        """Take which program runs; a keeper that says so says as well what it passes on."""
        self.passage.counted = True
        self.news.add(Up.PROGRAM, wire.PROGRAM.pack(*stream.unpack(stream.PROGRAM, payload)))

    # -- who holds the terminal --------------------------------------------------------------

    def hold(self, what: int) -> None:
        """Tell the keeper whether this client wants the terminal."""
        self._write(stream.frame(stream.HOLD, bytes([what])))

    def _held_by(self, payload: bytes) -> None:
        holds, clients = stream.unpack(stream.HOLDER, payload)
        before, self._holds = self._holds, bool(holds)
        self.news.add(Up.HOLDER, wire.HOLDER.pack(self._holds, clients))
        if not self._holds:
            self._resized(*self._guest_size)
        elif not before and not self._replaying:
            self._ask_size()

    # -- the size ----------------------------------------------------------------------------

    def resize(self, columns: int, rows: int) -> None:
        """Take the view's size; an active pane makes it the guest's."""
        self._wish = clamp_size(columns, rows)
        self._size_waits = not self._replaying
        self._settle_size(time.monotonic())

    def _settle_size(self, now: float) -> None:
        """Take the size that was asked for last, unless one was taken a moment ago."""
        if self._size_waits and now >= self._last_size + RESIZE:
            self._last_size = now
            self._size_waits = False
            self._ask_size()

    def set_active(self, active: bool) -> None:
        """Say whether the view's size is the guest's, if nobody else holds the terminal."""
        self.active = active
        self.hold(stream.WILLING if active else stream.WATCH)
        if active and not self._replaying:
            self._ask_size()

    def _ask_size(self) -> None:
        """Resize the engine first, then the guest, so that what it draws next finds room.

        A client that only watches tells its size for the day on which it holds the terminal.
        """
        if self.active:
            if self._holds:
                self._resized(*self._wish)
            self._write(stream.frame(stream.RESIZE, stream.SIZE.pack(*self._wish)))

    # -- frames ------------------------------------------------------------------------------

    def ack(self, number: int) -> None:
        """Note that a frame is on the screen."""
        if number == self._sent & 0xFFFFFFFF:
            self._acked = self._sent

    def touch(self) -> None:
        """Draw again what changed, and let the engine go on with what takes long."""
        super().touch()
        self._working = True

    def due(self, now: float) -> float:
        """Return when there is something to do, in seconds of the monotonic clock."""
        if self._working or self.passed_on:
            return now
        size_due = self._last_size + RESIZE if self._size_waits else NEVER
        return min(self.news.due(now), self._frame_due(), size_due)

    def _frame_due(self) -> float:
        interval = INTERVALS.get(self.rate)
        if interval is None or not self._dirty or self._sent != self._acked:
            return NEVER
        when = self._last_frame + interval
        if self._replaying and self.open:
            when = max(when, self._started + REPLAY)
        if self._held_since is not None and not self.engine.view.copying:
            when = max(when, self._held_since + HOLD)
        return when

    def collect(self, now: float) -> bytes:
        """Do what is due and return the messages."""
        self._settle_size(now)
        if self._working:
            self._working = self.engine.work(WORK)
            self._dirty = True
        if self.passed_on:
            self.tell_room()
        parts = self.news.take(now)
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


def _size(payload: bytes) -> tuple[int, int]:
    columns, rows = stream.unpack(stream.SIZE, payload)
    return columns, rows
