"""Keeps text away from a fault of the engine: a cluster that widens where no row follows.

A narrow cell with combining marks becomes wide when the next character joins it (an emoji selector,
a spacing vowel). In the last column it then moves to the next row, and the engine looks for it in
the row above. Where wrapping does not move the cursor down, that row holds another cell, and the
engine ends with a segmentation fault. That is so on the last row when it lies below the scrolling
region (tmux's and apt's status lines), and right of a right margin.

There the wrap is done here, by moving the cursor to the left margin as the engine would. All that
is lost is that a mark which should have joined the last cell begins the row instead.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.terminal.ghostty_terminal import Terminal

RISKY = re.compile(rb"[\x80-\xff]+|\x1b\[[0-9]*b")
"""Text outside of ASCII, and repeating what may have been such text (REP)."""

REPEAT = re.compile(rb"\x1b\[[0-9]*b")
CHARACTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]*|.", re.DOTALL)
MOVES_MARGINS = re.compile(rb"\x1b\[(?:[?0-9;]*[rs]|\?[0-9;]*69[0-9;]*h)")
"""What may set margins."""

JUMP = re.compile(rb"\x1b(?:\[[?0-9;]*[BEHdefhlrsu]|[8c])")
"""What takes the cursor past the bottom margin; text and line feeds within the region do not."""

SETS_MARGINS = re.compile(rb"[rsc]\Z|\?[0-9;]*(?:69|3)[0-9;]*[hl]\Z")
"""Ends of jumps after which margins or size may be others (3: another number of columns)."""

QUERY = b"\x1bP$qr\x1b\\\x1bP$qs\x1b\\"
ANSWER = re.compile(rb"\x1bP1\$r([0-9]+);([0-9]+)([rs])\x1b\\")
"""DECRQSS for the margins, asked by us and kept from the guest."""

SIDE_MARGINS = 69
ZERO_WIDTH = frozenset({"Mn", "Me", "Cf"})
"""Categories of characters that join a cell without widening it."""

SELECTOR = "\ufe0f"
"""The one mark that widens what it joins."""


class Margins(NamedTuple):
    """Where text scrolls: columns and rows from 0, both ends within."""

    top: int
    bottom: int
    left: int
    right: int
    whole: bool
    """Whether the sides are the page's own."""


class ClusterGuard:
    """Feeds one terminal. `ask` returns what the engine answers to a query of ours."""

    def __init__(self, terminal: Terminal, ask: Callable[[bytes], bytes]) -> None:
        self._terminal = terminal
        self._ask = ask
        self._seen = False

    def write(self, data: bytes) -> None:
        """Feed data, nearly always as it is; it ends within no character and no sequence."""
        self._seen = self._seen or not data.isascii()
        if self._seen and self._may_be_risky(data):
            self._write_watching(data)
        else:
            self._terminal.write(data)

    def _may_be_risky(self, data: bytes) -> bool:
        """Tell whether text may come to where a wrap does not move down."""
        if data.isascii() and REPEAT.search(data) is None:
            return False
        if not self._terminal.ground() or MOVES_MARGINS.search(data):
            return True
        margins = self._margins()
        return not margins.whole or margins.bottom < self._terminal.size()[1] - 1

    def _margins(self) -> Margins:
        columns, rows = self._terminal.size()
        told = {kind: (first, last) for first, last, kind in ANSWER.findall(self._ask(QUERY))}
        top, bottom = told.get(b"r", (1, rows))
        left, right = (1, columns)
        if self._terminal.mode(SIDE_MARGINS):
            left, right = told.get(b"s", (1, columns))
        whole = (int(left), int(right)) == (1, columns)
        return Margins(int(top) - 1, int(bottom) - 1, int(left) - 1, int(right) - 1, whole)

    def _write_watching(self, data: bytes) -> None:
        """Feed data, stopping only for risky text between two jumps of the cursor."""
        margins: Margins | None = None  # None: ask when they matter
        done = at = 0
        ends = [found.end() for found in JUMP.finditer(data)]
        for end in (*ends, len(data)):
            if RISKY.search(data, at, end):
                self._terminal.write(data[done:at])
                done = at
                if margins is None and self._terminal.ground():
                    margins = self._margins()
                if margins is None or not self._scrolls(margins):
                    self._write_carefully(data[at:end])
                    done = end
            if SETS_MARGINS.search(data, at, end):
                margins = None
            at = end
        self._terminal.write(data[done:])

    def _scrolls(self, margins: Margins) -> bool:
        """Tell whether text from here on stays where each wrap moves down or scrolls."""
        return margins.whole and self._terminal.cursor()[1] <= margins.bottom

    def _write_carefully(self, data: bytes) -> None:
        at = 0
        for found in RISKY.finditer(data):
            self._terminal.write(data[at : found.start()])
            if data[found.start()] == 0x1B:
                self._step_back("\ufffd")
                self._terminal.write(found[0])
            else:
                self._write_text(found[0])
            at = found.end()
        self._terminal.write(data[at:])

    def _write_text(self, text: bytes) -> None:
        """Feed text, as much at a time as stays short of the last column."""
        characters = CHARACTER.findall(text)
        at = 0
        while at < len(characters):
            self._step_back(characters[at].decode("utf-8", "replace"))
            # what fits for sure, at two columns each, and at least the one that was looked at
            room = (self._terminal.size()[0] - 1 - self._terminal.cursor()[0]) // 2
            if self._terminal.mode(SIDE_MARGINS):
                room = 1
            end = at + max(1, room)
            self._terminal.write(b"".join(characters[at:end]))
            at = end

    def _step_back(self, character: str) -> None:
        """Wrap here if the engine would, with `character`, and not move down."""
        it = self._terminal
        if not it.pending_wrap() or not it.ground():
            return
        joins = len(character) == 1 and unicodedata.category(character) in ZERO_WIDTH
        if joins and character != SELECTOR:
            return
        column, row = it.cursor()
        margins = self._margins()
        if self._stays(column, row, margins):
            it.write(b"\x1b[%dG" % (margins.left + 1))

    def _stays(self, column: int, row: int, margins: Margins) -> bool:
        """Tell whether going to the next row leaves the cursor where it is."""
        if row == margins.bottom:
            return not margins.left <= column <= margins.right
        return row == self._terminal.size()[1] - 1
