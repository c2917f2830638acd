"""Rows that hold wide characters, clusters, or cells with a background colour only.

Stretches of plain characters are taken apart together, and cells with the same colour to the end of
the line (status bars, whole programs with a background of their own) are one piece: a page of them
takes 0.6 ms, where looking at each cell takes 2.8 ms.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from vm.terminal.cell_text import (
    CLUSTER,
    CONTENT_SHIFT,
    FILL_INDEX,
    POINT,
    SPECIAL,
    STYLE,
    STYLE_SHIFT,
    TAG,
    TAIL,
    WIDE,
    WIDE_SHIFT,
    character,
    plain_text,
    safe_cluster,
)
from vm.terminal.screen import Row, Run

if TYPE_CHECKING:
    from vm.terminal.ghostty_rows import StylePicker

FEW = 4
"""From so many plain cells on, taking them apart together is cheaper than one by one."""


def mixed_row(raw: bytes, pick: StylePicker) -> Row:
    """Return a row, given as packed cells; `pick` knows its styles and clusters."""
    mixed = _Mixed(raw, pick)
    at = 0
    for x in [x for x, cell in enumerate(mixed.cells) if cell & SPECIAL]:
        if x < at:
            continue  # it belongs to what came before it
        mixed.add_plain(at, x)
        at = mixed.add_special(x)
    mixed.add_plain(at, len(mixed.cells))
    return Row("".join(mixed.text), tuple(mixed.runs))


class _Mixed:
    """A row under way: pieces of text, and runs that cover them."""

    def __init__(self, raw: bytes, pick: StylePicker) -> None:
        self._raw, self._pick = raw, pick
        self.cells: list[int] = memoryview(raw).cast("Q").tolist()
        self.text: list[str] = []
        self.runs: list[Run] = []

    def add(self, x: int, wide: bool) -> None:
        """Add what cell `x` holds."""
        piece, style = self._piece(self.cells[x], x, wide)
        self.text.append(piece)
        self._append(style, 2 if wide else 1, len(piece))

    def add_special(self, x: int) -> int:
        """Add what begins at cell `x`; return where it ends."""
        cells, cell = self.cells, self.cells[x]
        end = x + 1
        if cell & TAG >= FILL_INDEX:
            while end < len(cells) and cells[end] == cell:
                end += 1
            self.text.append(" " * (end - x))
            style = self._pick.reader.styles.fill(cell & TAG, cell >> CONTENT_SHIFT & 0xFFFFFF)
            self._append(style, end - x, end - x)
            return end
        # a sequence can leave one half of a wide character behind; alone it is one cell
        wide = self._kind(x) == WIDE and end < len(cells) and self._kind(end) == TAIL
        self.add(x, wide)
        return end + wide

    def add_plain(self, start: int, end: int) -> None:
        """Add cells that hold one narrow character each, all at once where that pays."""
        part = None
        if end - start >= FEW:
            part = plain_text(int.from_bytes(self._raw[start * 8 : end * 8], "little"), end - start)
        if part is None:
            for x in range(start, end):
                self.add(x, False)
            return
        self.text.append(part)
        for style, cells in itertools.groupby(range(start, end), self._style_of):
            count = sum(1 for _ in cells)
            self._append(self._pick(style, start), count, count)
            start += count

    def _style_of(self, x: int) -> int:
        return self.cells[x] >> STYLE_SHIFT & STYLE

    def _kind(self, x: int) -> int:
        return self.cells[x] >> WIDE_SHIFT & 3

    def _piece(self, cell: int, x: int, wide: bool) -> tuple[str, bytes]:
        style = self._pick(self._style_of(x), x)
        if cell & TAG == CLUSTER:
            return safe_cluster(self._pick.cluster(x), wide), style
        point = cell >> CONTENT_SHIFT & POINT
        if not point:
            return ("  " if wide else " "), style
        return character(point, wide), style

    def _append(self, style: bytes, cells: int, characters: int) -> None:
        """Add a run; one character a cell, or one for two, join the run before if it is alike."""
        runs, width = self.runs, cells // characters if characters else 0
        if runs and characters * width == cells and (characters == 1 or width == 1):
            last = runs[-1]
            if last.style == style and last.cells == last.characters * width:
                runs[-1] = Run(style, last.cells + cells, last.characters + characters)
                return
        runs.append(Run(style, cells, characters))
