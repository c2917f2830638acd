"""Stands where a terminal program stands around our engine, for a conformance suite.

The engine answers what it answers. What belongs to the program around an engine is done here: the
window's size and state (XTWINOPS), and the checksum of a rectangle (DECRQCRA), which no engine for
embedding has and which such a suite reads the screen with. Checksums come from the rows of our own
frames, so decoding is tested along with the engine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.doubles.engines import engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.terminal.screen import Row

COLUMNS, ROWS = 80, 25
"""The size at which a suite's test begins."""

SCREEN = (200, 60)
"""Cells of the screen that the window is said to lie on."""

CELL = (8, 16)
"""Pixels of a cell, width and height; the engine's own figures."""

OURS = re.compile(rb"(?:\x1b\[|\x9b)([\d;]*)(\*y|t)")
"""Checksum requests and window operations."""

MAX_REPLIES = 1 << 20
"""Bytes of answers that may wait before a test is said to have run away."""


class Embedder:
    """One engine and its window: takes output of a test, keeps the answers for it."""

    def __init__(self) -> None:
        self.engine = engine(COLUMNS, ROWS)
        self.replies = bytearray()
        self._rows: dict[int, str] = {}
        self._iconified = False
        self._before: tuple[int, int] | None = None

    def close(self) -> None:
        """Free the engine."""
        self.engine.close()

    def write(self, data: bytes) -> None:
        """Take what the test prints; sequences that are the window's go no further."""
        at = 0
        for found in OURS.finditer(data):
            numbers = [int(part or 0) for part in found[1].split(b";")]
            do: Callable[[list[int]], bool] = self._sum if found[2] == b"*y" else self._window
            self._feed(data[at : found.start()])
            at = found.end() if do(numbers) else found.start()
        self._feed(data[at:])

    def _feed(self, data: bytes) -> None:
        if data:
            self.engine.feed(data)
            self._collect()

    def _collect(self) -> None:
        self.replies += self.engine.take_replies()
        if len(self.replies) > MAX_REPLIES:
            raise RuntimeError("the test asks without reading")

    def _answer(self, text: str) -> bool:
        self.replies += f"\x1b{text}".encode()
        return True

    # -- the checksum of cells ---------------------------------------------------------------

    def _sum(self, numbers: list[int]) -> bool:
        """Answer DECRQCRA as DEC's terminals do: the cells' sum, subtracted from 0."""
        columns, rows = self.engine.size
        given = [*numbers, 0, 0, 0, 0, 0, 0]
        top, left = max(1, given[2]), max(1, given[3])
        bottom, right = min(given[4] or rows, rows), min(given[5] or columns, columns)
        total = sum(
            sum(self._row(y)[left - 1 : right].encode("utf-32-le")[::4])
            for y in range(top - 1, bottom)
        )
        return self._answer(f"P{given[0]}!~{-total & 0xFFFF:04X}\x1b\\")

    def _row(self, y: int) -> str:
        frame = self.engine.frame()
        self._rows.update((at, cells(row)) for at, row in frame.rows.items())
        return self._rows[y]

    # -- the window --------------------------------------------------------------------------

    def _window(self, numbers: list[int]) -> bool:
        """Do or answer what concerns the window; False when it is the engine's to answer."""
        what, first, second = (*numbers, 0, 0)[:3]
        if what in (1, 2):
            self._iconified = what == 2
        elif what == 4:
            self._resize(second // CELL[0], first // CELL[1])
        elif what == 8:
            self._resize(second, first)
        elif what in (9, 10):
            self._grow(what, first)
        elif what in (11, 13, 15, 19):
            self._report(what)
        else:
            return False
        return True

    def _resize(self, columns: int, rows: int) -> None:
        now = self.engine.size
        self.engine.resize(columns or now[0], rows or now[1])
        self._rows.clear()

    def _grow(self, what: int, how: int) -> None:
        """Fill the screen or leave that again, wholly or in one direction."""
        columns, rows = self.engine.size
        if how == 0 or (what == 10 and how == 2 and self._before):
            wanted, self._before = self._before or (columns, rows), None
        else:
            self._before = self._before or (columns, rows)
            wide, high = what == 10 or how != 2, what == 10 or how != 3
            wanted = (SCREEN[0] if wide else columns, SCREEN[1] if high else rows)
        self._resize(*wanted)

    def _report(self, what: int) -> None:
        columns, rows = SCREEN
        answers = {
            11: f"[{2 if self._iconified else 1}t",
            13: "[3;0;0t",
            15: f"[5;{rows * CELL[1]};{columns * CELL[0]}t",
            19: f"[9;{rows};{columns}t",
        }
        self._answer(answers[what])


def cells(row: Row) -> str:
    """Return a row with exactly one character a cell; clusters and wide ones by their first."""
    found: list[str] = []
    place = 0
    for run in row.runs:
        text = row.text[place : place + run.characters]
        place += run.characters
        if run.cells == run.characters:
            found.append(text)
        elif run.cells == 2 * run.characters:
            found += [character + " " for character in text]
        else:
            found.append(text[:1].ljust(run.cells))
    return "".join(found)
