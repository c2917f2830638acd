"""How many lines the rows of a diff take when long ones wrap, measured where somebody looks.

Measuring takes 3 ms a thousand rows, so rows are measured in blocks when they are about to be
seen; until then a row counts as one line. Measuring a block moves only what stands below it.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BLOCK: Final = 512
"""Rows that are measured at once: more than the tallest screen shows."""


class Heights:
    """Rows and the lines they take. `measure(start, stop)` returns the heights of some rows."""

    def __init__(self, count: int, measure: Callable[[int, int], Sequence[int]]) -> None:
        self.count = count
        self._measure = measure
        self._sizes = [min(BLOCK, count - start) for start in range(0, count, BLOCK)]
        self._inner: dict[int, list[int]] = {}
        self._tops = [0, *itertools.accumulate(self._sizes)]

    @property
    def total(self) -> int:
        """Lines of all rows, those that were not measured counted as one."""
        return self._tops[-1]

    def see(self, row: int) -> None:
        """Measure the block of a row and the one above, so that a step back moves nothing."""
        if 0 <= row < self.count:
            for block in (row // BLOCK - 1, row // BLOCK):
                if block >= 0 and block not in self._inner:
                    self._measure_block(block)

    def _measure_block(self, block: int) -> None:
        start = block * BLOCK
        heights = self._measure(start, min(start + BLOCK, self.count))
        inner = [0, *itertools.accumulate(heights)]
        self._inner[block] = inner
        if inner[-1] != self._sizes[block]:
            self._sizes[block] = inner[-1]
            self._tops = [0, *itertools.accumulate(self._sizes)]

    def top_of(self, row: int) -> int:
        """Return the first line of a row, as far as it is known."""
        block, offset = divmod(max(0, min(row, self.count)), BLOCK)
        inner = self._inner.get(block)
        return self._tops[block] + (offset if inner is None else inner[offset])

    def place(self, y: int) -> tuple[int, int]:
        """Return the row on line `y` and the line inside of the row; measures what is there."""
        if not self.count:
            return 0, 0
        y = max(0, y)
        block = self._block_at(y)
        while block not in self._inner:
            self._measure_block(block)
            block = self._block_at(y)
        inner = self._inner[block]
        inside = min(y - self._tops[block], inner[-1] - 1)
        offset = bisect_right(inner, inside) - 1
        return block * BLOCK + offset, inside - inner[offset]

    def _block_at(self, y: int) -> int:
        return min(bisect_right(self._tops, y) - 1, len(self._sizes) - 1)
