"""Python's garbage collection at moments when nobody types.

A full collection walks every object of the program: with a file of 50,000 lines in the review that
is 60 ms in which no key is answered. So what lives long is set apart (frozen), full collections do
not happen by themselves, and they are made up for when nothing was typed for a moment.
"""

from __future__ import annotations

import gc
import time

YOUNG, MIDDLE = 10_000, 1000
"""New objects before a small collection (2 ms), and small ones before one that walks all that
outlived them (15 ms). Python's own are made for programs that hold less (700 and 10)."""

NEVER = 1_000_000_000

REST_SECONDS = 2.0
"""Nothing was typed for this long: a pause of some hundredths of a second is not felt."""

WORTH_IT = 60
"""Small collections since the last full one that make another one worth its time."""

OVERDUE = 8000
"""Small collections after which a full one does not wait for a pause any more."""


class Housekeeping:
    """Collects garbage when the user rests. Use `begin` once the program stands."""

    def __init__(self) -> None:
        self._touched = time.monotonic()
        self._before: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """Take collections over.

        What is there is set apart without a look: a full collection would hold the first screen up,
        and the first rest makes up for it.
        """
        if self._before is None:
            self._before = gc.get_threshold()
            gc.set_threshold(YOUNG, MIDDLE, NEVER)
            gc.freeze()

    def touched(self) -> None:
        """Note that the user did something."""
        self._touched = time.monotonic()

    def tick(self) -> bool:
        """Collect if it is time to; tells whether it was."""
        _, small, middle = gc.get_count()
        waiting = small + middle * MIDDLE
        rests = time.monotonic() - self._touched >= REST_SECONDS
        if self._before is None or waiting < WORTH_IT or not (rests or waiting >= OVERDUE):
            return False
        self.collect()
        return True

    def collect(self) -> None:
        """Free what nobody can reach, and set apart what is left."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def end(self) -> None:
        """Give collections back to Python."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            gc.unfreeze()
            self._before = None
