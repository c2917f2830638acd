"""Where each row of a diff stands: aspects, notes, the model's rows, and wrapped lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.diff_draw import Look, row_height
from widgets.diff_heights import Heights
from widgets.lines import LineView

if TYPE_CHECKING:
    from themes.glyphs import Glyphs
    from widgets.diff_model import DiffDocument, DiffRow, DiffRows, Layout

CACHED_ROWS = 4000
"""How many rows of the model are kept: drawing one asks for it several times."""

ROWS_AT_ONCE = 16
"""Rows that are asked of the model together: who looks at one looks at those beside it."""


class DiffRowsView(LineView):
    """The geometry of a document: rows, units, and the lines that they take on the screen."""

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.document: DiffDocument | None = None
        self.decisions: tuple[str, ...] = ()
        self.cursor = 0
        self.layout_name: Layout = "split"
        self.find = ""
        self.wrap_lines = False
        self.no_space = False
        """Changes of white space alone are not shown as changes."""
        self.side_scroll = 0
        self._heights: Heights | None = None
        self._heights_width = 0
        self._looked: tuple[object, Look] | None = None
        self._known: dict[int, DiffRow] = {}
        self._known_of: DiffRows | None = None

    # Rows: aspects, then notes, then the rows of the model

    @property
    def aspect_count(self) -> int:
        """How many of the units are about the whole file."""
        return 0 if self.document is None else len(self.document.aspects)

    @property
    def unit_count(self) -> int:
        """How much can be decided in this file."""
        return 0 if self.document is None else self.aspect_count + len(self.document.hunk_sizes)

    @property
    def head(self) -> int:
        """Rows above the model's."""
        return 0 if self.document is None else self.aspect_count + len(self.document.notes)

    @property
    def total_rows(self) -> int:
        """Aspects, notes and rows together."""
        return 0 if self.document is None else self.head + len(self.document.rows)

    @property
    def look(self) -> Look:
        """What drawing depends on."""
        return self.look_in(self.size.width)

    def look_in(self, width: int) -> Look:
        """Return the look in a width; the same value as long as nothing of it changed."""
        lines = (0, 0) if self.document is None else self.document.lines
        parts = (self.layout_name, width, max(lines), self.side_scroll)
        asked = (parts, self.wrap_lines, self.find, self.no_space)
        if self._looked is None or self._looked[0] != asked:
            look = Look(
                layout=self.layout_name,
                width=max(1, width - 1),
                digits=max(3, len(str(max(lines)))),
                scroll=self.side_scroll,
                wrap=self.wrap_lines,
                find=self.find,
                no_space=self.no_space,
            )
            self._looked = (asked, look)
        return self._looked[1]

    def row_at(self, row: int) -> DiffRow | None:
        """Return the model's row; None above and outside."""
        index = row - self.head
        if self.document is None or index < 0:
            return None
        rows = self.document.rows
        if self._known_of is not rows or len(self._known) >= CACHED_ROWS:
            self._known_of, self._known = rows, {}
        known = self._known.get(index)
        if known is None and index < len(rows):
            first = index - index % ROWS_AT_ONCE
            self._known |= enumerate(rows.rows(first, first + ROWS_AT_ONCE), first)
            known = self._known[index]
        return known

    def measure_again(self) -> None:
        """Forget how many lines rows take."""
        self._heights = None

    @property
    def heights(self) -> Heights:
        """With wrapped lines: where rows stand, as far as they were looked at."""
        if self._heights is None or self._heights_width != self.size.width:
            self._heights_width = self.size.width
            self._heights = Heights(self.total_rows, self.measure)
            self._heights.see(0)
        return self._heights

    def measure(self, start: int, stop: int) -> list[int]:
        """Return the heights of some rows."""
        look, head = self.look, self.head
        above = max(0, min(stop, head) - start)
        first, last = max(start, head) - head, max(stop, head) - head
        model = () if self.document is None else self.document.rows.rows(first, last)
        return [1] * above + [row_height(row, look) for row in model]

    @property
    def visual_rows(self) -> int:
        """How many lines there are to scroll through."""
        if not self.wrap_lines or self.document is None:
            return self.total_rows
        return self.heights.total

    def top_of(self, row: int) -> int:
        """Return the first visual line of a row."""
        if not self.wrap_lines:
            return row
        self.heights.see(row)
        return self.heights.top_of(row)

    def rough_top_of(self, row: int) -> int:
        """Return about where a row stands without looking at it."""
        return self.heights.top_of(row) if self.wrap_lines else row

    def place(self, y: int) -> tuple[int, int]:
        """Return the row and the line inside it that stand on visual line `y`."""
        return self.heights.place(y) if self.wrap_lines else (y, 0)

    @property
    def current_unit(self) -> int | None:
        """The unit under (or nearest to) the cursor."""
        document = self.document
        if document is None or not self.unit_count:
            return None
        if self.cursor < self.aspect_count:
            return self.cursor
        hunk = document.rows.hunk_at(max(0, self.cursor - self.head))
        return self.aspect_count + hunk if hunk is not None else self.aspect_count - 1

    def first_row_of(self, unit: int) -> int:
        """Return the row of a unit's first change."""
        assert self.document is not None
        if unit < self.aspect_count:
            return unit
        return self.document.rows.row_of_hunk(unit - self.aspect_count) + self.head

    def unit_at(self, row: int) -> int | None:
        """Return the unit that a row is part of."""
        return self.unit_of(row, self.row_at(row))

    def unit_of(self, row: int, model: DiffRow | None) -> int | None:
        """Return the unit that a row with its `model` is part of."""
        if model is None:
            return row if row < self.aspect_count else None
        return None if model.hunk is None else self.aspect_count + model.hunk

    def decision_of(self, unit: int | None) -> str:
        """Return what was decided about a unit."""
        if unit is None:
            return ""
        return self.decisions[unit] if unit < len(self.decisions) else "open"
