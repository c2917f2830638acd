"""Copy mode on a frozen copy of a terminal: cursor, selection and search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal import copy_mode
from vm.terminal.copy_cursor import View
from vm.terminal.copy_text import Place, Span, span_of, tail, whole_characters, whole_lines
from vm.terminal.ghostty_clone import clone
from vm.terminal.ghostty_grid import Grid, Tracked
from vm.terminal.ghostty_lines import LineReader
from vm.terminal.ghostty_rows import RowReader
from vm.terminal.ghostty_search import Search
from vm.terminal.marks import page_marks
from vm.terminal.screen import (
    Cursor,
    CursorShape,
    MarkKind,
    Scrollback,
    Shape,
    Unit,
    ViewState,
)

if TYPE_CHECKING:
    from vm.terminal.ghostty import Ghostty
    from vm.terminal.ghostty_terminal import Terminal
    from vm.terminal.screen import Mark, Motion, Row


class CopyMode:
    """A page that stands still. Rows, cursor and marks come from here until it is closed."""

    def __init__(self, ghostty: Ghostty, live: Terminal) -> None:
        """Freeze what `live` shows; EngineFailed when the engine can copy nothing."""
        _, top, height = live.scrollbar()
        self.terminal = clone(live)
        self.grid = Grid(self.terminal)
        self.text = LineReader(ghostty, self.terminal)
        self.reader = RowReader(ghostty, self.terminal)
        self._anchor: Span | None = None
        self._head: Place | None = None  # where the mouse is, which the cursor cannot always reach
        self._shape, self._unit = Shape.CELLS, Unit.CELL
        self._search: Search | None = None
        self._backwards = False
        self._match: int | None = None
        self._origin: View | None = None  # where a search that is still being typed began
        x, y = self.terminal.cursor()
        newest = self.text.rows - height
        view = View(max(0, min(top, newest)), height, max(0, newest) + y, x, x)
        # a page that was scrolled back stays where it is, and the cursor comes to it
        self._view = copy_mode.scrolled(self.text, view, 0)

    def close(self) -> None:
        """Free the copy."""
        self._end_search()
        self.text.close()
        self.reader.close()
        self.terminal.close()

    # -- what is shown -----------------------------------------------------------------------

    @property
    def state(self) -> ViewState:
        """What copy mode does."""
        search, selected = self._search, self._anchor is not None
        if search is None:
            return ViewState(copying=True, selected=selected)
        match = 0 if self._match is None else self._match + 1
        return ViewState(True, selected, len(search.matches), match, not search.done)

    def rows(self, *, full: bool) -> dict[int, Row]:
        """Return the rows of the page that changed since last time, or all."""
        self.terminal.scroll_to(self._view.top)
        return self.reader.changed(full=full)

    def cursor(self) -> Cursor:
        """Return the copy cursor on the page."""
        place = self._view.place
        wide = tail(self.text, place) != place
        return Cursor(place.x, place.y - self._view.top, CursorShape.BLOCK, False, wide)

    def scrollback(self) -> Scrollback:
        """Return where the page lies."""
        rows, top = self.text.rows, self._view.top
        return Scrollback(rows, top, top + self._view.height >= rows)

    def marks(self) -> dict[int, tuple[Mark, ...]]:
        """Return the marks of the page."""
        top, height = self._view.top, self._view.height
        spans: list[tuple[MarkKind, Span]] = []
        span = self.span()
        if span is not None:
            spans.append((MarkKind.SELECTION, span))
        if self._search is not None:
            for number, match in self._search.between(top, top + height - 1):
                kind = MarkKind.CURRENT if number == self._match else MarkKind.MATCH
                spans.append((kind, whole_characters(self.text, match)))
        return page_marks(spans, top, (self.text.columns, height))

    # -- moving ------------------------------------------------------------------------------

    @property
    def _block(self) -> bool:
        return self._anchor is not None and self._shape is Shape.BLOCK

    def _moved(self, view: View) -> None:
        """Take a new view that the user chose; the search does not stand there any more."""
        self._head = self._origin = self._match = None
        self._view = view

    def move(self, motion: Motion, count: int | None) -> None:
        """Move the cursor."""
        self._moved(copy_mode.move(self.text, self._view, motion, count, block=self._block))

    def scroll(self, lines: int) -> None:
        """Move the page; the cursor stays on it."""
        self._moved(copy_mode.scrolled(self.text, self._view, lines, block=self._block))

    def scroll_to_end(self) -> None:
        """Show the newest rows."""
        self.scroll(self.text.rows)

    def _go(self, place: Place) -> None:
        self._view = copy_mode.at(self.text, self._view, place, block=self._block)

    def resize(self, columns: int, rows: int) -> None:
        """Take another size; cursor and selection stay on their text, a search begins anew."""
        anchor = self._anchor or Span(self._view.place, self._view.place)
        tracked = [Tracked(self.grid, it) for it in (self._view.place, anchor.first, anchor.last)]
        needle = self._end_search()
        self.terminal.resize(columns, rows)
        self.text.forget()
        here, first, last = (it.place() for it in tracked)
        for it in tracked:
            it.free()
        kept = self._anchor is not None and first is not None and last is not None
        self._anchor = Span(first, last) if kept and first and last else None
        self._moved(View(max(0, self.text.rows - rows), rows, 0, 0, 0))
        self._go(here or Place(self.text.last, 0))
        if needle:
            self._search = Search(self.terminal, self.text, needle)

    # -- selecting ---------------------------------------------------------------------------

    def mark(self, shape: Shape) -> None:
        """Begin, change or end the selection, or swap its ends."""
        if shape is Shape.NONE:
            self.select_none()
        elif shape is Shape.SWAP:
            self._swap()
        else:
            if self._anchor is None:
                self._anchor = Span(self._view.place, self._view.place)
            self._shape, self._unit = shape, Unit.CELL

    def _swap(self) -> None:
        if self._anchor is not None:
            here, there = self._view.place, self._anchor.first
            if there == here:
                there = self._anchor.last
            self._anchor = Span(here, here)
            self._head, self._unit = None, Unit.CELL
            self._go(there)

    def select(self, x: int, y: int, unit: Unit, *, block: bool) -> None:
        """Put the cursor on a cell of the page; words and lines are selected at once."""
        self._shape, self._unit = Shape.BLOCK if block else Shape.CELLS, unit
        self._anchor = None
        place = self._on_page(x, y)
        self._moved(copy_mode.at(self.text, self._view, place))
        self._head = place
        if unit is not Unit.CELL:
            self._anchor = self.grid.around(place, unit)

    def select_to(self, x: int, y: int) -> None:
        """Move the selection's end; beyond the page the page moves by a row."""
        if self._anchor is None:
            began = self._head or self._view.place
            self._anchor = Span(began, began)
        if not 0 <= y < self._view.height:
            self.scroll(-1 if y < 0 else 1)
        place = self._on_page(x, y)
        self._moved(copy_mode.at(self.text, self._view, place, block=self._block))
        self._head = place

    def select_none(self) -> None:
        """End the selection."""
        self._anchor = None
        self._shape, self._unit = Shape.CELLS, Unit.CELL

    def _on_page(self, x: int, y: int) -> Place:
        row = self._view.top + max(0, min(y, self._view.height - 1))
        return Place(min(row, self.text.rows - 1), max(0, min(x, self.text.columns - 1)))

    def span(self) -> Span | None:
        """Return what is selected."""
        if self._anchor is None:
            return None
        end = self._head or self._view.place
        if self._shape is Shape.BLOCK:
            return span_of(self._anchor.first, end, block=True)
        around = self.grid.around(end, self._unit)
        span = Span(min(self._anchor.first, around.first), max(self._anchor.last, around.last))
        if self._shape is Shape.LINES:
            return whole_lines(self.text, span)
        return whole_characters(self.text, span)

    def selected_text(self) -> str:
        """Return the text of what is selected."""
        span = self.span()
        return self.grid.span_text(span) if span is not None else ""

    # -- searching ---------------------------------------------------------------------------

    def search(self, needle: str, *, backwards: bool) -> None:
        """Search from the cursor; while a search is being typed, from where it began."""
        self._end_search()
        self._backwards = backwards
        if not needle:
            return
        if self._origin is None:
            self._origin = self._view
        self._search = Search(self.terminal, self.text, needle)

    def _end_search(self) -> str:
        """End the search and return what it looked for."""
        ended, self._search, self._match = self._search, None, None
        if ended is None:
            return ""
        ended.close()
        return ended.needle

    def find(self, *, backwards: bool) -> None:
        """Go to the next match in the search's direction, or against it."""
        self._origin = self._head = None
        self._to_match(self._view, backwards=backwards is not self._backwards)

    def _to_match(self, view: View, *, backwards: bool) -> None:
        search = self._search
        if search is None:
            return
        step = search.preceding if backwards else search.following
        self._match = step(view.place)
        if self._match is None:
            self._view = view
            return
        place = search.matches[self._match].first
        if not view.top <= place.y < view.top + view.height:
            # one that is out of sight comes to the middle
            top = place.y - view.height // 2
            view = view._replace(top=max(0, min(top, self.text.rows - view.height)))
        self._view = copy_mode.at(self.text, view, place, block=self._block)

    def work(self, seconds: float) -> bool:
        """Go on with a search; True while there is more to do."""
        search = self._search
        if search is None or search.done:
            return False
        if search.work(seconds):
            return True
        if self._origin is not None:
            self._to_match(self._origin, backwards=self._backwards)
        else:
            self._match = search.at(self._view.place)
        return False
