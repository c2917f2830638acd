"""The keeper's side of one pane inside the worker: output into the engine, sizes, holding."""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from typing import TYPE_CHECKING

from vm.terminal import stream, wire
from vm.terminal.screen import clamp_size
from vm.terminal.wire import PaneState, Up
from vm.terminal.worker_input import PaneInput

if TYPE_CHECKING:
    from vm.terminal.engine import VTEngine

READ = 65_536
"""Bytes read from one connection before the others get their turn (1 … 2 ms of parsing)."""

TURN = 0.004
"""Seconds of parsing after which everything else gets its turn."""

PIECE, REPLAY_PIECE, MIN_PIECE = 2048, 16_384, 64
"""Bytes that the engine gets at once; it looks at no clock itself. Nobody types into a replay."""

RESIZE = 0.05
"""Seconds between two sizes: wrapping 10,000 rows anew takes 15 ms."""


class PaneOutput(PaneInput):
    """A terminal that follows what its keeper sends."""

    def __init__(self, number: int, descriptor: int, engine: VTEngine, flags: int) -> None:
        super().__init__(number, descriptor, engine)
        self.active = bool(flags & wire.ACTIVE)
        self._careful = bool(flags & wire.CAREFUL)
        self._first_wish = stream.TAKE if flags & wire.HELD else stream.WILLING
        self.passage.awaited = bool(flags & wire.NAMED)
        self._reader = stream.FrameReader()
        self._inbox: deque[tuple[int, bytes]] = deque()
        self._at, self._piece = 0, PIECE  # place in the first output that waits
        self._wish = self._guest_size = engine.size
        self._holds = True
        self._quiet = False
        self._replaying = True
        self._ended = False
        self._held_since: float | None = None
        self._last_size = 0.0
        self._size_waits = False
        if not flags & wire.NAMED:
            self._wish_first()

    def name(self, client: int, taken: int) -> None:
        """Tell the keeper whose input this is, and only then take the terminal.

        What a connection that this one replaces left behind would be a watcher's otherwise, and
        dropped.
        """
        super().name(client, taken)
        # a keeper that has sent its replay without saying that it counts never answers
        self.passage.awaited = self._replaying or self.passage.counted
        self._wish_first()

    def _wish_first(self) -> None:
        if self.active:
            self.hold(self._first_wish)

    # -- the keeper's side -------------------------------------------------------------------

    def readable(self) -> None:
        """Read once, unless output waits that was read before, and parse."""
        if self._inbox:
            self.parse()
            return
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
            self._inbox.extend(self._reader.feed(data))
        except stream.StreamError as error:
            self._lose(error.message)
            return
        self.parse()

    @property
    def behind(self) -> bool:
        """True while output waits that was read and not parsed."""
        return bool(self._inbox)

    def parse(self) -> None:
        """Take what the keeper sent, for about a turn."""
        end = time.monotonic() + TURN
        consumed = told = 0
        while self._inbox and time.monotonic() < end:
            kind, payload = self._inbox[0]
            if kind == stream.OUTPUT:
                consumed += self._feed(payload)
                continue
            self._inbox.popleft()
            if consumed > told:
                self._fed()  # what the engine says of output belongs before what follows
                told = consumed
            self._heard(kind, payload)
        if consumed > told:
            self._fed()
        if consumed:
            self._write(stream.frame(stream.ACK, stream.COUNT.pack(consumed)))

    def _heard(self, kind: int, payload: bytes) -> None:
        try:
            self._understand(kind, payload)
        except stream.StreamError as error:
            self._lose(error.message)

    def _understand(self, kind: int, payload: bytes) -> None:
        if kind == stream.SIZE_FRAME:
            self._guest_size = _size(payload)
            if not (self._careful and self._replaying):
                self._resized(*self._guest_size)
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

    def _feed(self, payload: bytes) -> int:
        """Feed the next piece of the first output that waits; return how many bytes it had.

        A few bytes can ask for much work (to repeat a character 65,535 times), so pieces get small
        when they take long.
        """
        begin = time.monotonic()
        most = REPLAY_PIECE if self._replaying else PIECE
        piece = payload[self._at : self._at + min(self._piece, most)]
        self._at += len(piece)
        if self._at >= len(payload):
            self._inbox.popleft()
            self._at = 0
        if self._ended:
            # the connection outlives a terminal: a resumed session has a new one
            self._ended = False
            self.news.state(PaneState.LIVE, 0)
        self.engine.feed(piece)
        slow = time.monotonic() > begin + TURN
        self._piece = max(MIN_PIECE, self._piece // 4) if slow else min(most, self._piece * 2)
        return len(piece)

    def _fed(self) -> None:
        """Take what the engine says after it was fed."""
        self._dirty = True
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
        if not self._holds:
            self._resized(*self._guest_size)
        self._ask_size()

    def _say_live(self) -> None:
        self._quiet = False
        if self.passed_on:
            self.tell_passed_on()
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


def _size(payload: bytes) -> tuple[int, int]:
    columns, rows = stream.unpack(stream.SIZE, payload)
    return columns, rows
