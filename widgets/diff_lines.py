"""The lines of a document as they are drawn, and what is kept of them from frame to frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual.geometry import Size
from textual.strip import Strip

from widgets.diff_choice import DiffChoice
from widgets.diff_draw import RowPainter, RowState
from widgets.diff_ruler import Overview
from widgets.lines import CACHED_STRIPS

if TYPE_CHECKING:
    from rich.segment import Segment
    from textual.geometry import Region
    from textual.theme import Theme

    from themes.glyphs import Glyphs
    from widgets.diff_model import DiffRow


class Line(NamedTuple):
    """A drawn line."""

    at: int
    """The row that it is a line of."""
    unit: int | None
    """What can be decided there."""
    strip: Strip


class DiffLines(DiffChoice):
    """Draws lines and the overview beside them.

    Where the cursor goes, few lines look otherwise than before: its own, and those of its hunk. All
    others *rest*: they are taken from the frame before without asking what they depend on.
    """

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self._painter: RowPainter | None = None
        self._overview: Overview | None = None
        self._joined: dict[tuple[int, Segment], tuple[Strip, Strip]] = {}
        self._resting: dict[int, Line] = {}
        self._resting_in: object = None
        """What all resting lines depend on."""

    def redraw(self) -> None:
        """Forget every drawn row and draw again."""
        self._joined.clear()
        self._resting.clear()
        super().redraw()

    def _theme_changed(self, _theme: Theme) -> None:
        self._painter = None
        self._overview = None
        super()._theme_changed(_theme)

    def on_focus(self) -> None:
        """Show where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that the keys go elsewhere."""
        self.refresh()

    @property
    def painter(self) -> RowPainter:
        """Draws rows of the current document."""
        assert self.document is not None
        if self._painter is None:
            plain = self.host.no_color or self.host.current_theme.ansi
            self._painter = RowPainter(self.document, self.paint, self.glyphs, plain=plain)
        return self._painter

    @property
    def overview(self) -> Overview:
        """The last column."""
        if self._overview is None or len(self._overview.cells) != self.size.height:
            self._overview = Overview.of(self)
        return self._overview

    # A frame

    def draw_lines(self, crop: Region, width: int) -> list[Strip]:
        """Return the visible rows, each with its cell of the overview."""
        if self.document is None:
            return super().draw_lines(crop, width)
        top = self.scroll_offset.y
        self._look_at(top)
        column = self.overview.column(self, top)
        lines = self._lines(range(top + crop.y, top + crop.bottom), width)
        return [
            self._with_overview(line, column[y], width)
            for y, line in zip(crop.line_range, lines, strict=True)
        ]

    def _lines(self, rows: range, width: int) -> list[Strip]:
        """Return lines without the overview."""
        self._let_rest(width)
        unit, chosen = self.current_unit, self.chosen_rows
        strips: list[Strip] = []
        for row in rows:
            line = self._resting.get(row)
            if line is None or self._is_touched(line, unit, chosen):
                line = self._line(row, width)
                if not self._is_touched(line, unit, chosen):
                    self._resting[row] = line
            strips.append(line.strip)
        return strips

    def _let_rest(self, width: int) -> None:
        """Forget resting lines when something changed that they depend on."""
        assert self.document is not None
        spans = tuple(map(len, self.document.spans.values()))
        shown = (self.document, spans, self.decisions, self.letters, self.remarks, self.find)
        now = (shown, self.side_scroll, self.row_count, width)
        if now != self._resting_in or len(self._resting) >= CACHED_STRIPS:
            self._resting_in, self._resting = now, {}

    def _is_touched(self, line: Line, unit: int | None, chosen: range) -> bool:
        """Tell whether a line's look depends on the cursor, or on what is chosen."""
        if line.at == self.cursor or line.at in chosen:
            return True
        return line.unit is not None and line.unit == unit

    def strip_of(self, row: int, width: int) -> Strip:
        """Return a line without its cell of the overview."""
        return self._line(row, width).strip

    def _line(self, row: int, width: int) -> Line:
        """Return a line; its strip is kept by all that it depends on."""
        if self.document is None or not 0 <= row < self.row_count:
            return Line(row, None, super().strip_of(row, width))
        at, line = self.place(row)
        model = self.row_at(at)
        unit = self.unit_of(at, model)
        state = self._state_of(at, unit, model)
        key = (at, line, state, self._coloured(model), self.side_scroll, self.find, width)
        return Line(at, unit, self.kept(key, lambda: self._draw(at, line, model, state, width)))

    def _draw(
        self, at: int, line: int, model: DiffRow | None, state: RowState, width: int
    ) -> Strip:
        """Draw an aspect, a note, a fold or a line of text."""
        look, painter = self.look_in(width), self.painter
        if model is None:
            document = painter.document
            if at < self.aspect_count:
                return painter.aspect(document.aspects[at], look, state)
            return painter.note(document.notes[at - self.aspect_count], look.width)
        if model.kind == "fold":
            return painter.fold(model, look, state)
        return painter.line(model, line, look, state)

    def _state_of(self, at: int, unit: int | None, model: DiffRow | None) -> RowState:
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

    def _coloured(self, model: DiffRow | None) -> tuple[bool, bool]:
        """Tell whether the colours of a row's old and new line are known."""
        if self.document is None or model is None:
            return False, False
        spans = self.document.spans
        return model.old in spans.get("old", ()), model.new in spans.get("new", ())

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
