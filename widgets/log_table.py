"""A long table that grows at its top, drawn from its source row by row: its length costs nothing.

The source says how many rows there are and what is in one; where the reader is belongs to it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from widgets.cells import Piece, cells, fit
from widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.geometry import Region

    from themes.glyphs import Glyphs

WHEEL = 3
"""Rows that one notch of the wheel moves."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column; all of them are shown from the table's width `since` on."""

    title: str
    width: int
    """Cells, without the gap. 0: a share of what is left."""
    since: int = 0
    right: bool = False
    keep_end: bool = False
    """Too long a text loses its beginning: the end of a host says whose it is."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A text that is safe to print, and the token of its colour; `*` at its end means bold."""

    text: str
    token: str = "foreground"


class Source(Protocol):
    """Where the rows are."""

    def count(self) -> int:
        """Return how many rows there are."""
        ...

    def cells(self, index: int) -> Sequence[Cell]:
        """Return a row, one cell a column; 0 is the uppermost."""
        ...

    def place(self) -> tuple[int, int]:
        """Return the cursor and the first row that is seen."""
        ...

    def go(self, cursor: int, height: int) -> None:
        """Put the cursor on a row."""
        ...

    def scroll(self, step: int, height: int) -> None:
        """Move what is seen."""
        ...


class LogTable(LineView, can_focus=True):
    """Shows a source; the keys are those of every list."""

    BINDING_GROUP_TITLE = "Egress log"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False, id="log.down"),
        Binding("k,up", "move(-1)", "up", show=False, id="log.up"),
        Binding("g,home", "edge(-1)", "newest, and follow", show=False, id="log.first"),
        Binding("G,end", "edge(1)", "oldest", show=False, id="log.last"),
        Binding("pagedown,ctrl+d", "leaf(1)", "page down", show=False, id="log.page-down"),
        Binding("pageup,ctrl+u", "leaf(-1)", "page up", show=False, id="log.page-up"),
        Binding("enter", "choose", "details", show=False, id="log.open"),
    ]

    @dataclass
    class Moved(Message):
        """The user moved the cursor or the page."""

    @dataclass
    class Chosen(Message):
        """The user opened a row (enter or a second click)."""

    def __init__(self, source: Source, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.source = source
        self.columns: tuple[Column, ...] = ()
        self.empty = ""
        """What is said when there are no rows."""

    def refresh_rows(self) -> None:
        """Draw what is seen anew: rows came, or others are shown."""
        self.redraw()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows that are seen; there is nothing to scroll but the source's place."""
        strips = [self._line(y) for y in crop.line_range]
        if crop.column_span != (0, self.size.width):
            start, end = crop.column_span
            strips = [strip.crop(start, end) for strip in strips]
        return strips

    def _line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self.filtered(self._titles(width))
        cursor, top = self.source.place()
        index = top + y - 1
        blank = self.paint(on="background")
        if index < self.source.count():
            return self.filtered(self._row(index, width, selected=index == cursor))
        if y == 1 and self.empty:
            text = fit(f"  {self.empty}", width, self.glyphs.ellipsis)
            return self.filtered(_strip([(text, self.paint("muted"))], width))
        return self.filtered(Strip.blank(width, blank))

    def _row(self, index: int, width: int, *, selected: bool) -> Strip:
        on = "background"
        if selected:
            on = "selection" if self.has_focus else "selection-quiet"
        edge = self.glyphs.edge if selected else " "
        begin = (edge, self.paint("accent" if self.has_focus else "faint", on))
        return self._laid_out(begin, self.source.cells(index), on, width)

    def _titles(self, width: int) -> Strip:
        titles = [Cell(column.title, "muted*") for column in self.columns]
        return self._laid_out((" ", self.paint(on="surface")), titles, "surface", width)

    def _laid_out(self, begin: Piece, row: Sequence[Cell], on: str, width: int) -> Strip:
        pieces = [begin]
        shown = [one for one in self.columns if width >= one.since]
        flexible = sum(1 for one in shown if not one.width)
        left = width - 1 - sum(one.width + 1 for one in shown)
        for column, cell in zip(self.columns, row, strict=True):
            if column not in shown:
                continue
            room = column.width
            if not room:
                room = max(0, left // flexible)
                left, flexible = left - room, flexible - 1
            token, how = cell.token.rstrip("*"), "b" if cell.token.endswith("*") else ""
            text = self._fitted(column, cell.text, room)
            pieces.append((f"{text} ", self.paint(token, on, how)))
        return _strip(pieces, width)

    def _fitted(self, column: Column, text: str, room: int) -> str:
        mark = self.glyphs.ellipsis
        length = cells(text)
        if column.keep_end and length > room:
            text = mark + (text[-(room - 1) :] if room > 1 else "")
        if column.right and length < room:
            return " " * (room - length) + text
        return fit(text, room, mark)

    def on_focus(self) -> None:
        """Show where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that the keys go elsewhere."""
        self.refresh()

    @property
    def seen(self) -> int:
        """How many rows are seen at once."""
        return max(1, self.size.height - 1)

    # What the user does

    def _go(self, cursor: int) -> None:
        self.source.go(cursor, self.seen)
        self._moved()

    def _moved(self) -> None:
        self.refresh()
        self.post_message(self.Moved())

    def action_move(self, step: int) -> None:
        """Go to a neighbour."""
        self._go(self.source.place()[0] + step)

    def action_edge(self, side: int) -> None:
        """Go to the newest or the oldest row."""
        self._go(0 if side < 0 else self.source.count() - 1)

    def action_leaf(self, direction: int) -> None:
        """Go a screen further."""
        self._go(self.source.place()[0] + direction * max(1, self.seen - 1))

    def action_choose(self) -> None:
        """Open the row under the cursor."""
        if self.source.count():
            self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """Select with one click, open with the second."""
        index = self.source.place()[1] + event.y - 1
        if event.y == 0 or index >= self.source.count():
            return
        if event.chain > 1:
            self.action_choose()
        else:
            self._go(index)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Go down."""
        self._wheel(event, WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Go up."""
        self._wheel(event, -WHEEL)

    def _wheel(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        event.prevent_default()
        self.source.scroll(step, self.seen)
        self._moved()


def _strip(pieces: Sequence[Piece], width: int) -> Strip:
    return Strip([Segment(text, style) for text, style in pieces]).adjust_cell_length(width)
