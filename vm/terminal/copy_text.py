"""Rows of text as copy mode and selections see them: places, logical lines, spans, marks.

Rows are numbered from the oldest of the scrollback. A row that wraps goes on in the next one: both
belong to one logical line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BLANKS = " \0\u00a0"
BLANK = frozenset(BLANKS)
"""Cells that separate words."""

MAX_WRAPS = 2000
"""Rows that are looked at for one end of a logical line."""


class Line(NamedTuple):
    """One row: the text of each cell, "" for what belongs to the wide character before it."""

    cells: Sequence[str]
    wraps: bool = False
    """The next row goes on with this line."""
    prompt: bool = False
    """The shell said that a prompt is here (OSC 133)."""

    @property
    def length(self) -> int:
        """Cells up to the last one that is not blank."""
        cells = self.cells
        if isinstance(cells, str):  # nearly every row: one character a cell
            return len(cells.rstrip(BLANKS))
        for x in range(len(cells) - 1, -1, -1):
            if cells[x] not in BLANK and cells[x]:
                return x + (2 if x + 1 < len(cells) and not cells[x + 1] else 1)
        return 0


class Place(NamedTuple):
    """A cell. Places compare in reading order."""

    y: int
    x: int


class Span(NamedTuple):
    """Cells from one place to another, both included, in reading order or as a block."""

    first: Place
    last: Place
    block: bool = False

    def columns(self, y: int, width: int) -> tuple[int, int] | None:
        """Return the cells [start, end) of row `y` that belong to the span, None when none do."""
        if not self.first.y <= y <= self.last.y:
            return None
        if self.block:
            left, right = sorted((self.first.x, self.last.x))
            return min(left, width), min(right + 1, width)
        start = self.first.x if y == self.first.y else 0
        end = self.last.x + 1 if y == self.last.y else width
        return min(start, width), min(end, width)


class Text(Protocol):
    """Rows to move over; they do not change meanwhile."""

    @property
    def columns(self) -> int:
        """Cells of a row."""
        ...

    @property
    def rows(self) -> int:
        """Rows of scrollback and page together, at least one."""
        ...

    @property
    def last(self) -> int:
        """The last row worth going to: rows below it are empty."""
        ...

    def line(self, y: int) -> Line:
        """Return row `y`, 0 … rows - 1."""
        ...


def span_of(one: Place, other: Place, *, block: bool = False) -> Span:
    """Return the span between two places in any order."""
    if block:
        top, bottom = sorted((one.y, other.y))
        return Span(Place(top, one.x), Place(bottom, other.x), True)
    return Span(min(one, other), max(one, other))


def head(text: Text, place: Place) -> Place:
    """Return where the character at `place` begins: half of a wide one is no place to be."""
    cells = text.line(place.y).cells
    x = max(0, min(place.x, len(cells) - 1))
    while x > 0 and not cells[x]:
        x -= 1
    return Place(place.y, x)


def tail(text: Text, place: Place) -> Place:
    """Return the last cell of the character at `place`."""
    cells = text.line(place.y).cells
    x = max(0, min(place.x, len(cells) - 1))
    while x + 1 < len(cells) and not cells[x + 1]:
        x += 1
    return Place(place.y, x)


def line_start(text: Text, y: int) -> int:
    """Return the first row of the logical line that row `y` belongs to."""
    oldest = max(0, y - MAX_WRAPS)
    while y > oldest and text.line(y - 1).wraps:
        y -= 1
    return y


def line_end(text: Text, y: int) -> int:
    """Return the last row of the logical line that row `y` belongs to."""
    newest = min(text.rows - 1, y + MAX_WRAPS)
    while y < newest and text.line(y).wraps:
        y += 1
    return y


def whole_characters(text: Text, span: Span) -> Span:
    """Return the span with wide characters at its ends taken as a whole."""
    if not span.block:
        return Span(head(text, span.first), tail(text, span.last))
    left, right = sorted((span.first.x, span.last.x))
    return Span(Place(span.first.y, left), Place(span.last.y, right), True)


def whole_lines(text: Text, span: Span) -> Span:
    """Return the span with its logical lines taken as a whole."""
    first = Place(line_start(text, span.first.y), 0)
    return Span(first, Place(line_end(text, span.last.y), text.columns - 1))


def visible(span: Span, top: int, size: tuple[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield row of the page, start and end for the rows of a span on a page that begins at `top`.

    `size` is columns and rows of the page.
    """
    columns, rows = size
    for y in range(max(span.first.y, top), min(span.last.y + 1, top + rows)):
        found = span.columns(y, columns)
        if found is not None and found[0] < found[1]:
            yield y - top, *found
