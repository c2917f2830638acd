"""The copy cursor on rows of text: where it may stand, and what comes before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vm.terminal.copy_text import Place, head

if TYPE_CHECKING:
    from vm.terminal.copy_text import Text

END_COLUMN = 1 << 16
"""The wanted column after a move to the end of a line: the end of every line from then on."""


class View(NamedTuple):
    """The page's first row and height, the cursor, and the column that `j` and `k` try to keep."""

    top: int
    height: int
    y: int
    x: int
    wanted: int

    @property
    def place(self) -> Place:
        """Where the cursor is."""
        return Place(self.y, self.x)


class Cursor:
    """The cursor and the page while they move."""

    def __init__(self, text: Text, view: View, *, block: bool) -> None:
        self.text, self.block = text, block
        self.top, self.height = view.top, view.height
        self.wanted = view.wanted
        self.last = text.last
        self.y = max(0, min(view.y, self.last))
        self.x = max(0, min(view.x, text.columns - 1))

    def view(self) -> View:
        """Return where things are now, with the page moved as little as need be."""
        top = max(self.y - self.height + 1, min(self.top, self.y))
        top = max(0, min(top, self.text.rows - self.height))
        return View(top, self.height, self.y, self.x, self.wanted)

    # -- where the cursor may be -------------------------------------------------------------

    def go(self, place: Place) -> None:
        """Go to a place and keep its column from now on."""
        self.y = max(0, min(place.y, self.last))
        self.x = self._inside(place.x)
        self.wanted = self.x

    def go_row(self, y: int) -> None:
        """Go to a row, as near to the wanted column as its text allows."""
        self.y = max(0, min(y, self.last))
        self.x = self._inside(self.wanted)

    def _inside(self, x: int) -> int:
        line = self.text.line(self.y)
        end = self.text.columns if line.wraps or self.block else line.length
        if self.block and self.wanted == END_COLUMN == x:
            end = line.length
        return head(self.text, Place(self.y, max(0, min(x, end - 1)))).x

    def length(self, y: int) -> int:
        """Return how many cells of a row are part of its line: all when it wraps."""
        line = self.text.line(y)
        return len(line.cells) if line.wraps else line.length

    def cell(self, place: Place) -> str:
        """Return the text of a cell, "" behind the end of a line."""
        cells = self.text.line(place.y).cells
        return cells[place.x] if place.x < len(cells) else ""

    def following(self, place: Place) -> tuple[Place, bool] | None:
        """Return the next character and whether it is on another line; None at the end.

        An empty line counts as one (blank) character.
        """
        cells, x = self.text.line(place.y).cells, place.x + 1
        while x < len(cells) and not cells[x]:
            x += 1
        if x < self.length(place.y):
            return Place(place.y, x), False
        if place.y >= self.last:
            return None
        return Place(place.y + 1, 0), not self.text.line(place.y).wraps

    def preceding(self, place: Place) -> tuple[Place, bool] | None:
        """Return the character before and whether it is on another line; None at the start."""
        if place.x > 0:
            end = min(place.x, max(1, self.length(place.y)))
            return head(self.text, Place(place.y, end - 1)), False
        if place.y <= 0:
            return None
        y = place.y - 1
        crossed = not self.text.line(y).wraps
        return head(self.text, Place(y, max(0, self.length(y) - 1))), crossed
