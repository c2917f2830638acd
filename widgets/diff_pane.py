"""The diff of one file: one scroll view for both sides, drawn line by line.

A cursor stands on a row; the hunk under it is the current one. Both sides scroll as one. The last
column is an overview of the whole file in place of a scrollbar. What the user decides is shown
here and decided elsewhere: the pane only says where the cursor is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from widgets.diff_draw import RowPainter, RowState, find_ranges
from widgets.diff_rows import WRAP_LIMIT, DiffRowsView
from widgets.diff_ruler import Overview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.geometry import Region
    from textual.theme import Theme

    from themes.glyphs import Glyphs
    from widgets.diff_model import DiffDocument, Layout, Side, Spans

SPLIT_FROM = 120
"""Narrowest screen in cells that shows both sides beside each other by itself."""

SIDE_STEP = 8
"""Columns of one step to the side."""

WHEEL_ROWS = 3


class DiffPane(DiffRowsView, can_focus=True):
    """Shows a `DiffDocument`."""

    BINDING_GROUP_TITLE = "Diff"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "next line", show=False, id="diff.down"),
        Binding("k,up", "move(-1)", "previous line", show=False, id="diff.up"),
        Binding("g,home", "edge(-1)", "first line", show=False, id="diff.first"),
        Binding("G,end", "edge(1)", "last line", show=False, id="diff.last"),
        Binding("pagedown,ctrl+d", "leaf(1)", "page down", show=False, id="diff.page-down"),
        Binding("pageup,ctrl+u", "leaf(-1)", "page up", show=False, id="diff.page-up"),
        Binding("l,right", "side(1)", "scroll right", show=False, id="diff.right"),
        Binding("h,left", "side(-1)", "scroll left", show=False, id="diff.left"),
        Binding("enter", "unfold", "show folded lines", show=False, id="diff.unfold"),
        Binding("o", "unfold_all", "show the whole file", show=False, id="diff.unfold-all"),
    ]
    DEFAULT_CSS = """
    DiffPane { width: 1fr; height: 1fr; background: $background; }
    """

    @dataclass
    class CursorMoved(Message):
        """The cursor stands on another row, maybe in another hunk."""

        pane: DiffPane

        @property
        def control(self) -> DiffPane:
            """The pane, so that `@on` can select it."""
            return self.pane

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self._painter: RowPainter | None = None
        self._overview: Overview | None = None

    # What to show

    def show(self, document: DiffDocument | None, decisions: Sequence[str] = ()) -> None:
        """Show a file from its first hunk on; None shows nothing."""
        self.document = document
        self.decisions = tuple(decisions)
        self.side_scroll = 0
        self._rows_changed()
        self.scroll_to(y=0, animate=False, force=True)
        self.cursor = self.first_row_of(0) if self.unit_count else 0
        self._show_cursor(center=True)

    def refresh_document(self, document: DiffDocument) -> None:
        """Show the same file with other contents or rows; cursor and scroll position stay."""
        self.document = document
        self._rows_changed()
        self.cursor = max(0, min(self.cursor, self.total_rows - 1))

    def set_decisions(self, decisions: Sequence[str]) -> None:
        """Show other decisions, one for each unit."""
        if tuple(decisions) != self.decisions:
            self.decisions = tuple(decisions)
            self._overview = None
            self.refresh()

    def set_spans(self, key: str, side: Side, spans: Spans) -> None:
        """Colour one side, unless another document is shown by now."""
        if self.document is not None and self.document.key == key:
            known = self.document.spans.get(side, {})
            self.document.spans[side] = {**known, **spans}
            self.redraw()

    def set_layout(self, layout: Layout) -> None:
        """Show both sides beside each other, or one after the other; the hunk stays in sight."""
        if layout == self.layout_name:
            return
        unit = self.current_unit
        self.layout_name = layout
        if self.document is not None:
            rows = self.document.rows.with_layout(layout)
            self.refresh_document(replace(self.document, rows=rows))
        if unit is not None:
            self.go_to_unit(unit)

    def set_wrap(self, wrap: bool) -> bool:
        """Wrap long lines or let them run out of sight; False when the file is too long for it."""
        if wrap and self.document is not None and len(self.document.rows) > WRAP_LIMIT:
            return False
        self.wrap_lines = wrap
        self.side_scroll = 0
        self._rows_changed()
        self._show_cursor()
        return True

    def set_find(self, text: str) -> None:
        """Mark every place where a text stands."""
        if text != self.find:
            self.find = text
            self.refresh()

    def _rows_changed(self) -> None:
        self._painter = None
        self.measure_again()
        self._overview = None
        document = self.document
        if document is not None and document.rows.layout != self.layout_name:
            rows = document.rows.with_layout(self.layout_name)
            self.document = document = replace(document, rows=rows)
        if document is not None and len(document.rows) > WRAP_LIMIT:
            self.wrap_lines = False
        self.set_row_count(self.visual_rows)
        self.redraw()

    def _theme_changed(self, _theme: Theme) -> None:
        self._painter = None
        self._overview = None
        super()._theme_changed(_theme)

    # Drawing

    @property
    def painter(self) -> RowPainter:
        """Draws rows of the current document."""
        assert self.document is not None
        if self._painter is None:
            plain = self.host.no_color or self.host.current_theme.ansi
            self._painter = RowPainter(self.document, self.paint, self.glyphs, plain=plain)
        return self._painter

    def row_key(self, row: int) -> object:
        """Name what the row's look depends on: decision, cursor and focus."""
        at, line = self.place(row)
        unit = self.unit_at(at)
        current = unit is not None and unit == self.current_unit
        state = (self.decision_of(unit), current, at == self.cursor, self.has_focus)
        return (at, line, state, self.side_scroll, self.find)

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw an aspect, a note, a fold or a line."""
        at, line = self.place(row)
        look, painter = self.look, self.painter
        state = self._state_of(at)
        if at < self.head:
            document = painter.document
            if at < self.aspect_count:
                return painter.aspect(document.aspects[at], look, state)
            return painter.note(document.notes[at - self.aspect_count], look.width)
        model = self.row_at(at)
        assert model is not None
        if model.kind == "fold":
            return painter.fold(model, look, state)
        return painter.line(model, line, look, state)

    def _state_of(self, at: int) -> RowState:
        unit = self.unit_at(at)
        return RowState(
            decision=self.decision_of(unit),
            first=unit is not None and at == self.first_row_of(unit),
            current=unit is not None and unit == self.current_unit,
            cursor=at == self.cursor,
            focused=self.has_focus,
        )

    @property
    def overview(self) -> Overview:
        """The last column."""
        if self._overview is None or len(self._overview.cells) != self.size.height:
            self._overview = Overview.of(self)
        return self._overview

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the visible rows, each with its cell of the overview."""
        if self.document is None:
            return super().render_lines(crop)
        top, width = self.scroll_offset.y, self.size.width
        column = self.overview.column(self, top)
        strips: list[Strip] = []
        for y in crop.line_range:
            strip = self.row_strip(top + y)
            if strip.cell_length >= width:
                strip = strip.crop(0, width - 1)
            strips.append(Strip([*strip, column[y]], width))
        if crop.column_span != (0, width):
            start, end = crop.column_span
            strips = [strip.crop(start, end) for strip in strips]
        return strips

    def on_resize(self) -> None:
        """Measure again for the new width."""
        self.measure_again()
        self._overview = None
        super().on_resize()
        self.row_count = self.visual_rows
        self.virtual_size = Size(max(1, self.size.width), self.row_count)
        self._show_cursor()

    def on_focus(self) -> None:
        """Show where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that the keys go elsewhere."""
        self.refresh()

    # Moving

    def go_to(self, row: int, *, center: bool = False) -> None:
        """Put the cursor on a row and bring it into sight."""
        row = max(0, min(row, self.total_rows - 1))
        self.cursor = row
        self._show_cursor(center=center)
        self.refresh()
        self.post_message(self.CursorMoved(self))

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

    def action_unfold(self) -> None:
        """Show the lines that the row under the cursor stands for."""
        model = self.row_at(self.cursor)
        if self.document is None or model is None or model.gap is None:
            return
        rows = self.document.rows.expand(model.gap)
        self.refresh_document(replace(self.document, rows=rows))
        self.go_to(self.cursor)

    def action_unfold_all(self) -> None:
        """Show the whole file; the hunk stays in sight."""
        if self.document is None:
            return
        unit = self.current_unit
        self.refresh_document(replace(self.document, rows=self.document.rows.expand_all()))
        if unit is not None:
            self.go_to_unit(unit)

    def find_next(self, direction: int = 1, *, here: bool = False) -> bool:
        """Go to the next row that holds the text looked for; False when there is none."""
        count, head = self.total_rows, self.head
        if self.document is None or not self.find:
            return False
        rows = self.document.rows.rows(0, count)
        start = self.cursor - head + (0 if here else direction)
        for step in range(len(rows)):
            index = (start + step * direction) % len(rows)
            row = rows[index]
            texts = (row.old_text or "", row.new_text or "")
            if any(find_ranges(text, self.find) for text in texts):
                self.go_to(index + head, center=True)
                return True
        return False

    # Mouse

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the pointer is; a click on a fold opens it."""
        if self.document is None:
            return
        if event.x == self.size.width - 1:
            y = event.y * max(1, self.visual_rows) // max(1, self.size.height)
            self.go_to(self.place(min(y, self.visual_rows - 1))[0], center=True)
            return
        y = event.y + self.scroll_offset.y
        if y >= self.visual_rows:
            return
        self.go_to(self.place(y)[0])
        model = self.row_at(self.cursor)
        if model is not None and model.kind == "fold":
            self.action_unfold()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll without moving the cursor out of its hunk."""
        event.stop()
        self.scroll_to(y=self.scroll_offset.y + WHEEL_ROWS, animate=False, force=True)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll back."""
        event.stop()
        self.scroll_to(y=self.scroll_offset.y - WHEEL_ROWS, animate=False, force=True)
