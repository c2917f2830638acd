"""vi's motions over rows of text, beside a model and beside tmux."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vm.terminal import copy_mode
from vm.terminal.copy_cursor import View
from vm.terminal.copy_text import (
    Line,
    Place,
    Span,
    head,
    span_of,
    tail,
    visible,
    whole_characters,
    whole_lines,
)
from vm.terminal.marks import page_marks
from vm.terminal.screen import MAX_COUNT, Mark, MarkKind, Motion

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Rows:
    """Rows of a terminal: lines wrapped at its width. A wide character takes two cells."""

    def __init__(self, lines: list[str], columns: int = 20, prompts: tuple[int, ...] = ()) -> None:
        self.columns = columns
        self._rows: list[Line] = []
        for number, text in enumerate(lines):
            cells = [cell for c in text for cell in ((c, "") if c > "\u2e7f" else (c,))]
            pieces = [cells[at : at + columns] for at in range(0, len(cells), columns)] or [[]]
            for last, piece in enumerate(pieces, 1 - len(pieces)):
                padded = piece + [" "] * (columns - len(piece))
                self._rows.append(Line(tuple(padded), last < 0, number in prompts))

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def last(self) -> int:
        return len(self._rows) - 1

    def line(self, y: int) -> Line:
        return self._rows[y]


def view(y: int = 0, x: int = 0, *, top: int = 0, height: int = 5) -> View:
    return View(top, height, y, x, x)


def goes(
    rows: Rows, motion: Motion, y: int, x: int, count: int | None = None, *, block: bool = False
) -> tuple[int, int]:
    found = copy_mode.move(rows, view(y, x, height=rows.rows), motion, count, block=block)
    return found.y, found.x


TEXT = Rows(
    [
        "def foo(bar, baz):",  # 0
        "    return bar + baz",  # 1 exactly as wide as the page
        "",  # 2
        "",  # 3
        "漢字 and [more {of} it]",  # 4, 5: wraps
        "end",  # 6
    ]
)


@pytest.mark.parametrize(
    ("motion", "start", "count", "expected"),
    [
        (Motion.LEFT, (0, 3), None, (0, 2)),
        (Motion.LEFT, (0, 3), 9, (0, 0)),
        (Motion.LEFT, (5, 0), None, (4, 19)),  # a wrapped line is one line
        (Motion.LEFT, (4, 2), None, (4, 0)),
        (Motion.RIGHT, (0, 16), None, (0, 17)),
        (Motion.RIGHT, (0, 17), 5, (0, 17)),
        (Motion.RIGHT, (4, 0), None, (4, 2)),
        (Motion.RIGHT, (4, 19), None, (5, 0)),
        (Motion.RIGHT, (2, 0), None, (2, 0)),
        (Motion.UP, (1, 5), None, (0, 5)),
        (Motion.UP, (1, 5), 7, (0, 5)),
        (Motion.DOWN, (0, 17), None, (1, 17)),
        (Motion.DOWN, (1, 7), None, (2, 0)),
        (Motion.DOWN, (2, 0), 99, (6, 0)),
        (Motion.LINE_START, (5, 1), None, (4, 0)),
        (Motion.LINE_TEXT, (1, 15), None, (1, 4)),
        (Motion.LINE_TEXT, (2, 0), None, (2, 0)),
        (Motion.LINE_END, (4, 0), None, (5, 2)),
        (Motion.LINE_END, (0, 0), 2, (1, 19)),
        (Motion.WORD_NEXT, (0, 0), None, (0, 4)),
        (Motion.WORD_NEXT, (0, 4), None, (0, 7)),
        (Motion.WORD_NEXT, (0, 13), None, (0, 16)),
        (Motion.WORD_NEXT, (0, 16), None, (1, 4)),
        (Motion.WORD_NEXT, (1, 18), None, (2, 0)),  # an empty line is a word
        (Motion.WORD_NEXT, (2, 0), None, (3, 0)),
        (Motion.WORD_NEXT, (3, 0), None, (4, 0)),
        (Motion.WORD_NEXT, (4, 0), 2, (4, 9)),
        (Motion.WORD_NEXT, (6, 0), 5, (6, 2)),
        (Motion.WORD_END, (0, 0), None, (0, 2)),
        (Motion.WORD_END, (0, 2), None, (0, 6)),
        (Motion.WORD_END, (1, 19), None, (4, 2)),
        (Motion.WORD_END, (4, 19), None, (5, 1)),
        (Motion.WORD_BACK, (0, 5), None, (0, 4)),
        (Motion.WORD_BACK, (1, 4), None, (0, 16)),
        (Motion.WORD_BACK, (4, 0), None, (3, 0)),
        (Motion.WORD_BACK, (0, 3), 9, (0, 0)),
        (Motion.TOP, (4, 3), None, (0, 0)),
        (Motion.TOP, (4, 3), 2, (1, 4)),
        (Motion.BOTTOM, (0, 0), None, (6, 0)),
        (Motion.BOTTOM, (0, 0), 2, (1, 4)),
        (Motion.SCREEN_TOP, (4, 3), None, (0, 0)),
        (Motion.SCREEN_TOP, (4, 3), 2, (1, 4)),
        (Motion.SCREEN_MIDDLE, (0, 3), None, (3, 0)),
        (Motion.SCREEN_BOTTOM, (0, 3), None, (6, 0)),
        (Motion.SCREEN_BOTTOM, (0, 3), 2, (5, 0)),
        (Motion.PARAGRAPH_NEXT, (0, 3), None, (2, 0)),
        (Motion.PARAGRAPH_NEXT, (2, 0), None, (6, 2)),
        (Motion.PARAGRAPH_BACK, (6, 2), None, (3, 0)),
        (Motion.PARAGRAPH_BACK, (3, 0), None, (0, 0)),
        (Motion.BRACKET, (0, 0), None, (0, 16)),
        (Motion.BRACKET, (0, 16), None, (0, 7)),
        (Motion.BRACKET, (4, 0), None, (5, 1 + 1)),
        (Motion.BRACKET, (5, 2), None, (4, 9)),
        (Motion.BRACKET, (4, 12), None, (4, 18)),
        (Motion.BRACKET, (6, 0), None, (6, 0)),
    ],
)
def test_motions(
    motion: Motion, start: tuple[int, int], count: int | None, expected: tuple[int, int]
) -> None:
    assert goes(TEXT, motion, *start, count) == expected


def test_every_motion_has_an_action() -> None:
    assert set(copy_mode.ACTIONS) == set(Motion)


def test_prompts() -> None:
    rows = Rows(["$ ls", "a", "$ cd " + "x" * 30, "b", "$ "], prompts=(0, 2, 4))
    assert goes(rows, Motion.PROMPT_BACK, 5, 0) == (2, 0)  # where its line begins
    assert goes(rows, Motion.PROMPT_BACK, 3, 0) == (2, 0)
    assert goes(rows, Motion.PROMPT_BACK, 5, 0, 9) == (0, 0)
    assert goes(rows, Motion.PROMPT_NEXT, 0, 0, 2) == (5, 0)
    assert goes(rows, Motion.PROMPT_NEXT, 5, 0) == (5, 0)


def test_up_and_down_keep_their_column_and_the_end_of_a_line_is_kept_as_such() -> None:
    rows = Rows(["a long line", "b", "", "a longer line"])
    at = view(0, 8, height=4)
    found = [copy_mode.move(rows, at, Motion.DOWN, n) for n in (1, 2, 3)]
    assert [(it.y, it.x) for it in found] == [(1, 0), (2, 0), (3, 8)]
    at = copy_mode.move(rows, at, Motion.LINE_END)
    found = [copy_mode.move(rows, at, Motion.DOWN, n) for n in (1, 2, 3)]
    assert [(it.y, it.x) for it in found] == [(1, 0), (2, 0), (3, 12)]


def test_a_block_selection_takes_the_cursor_behind_the_ends_of_lines() -> None:
    rows = Rows(["a long line", "b", "漢字"])
    assert goes(rows, Motion.DOWN, 0, 8, block=True) == (1, 8)
    assert goes(rows, Motion.RIGHT, 1, 0, 30, block=True) == (1, 19)
    assert goes(rows, Motion.LEFT, 1, 5, 2, block=True) == (1, 3)
    assert goes(rows, Motion.LEFT, 1, 0, block=True) == (1, 0)
    assert goes(rows, Motion.UP, 2, 0, 1, block=True) == (1, 0)
    assert goes(rows, Motion.DOWN, 1, 3, block=True) == (2, 2)  # never on half a character
    assert goes(rows, Motion.LINE_END, 0, 0, block=True) == (0, 10)


def test_pages() -> None:
    rows = Rows([f"row {i}" for i in range(100)])
    at = view(50, 2, top=48, height=10)
    assert copy_mode.move(rows, at, Motion.PAGE_UP) == View(40, 10, 42, 2, 2)
    assert copy_mode.move(rows, at, Motion.PAGE_DOWN, 2) == View(64, 10, 66, 2, 2)
    assert copy_mode.move(rows, at, Motion.HALF_UP) == View(43, 10, 45, 2, 2)
    assert copy_mode.move(rows, at, Motion.HALF_DOWN) == View(53, 10, 55, 2, 2)
    assert copy_mode.move(rows, at, Motion.PAGE_DOWN, 99) == View(90, 10, 99, 2, 2)
    assert copy_mode.move(rows, at, Motion.PAGE_UP, 99) == View(0, 10, 0, 2, 2)
    assert copy_mode.move(rows, at, Motion.SCREEN_BOTTOM).y == 57
    assert copy_mode.move(rows, at, Motion.UP, 5).top == 45
    assert copy_mode.scrolled(rows, at, -10) == View(38, 10, 47, 2, 2)
    assert copy_mode.scrolled(rows, at, 3) == View(51, 10, 51, 2, 2)
    assert copy_mode.scrolled(rows, at, 999) == View(90, 10, 90, 2, 2)


def test_a_count_is_bounded() -> None:
    rows = Rows(["x"] * 3)
    assert copy_mode.move(rows, view(), Motion.DOWN, MAX_COUNT * 1000).y == 2
    assert copy_mode.move(rows, view(2), Motion.UP, -7).y == 1


# -- beside a model --------------------------------------------------------------------------

WORDS = re.compile(r"[\w]+|[^\w\s]+")
ALPHABET = st.text("ab_9 .(){}", max_size=30)
TEXTS = st.lists(ALPHABET.map(str.rstrip), min_size=1, max_size=8).filter(lambda t: any(t))


def starts(lines: list[str]) -> Iterator[tuple[int, int]]:
    for y, line in enumerate(lines):
        if not line:
            yield y, 0
        yield from ((y, word.start()) for word in WORDS.finditer(line))


def ends(lines: list[str]) -> Iterator[tuple[int, int]]:
    for y, line in enumerate(lines):
        yield from ((y, word.end() - 1) for word in WORDS.finditer(line))


def modelled(lines: list[str], motion: Motion, place: tuple[int, int]) -> tuple[int, int]:
    """Where vi goes, from lists of all words."""
    last = len(lines) - 1, max(0, len(lines[-1]) - 1)
    if motion is Motion.WORD_NEXT:
        return min((it for it in starts(lines) if it > place), default=last)
    if motion is Motion.WORD_END:
        return min((it for it in ends(lines) if it > place), default=last)
    return max((it for it in starts(lines) if it < place), default=(0, 0))


@given(TEXTS, st.sampled_from((Motion.WORD_NEXT, Motion.WORD_END, Motion.WORD_BACK)), st.data())
@settings(max_examples=400, deadline=None)
def test_words_are_those_of_the_model_however_lines_wrap(
    lines: list[str], motion: Motion, data: st.DataObject
) -> None:
    y = data.draw(st.integers(0, len(lines) - 1))
    x = data.draw(st.integers(0, max(0, len(lines[y]) - 1)))
    expected = modelled(lines, motion, (y, x))
    for columns in (40, 7):
        rows, first = Rows(lines, columns), rows_of(lines, columns)
        found = goes(rows, motion, first[y] + x // columns, x % columns)
        line = max(i for i, begin in enumerate(first) if begin <= found[0])
        assert (line, (found[0] - first[line]) * columns + found[1]) == expected


def rows_of(lines: list[str], columns: int) -> list[int]:
    """The first row of each line."""
    heights = [max(1, -(-len(line) // columns)) for line in lines]
    return [sum(heights[:y]) for y in range(len(lines))]


ANY = st.lists(st.text("a(] 漢.\u00e9", max_size=25), min_size=1, max_size=30)


MOTIONS = st.tuples(st.sampled_from(Motion), st.none() | st.integers(1, 50))


@given(ANY, st.lists(MOTIONS, max_size=8), st.integers(1, 9), st.booleans())
@settings(max_examples=400, deadline=None)
def test_the_cursor_is_always_on_the_page_and_on_a_whole_character(
    lines: list[str], motions: list[tuple[Motion, int | None]], height: int, block: bool
) -> None:
    rows = Rows(lines, 8)
    at = view(height=min(height, rows.rows))
    for motion, count in motions:
        at = copy_mode.move(rows, at, motion, count, block=block)
        assert 0 <= at.top <= rows.rows - at.height
        assert at.top <= at.y < at.top + at.height
        assert 0 <= at.x < 8
        assert rows.line(at.y).cells[at.x] != "" or at.x == 0
        assert block or at.x < max(1, rows.line(at.y).length) or rows.line(at.y).wraps


# -- spans -----------------------------------------------------------------------------------


def test_spans_by_row() -> None:
    span = span_of(Place(3, 4), Place(1, 2))
    assert span == Span(Place(1, 2), Place(3, 4))
    assert list(visible(span, 0, (10, 9))) == [(1, 2, 10), (2, 0, 10), (3, 0, 5)]
    assert list(visible(span, 2, (10, 9))) == [(0, 0, 10), (1, 0, 5)]
    assert list(visible(span, 0, (10, 2))) == [(1, 2, 10)]
    block = span_of(Place(3, 1), Place(1, 4), block=True)
    assert list(visible(block, 0, (10, 9))) == [(1, 1, 5), (2, 1, 5), (3, 1, 5)]
    assert list(visible(block, 0, (3, 9))) == [(1, 1, 3), (2, 1, 3), (3, 1, 3)]
    assert not list(visible(span, 4, (10, 9)))


def test_whole_characters_and_lines() -> None:
    assert head(TEXT, Place(4, 1)) == Place(4, 0)
    assert tail(TEXT, Place(4, 2)) == Place(4, 3)
    assert whole_characters(TEXT, Span(Place(4, 1), Place(4, 2))) == Span(Place(4, 0), Place(4, 3))
    assert whole_lines(TEXT, Span(Place(5, 1), Place(5, 2))) == Span(Place(4, 0), Place(5, 19))
    block = Span(Place(0, 5), Place(2, 1), True)
    assert whole_characters(TEXT, block) == Span(Place(0, 1), Place(2, 5), True)


def test_marks_of_a_page_are_in_the_order_in_which_they_win() -> None:
    spans = [
        (MarkKind.CURRENT, Span(Place(5, 3), Place(5, 4))),
        (MarkKind.MATCH, Span(Place(5, 8), Place(6, 1))),
        (MarkKind.SELECTION, Span(Place(4, 0), Place(5, 9))),
    ]
    assert page_marks(spans, 5, (10, 3)) == {
        0: (
            Mark(0, 10, MarkKind.SELECTION),
            Mark(8, 10, MarkKind.MATCH),
            Mark(3, 5, MarkKind.CURRENT),
        ),
        1: (Mark(0, 2, MarkKind.MATCH),),
    }


# -- beside tmux -----------------------------------------------------------------------------

SCRIPT = ["one (two) three", "  four-five _six", "seven", "a b c", "x = [1, 2]; y", "last line"]
TMUX_MOTIONS = {
    Motion.LEFT: "cursor-left",
    Motion.RIGHT: "cursor-right",
    Motion.UP: "cursor-up",
    Motion.DOWN: "cursor-down",
    Motion.LINE_START: "start-of-line",
    Motion.LINE_TEXT: "back-to-indentation",
    Motion.WORD_NEXT: "next-word",
    Motion.WORD_BACK: "previous-word",
    Motion.WORD_END: "next-word-end",
    Motion.BRACKET: "next-matching-bracket",
}
ROUTE = [
    (Motion.WORD_NEXT, 9), (Motion.WORD_END, 5), (Motion.WORD_BACK, 12), (Motion.DOWN, 1),
    (Motion.LINE_TEXT, 1), (Motion.WORD_END, 3), (Motion.LINE_START, 1), (Motion.UP, 1),
    (Motion.BRACKET, 1), (Motion.RIGHT, 3), (Motion.WORD_BACK, 1), (Motion.LEFT, 2),
    (Motion.DOWN, 4), (Motion.BRACKET, 1), (Motion.WORD_BACK, 6), (Motion.WORD_NEXT, 4),
]  # fmt: skip


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_motions_go_where_tmuxs_go(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\n".join(SCRIPT))

    def tmux(*argv: str) -> str:
        command = ["tmux", "-S", str(tmp_path / "t"), "-f", "/dev/null", *argv]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    program = f"cat {tmp_path}/text; exec sleep 60"
    tmux("new-session", "-d", "-x", "40", "-y", "10", program)
    try:
        tmux("set-option", "-g", "mode-keys", "vi")
        deadline = time.monotonic() + 20
        while "last line" not in tmux("capture-pane", "-p"):
            assert time.monotonic() < deadline
        tmux("copy-mode")
        tmux("send-keys", "-X", "history-top")
        rows, at = Rows(SCRIPT, 40), view(height=6)
        for motion, count in ROUTE:
            tmux("send-keys", "-X", "-N", str(count), TMUX_MOTIONS[motion])
            at = copy_mode.move(rows, at, motion, count)
            theirs = tmux("display-message", "-p", "#{copy_cursor_y} #{copy_cursor_x}").split()
            assert (motion, [str(at.y), str(at.x)]) == (motion, theirs)
    finally:
        tmux("kill-server")
