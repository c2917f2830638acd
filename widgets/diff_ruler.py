"""The overview column of a diff: where the hunks of the whole file lie and which part shows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from widgets.diff_lines import DiffLines

TOKENS = {
    "accepted": "success",
    "rejected": "error",
    "mixed": "warning",
    "open": "muted",
    "shown": "muted",
}
RANK = ("open", "shown", "mixed", "rejected", "accepted")
"""What is undecided must show even where several hunks share a cell: the first one found shows."""


@dataclass(frozen=True, slots=True)
class Overview:
    """For each cell of the column the decision of the hunk there, or nothing."""

    hunks: tuple[range, ...]
    """The hunks that lie in each cell; they are neighbours."""
    total: int
    cells: tuple[str, ...] = ()
    drawn: dict[tuple[int, int], Sequence[Segment]] = field(
        default_factory=dict[tuple[int, int], "Sequence[Segment]"], compare=False
    )
    """The column for each part that was in sight."""

    @classmethod
    def of(cls, pane: DiffLines) -> Overview:
        """Map the hunks of the pane's document onto its height."""
        height, total = pane.size.height, max(1, pane.visual_rows)
        scale = max(total, height)
        first, last = [0] * height, [0] * height
        sizes = pane.document.hunk_sizes if pane.document is not None else ()
        for hunk, size in enumerate(sizes):
            top = pane.rough_top_of(pane.first_row_of(hunk + pane.aspect_count))
            start = top * height // scale
            end = max(start + 1, -(-(top + size) * height // scale))
            for y in range(start, min(end, height)):
                first[y] = first[y] if last[y] else hunk
                last[y] = hunk + 1
        return cls(tuple(map(range, first, last)), scale).decided(pane)

    def decided(self, pane: DiffLines) -> Overview:
        """Return the same hunks with the pane's decisions; those without one are open."""
        known = pane.decisions[pane.aspect_count :]
        decisions = (*known, *("open",) * (pane.unit_count - len(pane.decisions)))
        cells = tuple(_worst(decisions[hunks.start : hunks.stop]) for hunks in self.hunks)
        return self if cells == self.cells else replace(self, cells=cells, drawn={})

    def column(self, pane: DiffLines, top: int) -> Sequence[Segment]:
        """Return one segment a line, with the visible part on another background."""
        height = pane.size.height
        start = top * height // self.total
        end = max(start + 1, -(-(top + height) * height // self.total))
        found = self.drawn.get((start, end))
        if found is None:
            found = self.drawn[start, end] = self._draw(pane, start, end)
        return found

    def _draw(self, pane: DiffLines, start: int, end: int) -> Sequence[Segment]:
        height, paint, glyphs = pane.size.height, pane.paint, pane.glyphs
        segments: list[Segment] = []
        for y, decision in enumerate(self.cells):
            on = "raised" if start <= y < end and self.total > height else "surface"
            if decision:
                segments.append(Segment(glyphs.map, paint(TOKENS[decision], on)))
            else:
                segments.append(Segment(" ", paint(on=on)))
        return list(pane.filtered(Strip(segments, height)))


def _worst(decisions: Sequence[str]) -> str:
    """Return the decision that shows for several; nothing for none."""
    found = set(decisions)
    return next((decision for decision in RANK if decision in found), "")
