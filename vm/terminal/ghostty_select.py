"""A selection by mouse on the live page: it stays on its text while the guest writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vm.terminal.copy_text import Place, Span, span_of
from vm.terminal.ghostty_grid import Grid, Tracked
from vm.terminal.marks import page_marks
from vm.terminal.screen import MarkKind, Unit

if TYPE_CHECKING:
    from vm.terminal.ghostty_terminal import Terminal
    from vm.terminal.screen import Mark


class _Ends(NamedTuple):
    """Two places that stay on their text."""

    first: Tracked
    last: Tracked

    def span(self, *, block: bool = False) -> Span | None:
        """Return where they are, None when their text is gone."""
        first, last = self.first.place(), self.last.place()
        if first is None or last is None:
            return None
        return span_of(first, last, block=block)

    def free(self) -> None:
        """Stop following the text."""
        self.first.free()
        self.last.free()


class LiveSelection:
    """At most one selection on one terminal."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._grid = Grid(terminal)
        self._anchor: _Ends | None = None
        self._ends: _Ends | None = None
        self._unit, self._block = Unit.CELL, False
        self._alternate = False
        self._stamp: dict[int, str] = {}

    # -- what the mouse does -----------------------------------------------------------------

    def start(self, x: int, y: int, unit: Unit, *, block: bool) -> None:
        """Begin at a cell of the visible page; words and lines are selected at once."""
        self.clear()
        self._unit, self._block = unit, block
        self._alternate = self._terminal.alternate()
        around = self._grid.around(self._on_page(x, y), self._unit)
        self._anchor = self._track(around)
        if unit is not Unit.CELL:
            self._select(around)

    def extend(self, x: int, y: int) -> None:
        """Move the end; beyond the page the page moves by a row first."""
        rows = self._terminal.size()[1]
        if not 0 <= y < rows:
            self._terminal.scroll(-1 if y < 0 else 1)
        anchor = self._anchor.span() if self._anchor and self._same_screen() else None
        if anchor is None:
            self.start(x, y, self._unit, block=self._block)
            return
        around = self._grid.around(self._on_page(x, y), self._unit)
        if self._block:
            self._select(span_of(anchor.first, around.first, block=True))
        else:
            span = Span(min(anchor.first, around.first), max(anchor.last, around.last))
            self._select(self._grid.whole(span))

    def clear(self) -> None:
        """Select nothing."""
        for ends in (self._anchor, self._ends):
            if ends is not None:
                ends.free()
        self._anchor = self._ends = None
        self._stamp = {}

    def _select(self, span: Span) -> None:
        if self._ends is not None:
            self._ends.free()
        self._ends = self._track(span)
        self._stamp = self._stamped(span)

    def _track(self, span: Span) -> _Ends:
        return _Ends(Tracked(self._grid, span.first), Tracked(self._grid, span.last))

    def _on_page(self, x: int, y: int) -> Place:
        columns, rows = self._terminal.size()
        top = self._terminal.scrollbar()[1]
        return Place(top + max(0, min(y, rows - 1)), max(0, min(x, columns - 1)))

    def _same_screen(self) -> bool:
        return self._terminal.alternate() == self._alternate

    # -- what is selected --------------------------------------------------------------------

    def __bool__(self) -> bool:
        """Tell whether anything is selected, as of the last `check`."""
        return self._ends is not None

    def check(self) -> None:
        """End the selection if the guest changed its text, or shows another screen."""
        if self._ends is None:
            return
        span = self._ends.span(block=self._block)
        if span is None or not self._same_screen() or self._changed(span):
            self.clear()

    def resized(self) -> None:
        """Take the text as it is now: lines were wrapped anew."""
        span = self._ends.span(block=self._block) if self._ends is not None else None
        self._stamp = self._stamped(span) if span is not None else {}

    def _changed(self, span: Span) -> bool:
        now = self._stamped(span)
        before = self._stamp
        if any(before.get(row, text) != text for row, text in now.items()):
            return True
        self._stamp = now
        return False

    def _stamped(self, span: Span) -> dict[int, str]:
        """Return the selected text that the guest can still change, by row of the selection.

        That is what lies on its screen; the scrollback above stays as it is.
        """
        total, _, rows = self._terminal.scrollbar()
        begin = max(span.first, Place(total - rows, 0))
        if begin > span.last:
            return {}
        if self._block:
            begin = Place(begin.y, span.first.x)
        text = self._grid.span_text(Span(begin, span.last, span.block), unwrap=False)
        lines = text.split("\n")
        lines += [""] * (span.last.y - begin.y + 1 - len(lines))  # blank ends are left out
        return {begin.y - span.first.y + row: line for row, line in enumerate(lines)}

    def text(self) -> str:
        """Return the selected text."""
        self.check()
        span = self._ends.span(block=self._block) if self._ends is not None else None
        return self._grid.span_text(span) if span is not None else ""

    def marks(self) -> dict[int, tuple[Mark, ...]]:
        """Return the marks of the visible page."""
        span = self._ends.span(block=self._block) if self._ends is not None else None
        if span is None:
            return {}
        top = self._terminal.scrollbar()[1]
        return page_marks([(MarkKind.SELECTION, span)], top, self._terminal.size())
