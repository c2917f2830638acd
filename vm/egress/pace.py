"""How much of the link may be used while somebody types into the machine.

A guest whose network runs at full speed spends both its processors on that, and under emulation
each of its large frames takes a good part of a millisecond there: an echo waits for several of
them. For as long as keys come, bytes go at a pace that leaves most of that time to the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

RATE: Final = 4_000_000
"""Bytes a second, each way. Measured with `tests.bench.egress_guest`: an emulated guest on two
cores carries twenty times as much, and at twice this pace an echo sometimes took twice its time."""

TYPING_S: Final = 2.0
"""How long after a key the pace is kept: longer than the pause between two keys."""


class Pace:
    """A pace in bytes a second, as a debt that time pays back. Pure: time is passed in."""

    __slots__ = ("_at", "_debt", "_rate")

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._debt = self._at = 0.0

    def spend(self, count: int, now: float) -> None:
        """Note that so many bytes went."""
        self._debt = self.wait(now) + count / self._rate
        self._at = now

    def wait(self, now: float) -> float:
        """Return for how many seconds nothing more may go."""
        return max(0.0, self._debt - (now - self._at))


class Brake:
    """Holds one direction of a link back while a pace is kept; `go_on` is called when it is over.

    Without a pace nothing is ever held.
    """

    __slots__ = ("_go_on", "_loop", "_pace", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, go_on: Callable[[], None]) -> None:
        self._loop = loop
        self._go_on = go_on
        self._pace: Pace | None = None
        self._timer: asyncio.TimerHandle | None = None

    def keep(self, kept: bool) -> None:
        """Begin to keep the pace, or let go at once."""
        if kept:
            self._pace = self._pace or Pace(RATE)
            return
        self._pace = None
        if self._timer is not None:
            self._timer.cancel()
            self._over()

    def spend(self, count: int) -> None:
        """Note that so many bytes went."""
        if self._pace is not None:
            self._pace.spend(count, self._loop.time())

    def holds(self) -> bool:
        """Tell whether nothing may go now; then `go_on` follows."""
        if self._timer is None and self._pace is not None:
            now = self._loop.time()
            if wait := self._pace.wait(now):
                self._timer = self._loop.call_at(now + wait, self._over)
        return self._timer is not None

    def _over(self) -> None:
        self._timer = None
        self._go_on()

    def close(self) -> None:
        """Hold nothing any more, and tell nobody."""
        self._pace = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
