"""What a worker says of its pane, checked before anything is done with it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from app.ui.pane_actions import PaneActions
from vm.terminal import wire
from vm.terminal.wire import Down, PaneState, Rate, Up, WireError
from vm.terminal.wire_frame import unpack_frame

if TYPE_CHECKING:
    from app.ui.panes import PaneHub
    from vm.terminal.wire import Message

UNPAINTED_S: Final = 0.25
"""A view that has not painted by then does not hold up the next frame."""

UNPAINTED_MAX_S: Final = 2.0
"""Nor does one that never paints (something covers it), but it gets a frame only so often."""

SHARE: Final = 8
"""A pane in the background gets its next frame after so many times what reading the last one took.
Drawing takes about as long again, so a guest that paints each cell in a colour of its own (reading
200x60 such cells takes 100 ms) takes a fifth of the screen's time. Usual frames take 1 … 3 ms."""

HANG_S: Final = 5.0
"""Seconds of silence after which a worker that has input is asked for a sign of life, and after
which it is ended if it gives none: an engine that loops for ever would be a pane that froze."""


class PaneTalk(PaneActions):
    """Takes what the worker says; `painted` lets it go on."""

    def __init__(self, hub: PaneHub, size: tuple[int, int], *, active: bool) -> None:
        super().__init__(size, active=active)
        self._hub = hub
        self._over = asyncio.Event()
        self._unpainted: int | None = None
        self._late = 0
        self._next_frame = 0.0
        self._is_painted = False
        self._patience: asyncio.TimerHandle | None = None
        self._program: int | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._heard = self._asked = 0

    def heard(self, message: Message) -> None:
        """Take a message of the worker about this pane. Raises WireError when it is none."""
        self._heard += 1
        if message.kind == Up.FRAME:
            self._framed(message.payload)
        elif message.kind == Up.STATE:
            self._stated(message.payload)
        elif message.kind == Up.PASSED:
            self._passed_on(message.payload)
        elif message.kind == Up.COPIED:
            self._copied(message.payload)
        elif message.kind == Up.HOLDER:
            self._holding(message.payload)
        elif message.kind == Up.PROGRAM:
            self._running(message.payload)
        else:
            self.happened(message)

    # -- frames ------------------------------------------------------------------------------

    def _framed(self, payload: bytes) -> None:
        begin = time.monotonic()
        number, frame = unpack_frame(payload)
        self._settle(number)
        self._next_frame = float("inf")  # a view may say that it has painted while it is told
        watched = self._rate is not Rate.HIDDEN and self.listener is not None
        drawn = self.show(frame, self._hub.maker)
        now = time.monotonic()
        self._next_frame = now + SHARE * (now - begin)
        if drawn and watched and not self._is_painted:
            wait = min(UNPAINTED_S * 2**self._late, UNPAINTED_MAX_S)
            self._patience = asyncio.get_running_loop().call_later(wait, self._not_painted)
        else:
            self._acknowledge_in_turn()

    def _settle(self, number: int | None) -> None:
        """Note the frame that waits for its ack (None: none does)."""
        self._unpainted = number
        self._is_painted = False
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _not_painted(self) -> None:
        self._late = min(self._late + 1, 10)
        self._acknowledge()

    def painted(self) -> None:
        """Say that the last change is on the screen; the next one may have to wait."""
        self._late = 0
        self._is_painted = True
        if self._next_frame != float("inf"):
            self._acknowledge_in_turn()

    def _acknowledge_in_turn(self) -> None:
        """Let the worker send the next frame, of a pane in the background not too soon."""
        wait = self._next_frame - time.monotonic()
        if self._rate is not Rate.VISIBLE or wait <= 0:
            self._acknowledge()
        elif self._unpainted is not None:
            self._settle(self._unpainted)
            self._patience = asyncio.get_running_loop().call_later(wait, self._acknowledge)

    def _acknowledge(self) -> None:
        number = self._unpainted
        if number is not None:
            self._settle(None)
            self._say(Down.ACK, wire.NUMBER.pack(number))

    # -- a worker that hangs -----------------------------------------------------------------

    def _pump(self) -> None:
        super()._pump()
        if self._queue.flying and self._watchdog is None:
            self._asked = -1
            self._watchdog = asyncio.get_running_loop().call_later(HANG_S, self._look)

    def _look(self) -> None:
        """Ask a silent worker for a sign of life; end one that was asked in vain."""
        self._watchdog = None
        if self._link is None or not self._queue.flying:
            return
        if self._asked == self._heard:
            self._link.kill()
            return
        self._asked = self._heard
        self._say(Down.COPY, wire.COPY.pack(0, wire.Copy.SCREEN))
        self._watchdog = asyncio.get_running_loop().call_later(HANG_S, self._look)

    # -- the terminal ------------------------------------------------------------------------

    def _stated(self, payload: bytes) -> None:
        state, status = wire.exactly(wire.STATE, payload[: wire.STATE.size])
        (why,) = wire.unpack_texts(payload[wire.STATE.size :], 1, 4096)
        if state == PaneState.LIVE:
            self._enter("live", None, "")
        elif state == PaneState.ENDED:
            self._enter("ended", status, f"The program ended with status {status}.")
        elif state == PaneState.LOST:
            self._queue.again()
            self._enter("lost", None, f"The terminal was lost: {wire.one_line(why, 200)}.")
            self._over.set()
        else:
            raise WireError(f"There is no state {state}.")

    def _passed_on(self, payload: bytes) -> None:
        (taken,) = wire.exactly(wire.PASSED, payload)
        if not self._queue.taken(taken):
            raise WireError(f"The worker passed on {taken} messages, more than it got.")
        self._pump()

    def _holding(self, payload: bytes) -> None:
        """Take who holds the terminal: without another client, nobody else can."""
        holds, clients = wire.exactly(wire.HOLDER, payload)
        self._held = bool(holds)
        self._hold(not holds and clients > 1)

    def _running(self, payload: bytes) -> None:
        """Take which program runs; what was typed for another one is not for it."""
        (program,) = wire.exactly(wire.PROGRAM, payload)
        if self._program not in (None, program) and self._state != "live":
            self._drop("Another program runs now")
        self._program = program
