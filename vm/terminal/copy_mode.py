"""How the copy cursor moves: vi's motions over rows of text. Pure logic, without an engine.

A motion takes a `View` and gives another one: the cursor and where the page lies. Words, empty
lines and paragraphs are vi's; a line that the terminal wrapped is one line, except that `j` and `k`
go by rows, as they are seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal import copy_words
from vm.terminal.copy_cursor import END_COLUMN, Cursor
from vm.terminal.copy_text import BLANK, Place, line_end, line_start
from vm.terminal.screen import MAX_COUNT, Motion

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.terminal.copy_cursor import View
    from vm.terminal.copy_text import Text

MAX_SCAN = 5000
"""Rows that a search for a bracket looks at."""

BRACKETS = {"(": ")", "[": "]", "{": "}"}
CLOSING = {close: open_ for open_, close in BRACKETS.items()}


def move(
    text: Text, view: View, motion: Motion, count: int | None = None, *, block: bool = False
) -> View:
    """Return the view after a motion; `count` is None when the user gave none.

    In a block selection the cursor may stand behind the end of a line.
    """
    bounded = None if count is None else max(1, min(count, MAX_COUNT))
    mover = Mover(text, view, block=block)
    ACTIONS[motion](mover, bounded)
    return mover.view()


def at(text: Text, view: View, place: Place, *, block: bool = False) -> View:
    """Return the view with the cursor at (or next to) a place, and the page so that it is seen."""
    mover = Mover(text, view, block=block)
    mover.go(place)
    return mover.view()


def scrolled(text: Text, view: View, lines: int, *, block: bool = False) -> View:
    """Return the view with the page moved by `lines`; the cursor moves only to stay on it."""
    mover = Mover(text, view, block=block)
    mover.top = max(0, min(view.top + lines, text.rows - view.height))
    y = max(mover.top, min(view.y, mover.top + view.height - 1))
    mover.go_row(y)
    return mover.view()


class Mover(Cursor):
    """One motion under way."""

    # -- characters and rows -----------------------------------------------------------------

    def left(self, count: int | None) -> None:
        """Go left, on a wrapped line also to the row above."""
        place = Place(self.y, self.x)
        for _ in range(count or 1):
            found = (Place(self.y, place.x - 1), False) if self.block else self.preceding(place)
            if found is None or found[1] or found[0].x < 0:
                break
            place = found[0]
        self.go(place)

    def right(self, count: int | None) -> None:
        """Go right, on a wrapped line also to the row below."""
        place = Place(self.y, self.x)
        for _ in range(count or 1):
            found = self._right_in_block(place) if self.block else self.following(place)
            if found is None or found[1]:
                break
            place = found[0]
        self.go(place)

    def _right_in_block(self, place: Place) -> tuple[Place, bool] | None:
        cells, x = self.text.line(place.y).cells, place.x + 1
        while x < len(cells) and not cells[x]:
            x += 1
        return (Place(place.y, x), False) if x < len(cells) else None

    def up(self, count: int | None) -> None:
        """Go up by rows."""
        self.go_row(self.y - (count or 1))

    def down(self, count: int | None) -> None:
        """Go down by rows."""
        self.go_row(self.y + (count or 1))

    # -- lines -------------------------------------------------------------------------------

    def line_start(self, _count: int | None) -> None:
        """Go to the first cell of the line."""
        self.go(Place(line_start(self.text, self.y), 0))

    def line_text(self, _count: int | None) -> None:
        """Go to the first character of the line that is no blank."""
        self._to_text(line_start(self.text, self.y))

    def _to_text(self, y: int) -> None:
        self.y = max(0, min(y, self.last))
        cells = self.text.line(self.y).cells
        x = next((x for x, cell in enumerate(cells) if cell and cell not in BLANK), 0)
        self.go(Place(self.y, x))

    def line_end(self, count: int | None) -> None:
        """Go to the last character of the line, or of the line `count` - 1 below."""
        y = line_end(self.text, self.y)
        for _ in range((count or 1) - 1):
            if y >= self.last:
                break
            y = line_end(self.text, y + 1)
        self.wanted = END_COLUMN
        self.go_row(y)

    # -- words -------------------------------------------------------------------------------

    def word_next(self, count: int | None) -> None:
        """Go to the start of the next word; an empty line is one."""
        self._repeat(copy_words.word_next, count)

    def word_back(self, count: int | None) -> None:
        """Go to the start of the word, or of the one before."""
        self._repeat(copy_words.word_back, count)

    def word_end(self, count: int | None) -> None:
        """Go to the end of the word, or of the next one."""
        self._repeat(copy_words.word_end, count)

    def _repeat(self, step: Callable[[Cursor, Place], Place], count: int | None) -> None:
        place = Place(self.y, self.x)
        for _ in range(count or 1):
            found = step(self, place)
            if found == place:
                break
            place = found
        self.go(place)

    # -- pages -------------------------------------------------------------------------------

    def _scroll(self, rows: int) -> None:
        self.top = max(0, min(self.top + rows, self.text.rows - self.height))
        self.go_row(self.y + rows)

    def page_up(self, count: int | None) -> None:
        """Go up by pages; two rows stay in sight."""
        self._scroll(-max(1, self.height - 2) * (count or 1))

    def page_down(self, count: int | None) -> None:
        """Go down by pages."""
        self._scroll(max(1, self.height - 2) * (count or 1))

    def half_up(self, count: int | None) -> None:
        """Go up by half pages."""
        self._scroll(-max(1, self.height // 2) * (count or 1))

    def half_down(self, count: int | None) -> None:
        """Go down by half pages."""
        self._scroll(max(1, self.height // 2) * (count or 1))

    # -- the whole text ----------------------------------------------------------------------

    def to_top(self, count: int | None) -> None:
        """Go to the first row, or to row `count`."""
        self._to_text((count or 1) - 1)

    def bottom(self, count: int | None) -> None:
        """Go to the last row, or to row `count`."""
        self._to_text(self.last if count is None else count - 1)

    def screen_top(self, count: int | None) -> None:
        """Go to the page's first row, or its row `count`."""
        self._to_text(min(self.top + (count or 1), self.top + self.height) - 1)

    def screen_middle(self, _count: int | None) -> None:
        """Go to the row in the middle of the page."""
        self._to_text(self.top + (min(self.height, self.text.rows) - 1) // 2)

    def screen_bottom(self, count: int | None) -> None:
        """Go to the page's last row, or the one `count` - 1 above."""
        bottom = min(self.top + self.height - 1, self.last)
        self._to_text(max(self.top, bottom - (count or 1) + 1))

    # -- paragraphs, prompts, brackets -------------------------------------------------------

    def paragraph_back(self, count: int | None) -> None:
        """Go to the empty row above the paragraph."""
        self._paragraphs(-1, count or 1)

    def paragraph_next(self, count: int | None) -> None:
        """Go to the empty row below the paragraph."""
        self._paragraphs(1, count or 1)

    def _paragraphs(self, step: int, count: int) -> None:
        y, end = self.y, self.last if step > 0 else 0
        for _ in range(count):
            while y != end and not self.text.line(y).length:
                y += step
            while y != end and self.text.line(y).length:
                y += step
        x = max(0, self.length(y) - 1) if y == self.last and step > 0 else 0
        self.go(Place(y, x))

    def prompt_back(self, count: int | None) -> None:
        """Go to the prompt above."""
        self._prompts(-1, count or 1)

    def prompt_next(self, count: int | None) -> None:
        """Go to the prompt below."""
        self._prompts(1, count or 1)

    def _prompts(self, step: int, count: int) -> None:
        found, y = self.y, self.y + step
        while 0 <= y <= self.last and count:
            if self._prompt_begins(y):
                found, count = y, count - 1
            y += step
        if found != self.y:
            self.go(Place(found, 0))

    def _prompt_begins(self, y: int) -> bool:
        return self.text.line(y).prompt and not (y and self.text.line(y - 1).wraps)

    def bracket(self, _count: int | None) -> None:
        """Go to the partner of the first bracket at or after the cursor on this line."""
        place, crossed = Place(self.y, self.x), False
        while not crossed and self.cell(place) not in {*BRACKETS, *CLOSING}:
            found = self.following(place)
            if found is None:
                return
            place, crossed = found
        partner = None if crossed else self._partner(place)
        if partner is not None:
            self.go(partner)

    def _partner(self, place: Place) -> Place | None:
        mine = self.cell(place)
        other = BRACKETS.get(mine) or CLOSING[mine]
        step = self.following if mine in BRACKETS else self.preceding
        depth, begin = 0, place.y
        found: tuple[Place, bool] | None = (place, False)
        while found is not None and abs(found[0].y - begin) <= MAX_SCAN:
            cell = self.cell(found[0])
            depth += (cell == mine) - (cell == other)
            if not depth:
                return found[0]
            found = step(found[0])
        return None


ACTIONS: dict[Motion, Callable[[Mover, int | None], None]] = {
    Motion.LEFT: Mover.left,
    Motion.RIGHT: Mover.right,
    Motion.UP: Mover.up,
    Motion.DOWN: Mover.down,
    Motion.LINE_START: Mover.line_start,
    Motion.LINE_TEXT: Mover.line_text,
    Motion.LINE_END: Mover.line_end,
    Motion.WORD_NEXT: Mover.word_next,
    Motion.WORD_BACK: Mover.word_back,
    Motion.WORD_END: Mover.word_end,
    Motion.PAGE_UP: Mover.page_up,
    Motion.PAGE_DOWN: Mover.page_down,
    Motion.HALF_UP: Mover.half_up,
    Motion.HALF_DOWN: Mover.half_down,
    Motion.TOP: Mover.to_top,
    Motion.BOTTOM: Mover.bottom,
    Motion.SCREEN_TOP: Mover.screen_top,
    Motion.SCREEN_MIDDLE: Mover.screen_middle,
    Motion.SCREEN_BOTTOM: Mover.screen_bottom,
    Motion.PARAGRAPH_BACK: Mover.paragraph_back,
    Motion.PARAGRAPH_NEXT: Mover.paragraph_next,
    Motion.PROMPT_BACK: Mover.prompt_back,
    Motion.PROMPT_NEXT: Mover.prompt_next,
    Motion.BRACKET: Mover.bracket,
}
"""One method for each motion."""
