"""One line of code as styled pieces: tabs expanded, cut to a window, colours and marks on it.

Pure functions. Lines longer than the window are cut before they are styled, so a minified file
costs no more than any other.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from widgets.cells import cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.style import Style

    from widgets.diff_model import Span

TAB_STOP = 4
"""Columns between tab stops."""


class Expanded:
    """A line with tabs as spaces, and where each character of the original went."""

    __slots__ = ("_map", "text")

    def __init__(self, text: str) -> None:
        self._map: list[int] | None = None
        self.text = text
        if "\t" in text:
            self._expand(text)

    def _expand(self, text: str) -> None:
        out: list[str] = []
        offsets: list[int] = []
        length = column = 0
        for char in text:
            offsets.append(length)
            if char == "\t":
                char = " " * (TAB_STOP - column % TAB_STOP)
            out.append(char)
            length += len(char)
            column += cells(char)
        offsets.append(length)
        self.text = "".join(out)
        self._map = offsets

    def at(self, offset: int) -> int:
        """Return where the original's character `offset` begins here."""
        if self._map is None:
            return min(offset, len(self.text))
        return self._map[min(offset, len(self._map) - 1)]


def window(text: str, start: int, width: int) -> tuple[int, int]:
    """Return the characters that show in `width` cells from column `start`."""
    if text.isascii():
        return min(start, len(text)), min(start + width, len(text))
    column = first = 0
    while first < len(text) and column < start:
        column += cells(text[first])
        first += 1
    last, used = first, column - start
    while last < len(text):
        length = cells(text[last])
        if used + length > width:
            break
        used += length
        last += 1
    return first, last


def wrap_starts(text: str, width: int) -> list[int]:
    """Return the characters that begin each line when `text` is broken at `width` cells."""
    if text.isascii():
        return list(range(0, len(text), width)) or [0]
    starts, used = [0], 0
    for index, char in enumerate(text):
        length = cells(char)
        if used + length > width and index > starts[-1]:
            starts.append(index)
            used = 0
        used += length
    return starts


def wrapped_height(text: str, width: int) -> int:
    """Return how many lines `text` takes at `width` cells."""
    if text.isascii() and "\t" not in text:
        return max(1, -(-len(text) // width))
    return len(wrap_starts(Expanded(text).text, width))


def styled(
    line: Expanded,
    first: int,
    last: int,
    layers: tuple[Sequence[Span], Sequence[tuple[int, int]], Sequence[tuple[int, int]]],
    style_of: Callable[[str, str], Style],
) -> list[tuple[str, Style]]:
    """Return characters `first:last` of an expanded line in pieces of one style each.

    `layers`: syntax spans, marks and search hits, all in offsets of the original line. `style_of`
    gets a syntax name and a layer (empty, `mark` or `find`).
    """
    spans, marks, finds = layers
    cuts = {first, last}
    colored = [(line.at(a), line.at(b), name) for a, b, name in spans]
    marked = [(line.at(a), line.at(b), "mark") for a, b in marks]
    found = [(line.at(a), line.at(b), "find") for a, b in finds]
    for start, end, _ in (*colored, *marked, *found):
        if start < last and end > first:
            cuts.add(max(first, start))
            cuts.add(min(last, end))
    edges = sorted(cuts)
    pieces: list[tuple[str, Style]] = []
    for start, end in itertools.pairwise(edges):
        name = _covering(colored, start)
        layer = _covering(found, start) or _covering(marked, start)
        style = style_of(name, layer)
        text = line.text[start:end]
        if pieces and pieces[-1][1] is style:
            pieces[-1] = (pieces[-1][0] + text, style)
        else:
            pieces.append((text, style))
    return pieces


def _covering(ranges: Sequence[Span], position: int) -> str:
    for start, end, name in ranges:
        if start <= position < end:
            return name
    return ""
