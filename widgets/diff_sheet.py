"""A document as drawn lines: what is shown, in which layout, with which decisions and colours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.strip import Strip

from widgets.diff_choice import DiffChoice
from widgets.diff_draw import RowPainter, RowState
from widgets.diff_ruler import Overview
from widgets.lines import CACHED_STRIPS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.segment import Segment
    from textual.geometry import Region
    from textual.theme import Theme

    from themes.glyphs import Glyphs
    from widgets.diff_model import DiffDocument, Side, Spans


class DiffSheet(DiffChoice):
    """Draws a document; where the cursor goes is said by `DiffWalk`."""

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self._painter: RowPainter | None = None
        self._overview: Overview | None = None
        self._joined: dict[tuple[int, Segment], tuple[Strip, Strip]] = {}

    # What to show

    def refresh_document(self, document: DiffDocument) -> None:
        """Show the same file with other contents or rows; cursor and scroll position stay."""
        self.document = document
        self._rows_changed()
        self.cursor = max(0, min(self.cursor, self.total_rows - 1))

    def set_decisions(self, decisions: Sequence[str], letters: Sequence[str] = ()) -> None:
        """Show other decisions, one for each unit, and the letters of their lines."""
        if (tuple(decisions), tuple(letters)) != (self.decisions, self.letters):
            self.decisions, self.letters = tuple(decisions), tuple(letters)
            self._overview = None
            self.refresh()

    def set_spans(self, key: str, side: Side, spans: Spans) -> None:
        """Colour one side, unless another document is shown by now."""
        if self.document is not None and self.document.key == key:
            known = self.document.spans.get(side, {})
            self.document.spans[side] = {**known, **spans}
            self.redraw()

    def set_remarks(self, remarks: Mapping[tuple[Side, int], str]) -> None:
        """Mark the lines that comments are about."""
        if remarks != self.remarks:
            self.remarks = remarks
            self.refresh()

    def set_no_space(self, quiet: bool) -> None:
        """Show changes of white space alone as if they were none; decisions are about them too."""
        self.no_space = quiet
        self.redraw()

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
        self.choice_start = None
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
        return (at, line, self._state_of(at), self.side_scroll, self.find)

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
        unit, model = self.unit_at(at), self.row_at(at)
        mixed = self.decision_of(unit) == "mixed"
        old = new = ""
        if mixed and model is not None:
            old = self.letter_of(unit, model.old_change)
            new = self.letter_of(unit, model.new_change)
        changed = bool(old or new)
        return RowState(
            decision=self.row_decision(unit, model),
            first=changed if mixed else unit is not None and at == self.first_row_of(unit),
            old=old,
            new=new,
            chosen=at in self.chosen_rows,
            current=unit is not None and unit == self.current_unit,
            cursor=at == self.cursor,
            focused=self.has_focus,
            remark=bool(self.remark_at(at)),
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
        self._look_at(top)
        column = self.overview.column(self, top)
        strips: list[Strip] = []
        for y in crop.line_range:
            strips.append(self._with_overview(self.row_strip(top + y), column[y], width))
        if crop.column_span != (0, width):
            start, end = crop.column_span
            strips = [strip.crop(start, end) for strip in strips]
        return strips

    def _with_overview(self, strip: Strip, cell: Segment, width: int) -> Strip:
        """Return a row with its cell of the overview; the same strip as long as both are the same.

        Textual keeps what it cut out of a strip, and how it is written, with the strip.
        """
        known = self._joined.get((id(strip), cell))
        if known is not None and known[0] is strip:
            return known[1]
        room = width - 1
        cut = strip.crop(0, room) if strip.cell_length > room else strip
        joined = Strip([*cut, cell], width)
        if len(self._joined) >= CACHED_STRIPS:
            self._joined.clear()
        self._joined[id(strip), cell] = (strip, joined)
        return joined

    def _look_at(self, top: int) -> None:
        """Measure what shows, so that no line of it is missing at the end."""
        if self.wrap_lines:
            self.place(top + self.size.height)
            if self.heights.total != self.row_count:
                self.row_count = self.heights.total
                self._overview = None
                self.call_later(self._take_height)

    def _take_height(self) -> None:
        self.virtual_size = Size(max(1, self.size.width), self.row_count)

    def on_focus(self) -> None:
        """Show where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that the keys go elsewhere."""
        self.refresh()
