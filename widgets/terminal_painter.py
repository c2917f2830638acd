"""Draws the lines of a terminal view: the feed's rows, marks, the cursor, and our own lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.segment import Segment
from textual.strip import Strip

from widgets.terminal_draw import look_of, paint_cursor, paint_marks
from widgets.terminal_draw_ink import Ink
from widgets.terminal_search import found_texts

if TYPE_CHECKING:
    from widgets.terminal import TerminalView
    from widgets.terminal_draw import CursorLook
    from widgets.terminal_feed import Cursor, PaneFeed

LEAST_MARK = 6
"""Cells of the mode's mark that are shown however narrow the view is, if it is not narrower."""


class OwnLines(NamedTuple):
    """What the view writes over the terminal's rows: the mode's mark and the search line.

    Rows are the view's; -1 where there is none. `state` changes when a row must be drawn again.
    """

    mark_row: int = -1
    mark: str = ""
    search_row: int = -1
    state: tuple[object, ...] = ()

    def rows(self) -> set[int]:
        """Return the rows that hold something."""
        return {row for row in (self.mark_row, self.search_row) if row >= 0}


class TerminalPainter:
    """Knows which part of the terminal is seen, and how each line of the view looks."""

    def __init__(self, view: TerminalView) -> None:
        self._view = view
        self._ink: Ink | None = None
        self.top = 0
        """Rows of the terminal above the view's first one, where the view is lower than it."""
        self.cursor_lit = True
        """False in the dark half of a blink."""
        self.own = OwnLines()
        self._search_row = -1

    @property
    def ink(self) -> Ink:
        """The styles of the running theme on this terminal."""
        if self._ink is None:
            self._ink = Ink.of(self._view.host)
        return self._ink

    def recolour(self) -> None:
        """Forget the styles of the former theme."""
        self._ink = None

    # -- layout --------------------------------------------------------------------------------

    def lay_out(self) -> bool:
        """Choose the rows that are seen; True when they are others than before.

        A view lower than the terminal shows the cursor, or the last rows where there is none.
        """
        feed, height = self._view.feed, self._view.size.height
        before, hidden = self.top, 0 if feed is None else max(0, feed.rows - height)
        if not hidden or feed is None or not height:
            self.top = 0
        elif feed.cursor is None:
            self.top = hidden
        else:
            y = feed.cursor.y
            self.top = max(0, min(max(self.top, y - height + 1), y, hidden))
        return self.top != before

    def lay_own_lines(self) -> set[int]:
        """Place mark and search line anew; return the view's rows to draw for it."""
        before, self.own = self.own, self._own_lines()
        return before.rows() | self.own.rows() if before != self.own else set()

    def _own_lines(self) -> OwnLines:
        feed, mode = self._view.feed, self._view.copying_mode
        width, height = self._view.size
        if feed is None or not mode.active or not (width and height):
            self._search_row = -1
            return OwnLines()
        line = mode.line
        search_row = self._search_row = -1 if line is None else self._row_of_search(feed, height)
        marks = self._mark_texts(feed)
        room = min(width, max(LEAST_MARK, width * 3 // 5))
        mark = next((text for text in marks if len(text) <= room), "")
        rows = [row for row in (height - 1, 0) if row != search_row]
        at = next((row for row in rows if not self._covers(feed, row, width - len(mark))), -1)
        state = () if line is None else (line.text, line.at, line.direction, feed.view)
        return OwnLines(at if mark else -1, mark, search_row, state)

    def _row_of_search(self, feed: PaneFeed, height: int) -> int:
        """Return the last row, or the first one once the match stands on the last."""
        row = self._search_row if self._search_row in (0, height - 1) else height - 1
        if height > 1 and any(mark.kind == "current" for mark in feed.marks(row + self.top)):
            return height - 1 - row
        return row

    def _covers(self, feed: PaneFeed, row: int, start: int) -> bool:
        """Tell whether the cursor is in a row, from a column on."""
        cursor = feed.cursor
        return cursor is not None and cursor.y - self.top == row and cursor.x + 1 >= start

    def _mark_texts(self, feed: PaneFeed) -> tuple[str, ...]:
        """Return the mode's mark, from the longest way to write it to the shortest."""
        mode, scroll = self._view.copying_mode, feed.scroll
        history = max(0, scroll.total - feed.rows)
        back = max(0, history - scroll.offset)
        count = f"{mode.count} " if mode.count else ""
        place = f"{count}COPY {back}/{history}"
        shorter = (f" {place} ", f" {count}COPY ", " COPY ")
        if mode.line is not None or not mode.searched:
            return shorter
        long, short = found_texts(feed.view)
        return (f" {long}  {place} ", f" {short}  {place} ", *shorter)

    # -- lines ---------------------------------------------------------------------------------

    def line(self, y: int, width: int) -> Strip:
        """Return a line of the view in exactly `width` cells."""
        line = self._view.copying_mode.line
        feed = self._view.feed
        if feed is not None and line is not None and y == self.own.search_row:
            return line.draw(feed.view, width, self.ink)
        strip = self._row(y, width)
        mark = self.own.mark
        if mark and y == self.own.mark_row and len(mark) <= width:
            kept = strip.crop(0, width - len(mark))
            strip = Strip([*kept, Segment(mark, self.ink.mode())], width)
        return strip

    def _row(self, y: int, width: int) -> Strip:
        feed, y = self._view.feed, y + self.top
        strip = feed.strip(y) if feed is not None else None
        if feed is None or strip is None or y >= feed.rows:
            return self._blank(width)
        strip = paint_marks(self.ink.limit(strip), feed.marks(y), self.ink)
        cursor = feed.cursor
        if cursor is not None and cursor.y == y and self._is_lit(cursor):
            cells = 2 if cursor.wide else 1
            strip = paint_cursor(strip, cursor.x, cells, self.look(cursor), self.ink)
        if strip.cell_length == width:
            return strip
        if strip.cell_length > width:
            return strip.crop(0, width)
        return Strip([*strip, *self._blank(width - strip.cell_length)], width)

    def _blank(self, width: int) -> Strip:
        return self.ink.limit(Strip.blank(width, self._view.visual_style.rich_style))

    def look(self, cursor: Cursor) -> CursorLook:
        """Return how the cursor looks now."""
        view = self._view
        if view.copying:
            return "block" if view.has_focus and view.copying_mode.line is None else "hollow"
        return look_of(cursor.shape, has_keys=view.has_keys)

    def _is_lit(self, cursor: Cursor) -> bool:
        return self.cursor_lit or not self.blinks(cursor)

    def blinks(self, cursor: Cursor) -> bool:
        """Tell whether the cursor blinks: the guest wants it, the user has not turned it off."""
        view = self._view
        calm = view.host.animation_level == "none"
        return cursor.blinking and view.has_keys and not view.copying and not calm
