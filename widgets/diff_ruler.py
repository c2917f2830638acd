"""The overview column of a diff: where the hunks of the whole file lie and which part shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from widgets.diff_sheet import DiffSheet

TOKENS = {
    "accepted": "success",
    "rejected": "error",
    "mixed": "warning",
    "open": "muted",
    "shown": "muted",
}
RANK = {"open": 3, "shown": 3, "mixed": 2, "rejected": 1, "accepted": 0}
"""What is undecided must show even where several hunks share a cell."""


@dataclass(frozen=True, slots=True)
class Overview:
    """For each cell of the column the decision of the hunk there, or nothing."""

    cells: tuple[str, ...]
    total: int
    drawn: dict[tuple[int, int], Sequence[Segment]] = field(
        default_factory=dict[tuple[int, int], "Sequence[Segment]"], compare=False
    )
    """The column for each part that was in sight."""

    @classmethod
    def of(cls, pane: DiffSheet) -> Overview:
        """Map the hunks of the pane's document onto its height."""
        height, total = pane.size.height, max(1, pane.visual_rows)
        found = [""] * height
        sizes = pane.document.hunk_sizes if pane.document is not None else ()
        scale = max(total, height)
        for hunk, size in enumerate(sizes):
            unit = hunk + pane.aspect_count
            first = pane.rough_top_of(pane.first_row_of(unit))
            decision = pane.decision_of(unit)
            start = first * height // scale
            end = max(start + 1, -(-(first + size) * height // scale))
            for y in range(start, min(end, height)):
                if not found[y] or RANK[decision] > RANK[found[y]]:
                    found[y] = decision
        return cls(tuple(found), scale)

    def column(self, pane: DiffSheet, top: int) -> Sequence[Segment]:
        """Return one segment a line, with the visible part on another background."""
        height = pane.size.height
        start = top * height // self.total
        end = max(start + 1, -(-(top + height) * height // self.total))
        found = self.drawn.get((start, end))
        if found is None:
            found = self.drawn[start, end] = self._draw(pane, start, end)
        return found

    def _draw(self, pane: DiffSheet, start: int, end: int) -> Sequence[Segment]:
        height, paint, glyphs = pane.size.height, pane.paint, pane.glyphs
        segments: list[Segment] = []
        for y, decision in enumerate(self.cells):
            on = "raised" if start <= y < end and self.total > height else "surface"
            if decision:
                segments.append(Segment(glyphs.map, paint(TOKENS[decision], on)))
            else:
                segments.append(Segment(" ", paint(on=on)))
        return list(pane.filtered(Strip(segments, height)))
