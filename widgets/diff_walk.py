"""The cursor of a diff: rows, units, pages, folds, and places of a text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.message import Message

from widgets.diff_sheet import DiffSheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.widget import Widget

    from widgets.diff_model import DiffDocument, DiffRows, Layout, Side

SIDE_STEP = 8
"""Columns of one step to the side."""

CONTEXT_STEP = 5
"""Lines that one step of context adds around each hunk."""

FOLD_STEP = 10
"""Lines that one step shows at either end of a fold."""


class DiffWalk(DiffSheet):
    """Moves the cursor, and what is in sight with it."""

    unfolded = False
    """The whole file shows."""

    @dataclass
    class CursorMoved(Message):
        """The cursor stands on another row, maybe in another hunk."""

        pane: Widget

        @property
        def control(self) -> Widget:
            """The pane, so that `@on` can select it."""
            return self.pane

    # What to show

    def show(self, document: DiffDocument | None, decisions: Sequence[str] = ()) -> None:
        """Show a file from its first hunk on; None shows nothing."""
        self.document = document
        self.decisions = tuple(decisions)
        self.side_scroll = 0
        self._rows_changed()
        self.unfolded = False
        self.scroll_to(y=0, animate=False, force=True)
        self.cursor = self.first_row_of(0) if self.unit_count else 0
        self._show_cursor(center=True)

    def set_layout(self, layout: Layout) -> None:
        """Show both sides beside each other, or one after the other; the line stays in sight."""
        if layout == self.layout_name:
            return
        self.layout_name = layout
        if self.document is not None:
            self._with_rows(self.document.rows.with_layout(layout))

    def _with_rows(self, rows: DiffRows) -> None:
        """Show other rows of the same file; the cursor's line stays where it is on the screen."""
        assert self.document is not None
        model, below = self.row_at(self.cursor), self.top_of(self.cursor) - self.scroll_offset.y
        unit = self.current_unit
        self.refresh_document(replace(self.document, rows=rows))
        if model is not None and (model.new is not None or model.old is not None):
            self.cursor = self.head + self._row_of(model.old, model.new)
        elif model is not None and unit is not None and model.gap is None:
            self.cursor = self.first_row_of(unit)
        top = self.top_of(self.cursor)
        self.set_row_count(self.visual_rows)
        self.scroll_to(y=max(0, top - below), animate=False, force=True)
        self.go_to(self.cursor)

    def _row_of(self, old: int | None, new: int | None) -> int:
        assert self.document is not None
        if new is not None:
            return self.document.rows.row_of_line("new", new)
        return self.document.rows.row_of_line("old", old or 0)

    def set_wrap(self, wrap: bool) -> None:
        """Wrap long lines or let them run out of sight."""
        self.wrap_lines = wrap
        self.side_scroll = 0
        self._rows_changed()
        self._show_cursor()

    def on_resize(self) -> None:
        """Measure again for the new width."""
        self.measure_again()
        self._overview = None
        super().on_resize()
        self.row_count = self.visual_rows
        self.virtual_size = Size(max(1, self.size.width), self.row_count)
        self._show_cursor()

    # Moving

    def go_to(self, row: int, *, center: bool = False) -> None:
        """Put the cursor on a row and bring it into sight."""
        row = max(0, min(row, self.total_rows - 1))
        before, stood = self.cursor, (self.scroll_offset, self.current_unit)
        self.cursor = row
        self._show_cursor(center=center)
        stands = stood == (self.scroll_offset, self.current_unit)
        if stands and self.choice_start is None and not self.wrap_lines:
            self.refresh_line(before)
            self.refresh_line(row)
        else:
            self.refresh()
        self.post_message(self.CursorMoved(self))

    def place_of_cursor(self) -> tuple[Side, int] | None:
        """Return the line under the cursor, to find it again in another version of the file."""
        return self.place_of(self.cursor)

    def go_to_place(self, place: tuple[Side, int]) -> None:
        """Put the cursor on a line, or on the last one where the file is shorter."""
        if self.document is not None:
            side, line = place
            last = self.document.lines[side == "new"] - 1
            row = self.document.rows.row_of_line(side, max(0, min(line, last))) if last >= 0 else 0
            self.go_to(self.head + row, center=True)

    def reveal_place(self, place: tuple[Side, int]) -> None:
        """Put the cursor on a line, also on one that is folded away."""
        self.go_to_place(place)
        if self._unfold(None):
            self.go_to_place(place)

    def go_to_unit(self, unit: int) -> None:
        """Put the cursor on a unit's first change, with what stands before it in sight."""
        if 0 <= unit < self.unit_count:
            self.go_to(self.first_row_of(unit), center=True)

    def _show_cursor(self, *, center: bool = False) -> None:
        height = self.size.height
        if not height:
            return
        top = self.scroll_offset.y
        at = self.top_of(self.cursor)
        if self.visual_rows != self.row_count:
            self.set_row_count(self.visual_rows)
        margin = min(3, height // 4)
        if center and not (top + margin <= at < top + height * 2 // 3):
            self.scroll_to(y=max(0, at - height // 4), animate=False, force=True)
        elif at < top + margin:
            self.scroll_to(y=max(0, at - margin), animate=False, force=True)
        elif at >= top + height - margin:
            self.scroll_to(y=at - height + 1 + margin, animate=False, force=True)

    def action_move(self, step: int) -> None:
        """Go one row further."""
        self.go_to(self.cursor + step)

    def action_edge(self, side: int) -> None:
        """Go to the first or the last row."""
        self.go_to(0 if side < 0 else self.total_rows - 1)

    def action_leaf(self, direction: int) -> None:
        """Go a screen further."""
        step = direction * max(1, self.size.height - 2)
        row, _ = self.place(max(0, min(self.top_of(self.cursor) + step, self.visual_rows - 1)))
        self.scroll_to(y=self.scroll_offset.y + step, animate=False, force=True)
        self.go_to(row)

    def action_side(self, direction: int) -> None:
        """Show columns further right or left, on both sides."""
        if not self.wrap_lines:
            self.side_scroll = max(0, self.side_scroll + direction * SIDE_STEP)
            self.refresh()

    def roll(self, lines: int) -> None:
        """Scroll without moving the cursor."""
        y = self.scroll_offset.y
        if self.wrap_lines:  # measuring what stands above must not move what shows
            row, line = self.place(y)
            y = self.top_of(row) + line
            self.set_row_count(self.visual_rows)
        self.scroll_to(y=y + lines, animate=False, force=True)

    # Folds and context

    def action_unfold(self) -> None:
        """Show the lines that the row under the cursor stands for."""
        self._unfold(None)

    def _unfold(self, lines: int | None) -> bool:
        model = self.row_at(self.cursor)
        if self.document is None or model is None or model.gap is None:
            return False
        rows = self.document.rows.expand(model.gap, lines)
        self.refresh_document(replace(self.document, rows=rows))
        self.go_to(self.cursor)
        return True

    def action_unfold_all(self) -> None:
        """Show the whole file, or fold it again; the line stays in sight."""
        if self.document is not None:
            rows = self.document.rows
            self.unfolded = not self.unfolded
            self._with_rows(rows.expand_all() if self.unfolded else rows.fold_all())

    def action_context(self, direction: int) -> None:
        """Show more or fewer unchanged lines: of the fold under the cursor, else everywhere."""
        if self.document is None or (direction > 0 and self._unfold(FOLD_STEP)):
            return
        rows = self.document.rows
        wanted = max(0, rows.context + direction * CONTEXT_STEP)
        if wanted != rows.context:
            self._with_rows(rows.with_context(wanted))

    # A choice of lines

    def action_choose_lines(self) -> None:
        """Begin a choice of lines at the cursor, or end it."""
        self.choose(None if self.choice_start is not None else range(self.cursor, self.cursor + 1))

    def action_choose_block(self) -> None:
        """Choose the changed lines around the cursor that stand together."""
        block = self.block_at(self.cursor)
        if block:
            self.choose(block)

    def choose(self, rows: range | None) -> None:
        """Choose rows, the cursor on the last of them; None ends the choice."""
        if self.document is None:
            return
        self.choice_start = None if rows is None else rows.start
        self.go_to(self.cursor if rows is None else rows.stop - 1)

    # Find

    def find_next(self, direction: int = 1, *, here: bool = False) -> bool:
        """Go to the next row that holds the text looked for; False when there is none."""
        rows = self._found_rows()
        if not rows:
            return False
        at = self.cursor - self.head
        if direction > 0:
            target = next((row for row in rows if row > at or (here and row == at)), rows[0])
        else:
            target = next((row for row in reversed(rows) if row < at), rows[-1])
        self._go_to_found(target)
        return True

    def _found_rows(self) -> list[int]:
        document = self.document
        if document is None or not self.find:
            return []
        rows = document.rows
        return sorted({rows.row_of_line(side, line) for side, line in document.find(self.find)})

    def _go_to_found(self, row: int) -> None:
        """Go to a row, or to the first place in the fold that it is."""
        self.go_to(row + self.head, center=True)
        if self._unfold(None):
            rows = self._found_rows()
            target = next((found for found in rows if found >= row), row)
            self.go_to(target + self.head, center=True)

    @property
    def last_found(self) -> bool:
        """Whether no place stands below the cursor."""
        return not any(row > self.cursor - self.head for row in self._found_rows())
