"""The blinking of a cursor: only where the keys are, and only for as long as somebody types."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.timer import Timer
    from textual.widget import Widget

BLINK_S = 0.53
"""Seconds of light and of dark, as most terminals blink."""

BLINK_FOR_S = 10.0
"""Seconds after the last key or move for which it blinks; then it stays lit and costs nothing."""


class Blink:
    """Turns a cursor's light on and off."""

    def __init__(self, owner: Widget, show: Callable[[bool], None]) -> None:
        """Take who lends timers, and what is called with the new light."""
        self._owner, self._show = owner, show
        self._timer: Timer | None = None
        self._lit = True
        self._until = 0.0

    def touch(self, *, blinks: bool) -> None:
        """Be lit, and blink from now on if it blinks at all."""
        self._until = time.monotonic() + BLINK_FOR_S
        self._set(lit=True)
        if not blinks:
            self.stop()
        elif self._timer is None:
            self._timer = self._owner.set_interval(BLINK_S, self._turn)
        else:
            self._timer.reset()

    def stop(self) -> None:
        """Be lit and stay so."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._set(lit=True)

    def _turn(self) -> None:
        if time.monotonic() > self._until:
            self.stop()
        else:
            self._set(lit=not self._lit)

    def _set(self, *, lit: bool) -> None:
        if lit != self._lit:
            self._lit = lit
            self._show(lit)
