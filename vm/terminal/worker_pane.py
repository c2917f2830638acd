"""One pane inside the worker: its connection to the keeper, its engine, its frames."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from vm.terminal import wire, wire_view
from vm.terminal.wire import Copy, Rate, Up
from vm.terminal.wire_frame import pack_frame
from vm.terminal.worker_news import NEVER
from vm.terminal.worker_output import RESIZE, PaneOutput

if TYPE_CHECKING:
    from vm.terminal.engine import VTEngine
    from vm.terminal.screen import Frame

INTERVALS = {Rate.FOCUSED: 1 / 60, Rate.VISIBLE: 1 / 12}
"""Seconds between frames; a hidden pane is parsed and not drawn."""

HOLD = 0.15
"""Seconds that a guest may hold drawing back (synchronised output)."""

REPLAY = 1.0
"""Seconds after which a replay that goes on is shown as it stands."""

WORK = 0.008
"""Seconds of one turn that a search may take."""


class WorkerPane(PaneOutput):
    """A terminal: bytes from the keeper into the engine, frames and news to the screen."""

    def __init__(
        self, number: int, descriptor: int, engine: VTEngine, rate: Rate, flags: int
    ) -> None:
        """Take a connection; `flags` are those of OPEN."""
        super().__init__(number, descriptor, engine, flags)
        self.rate = rate
        self._started = time.monotonic()
        self._told: Frame | None = None
        self._sent = self._acked = 0
        self._last_frame = 0.0
        self._working = False

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
        if self._working or self.passed_on or self._inbox:
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
            self.tell_passed_on()
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
        request, what = wire.exactly(wire.COPY, payload)
        if what == Copy.SELECTION:
            text = self.engine.selected_text()
        else:
            text = self.engine.text(scrollback=what == Copy.ALL)
        # of a whole terminal the newest text counts
        answer = wire_view.pack_copied(request, text, newest=what in (Copy.SCREEN, Copy.ALL))
        return wire.message(Up.COPIED, self.number, answer)
