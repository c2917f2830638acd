"""Text measured in terminal cells: fit, pad, shorten, and lines with a left and a right part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Sequence

Piece = tuple[str, Style]
"""Some text and how it looks."""


def cells(text: str) -> int:
    """Return how many cells `text` takes; the usual ASCII case costs nothing."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, width: int, mark: str = "…") -> str:
    """Return `text` in exactly `width` cells: padded, or cut with a mark so that it shows."""
    if width <= 0:
        return ""
    length = cells(text)
    if length <= width:
        return text + " " * (width - length)
    return set_cell_size(text, width - 1) + mark


def cut(text: str, width: int, mark: str = "…") -> str:
    """Return `text` in at most `width` cells."""
    return text if cells(text) <= width else fit(text, width, mark)


def shorten_path(path: str, width: int, mark: str = "…") -> str:
    """Return `path` in at most `width` cells, cut in the middle so that its name stays whole."""
    if cells(path) <= width:
        return path
    folder, _, name = path.rpartition("/")
    room = width - cells(name) - 2
    if not folder or room < 2:
        return mark + _tail(path, width - 1) if width > 1 else mark[:width]
    head = set_cell_size(folder, room)
    return f"{head}{mark}/{name}"


def _tail(text: str, width: int) -> str:
    while text and cells(text) > width:
        text = text[1:]
    return text


def total(pieces: Sequence[Piece]) -> int:
    """Return the cells that all pieces take together."""
    return sum(cells(text) for text, _ in pieces)


def two_sided(
    left: Sequence[Piece], right: Sequence[Piece], width: int, blank: Style, mark: str = "…"
) -> Strip:
    """Return one line: `left` from the left edge, `right` flush right; cut on the left."""
    room = width - total(right)
    if room < 0:
        right, room = (), width
    segments: list[Segment] = []
    used = 0
    for text, style in left:
        length = cells(text)
        if used + length > room:
            if room - used > 0:
                segments.append(Segment(fit(text, room - used, mark), style))
            used = room
            break
        segments.append(Segment(text, style))
        used += length
    if used < room:
        segments.append(Segment(" " * (room - used), blank))
    segments.extend(Segment(text, style) for text, style in right)
    return Strip(segments, width)
