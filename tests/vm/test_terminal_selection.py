"""Selecting by the mouse on the live page of the real engine."""

from __future__ import annotations

import pytest

from tests.doubles.engines import engine
from tests.doubles.pages import marks
from vm.terminal.screen import MarkKind, Unit, ViewState

SELECTION = MarkKind.SELECTION


def test_a_click_selects_nothing_and_a_drag_selects_whole_characters() -> None:
    terminal = engine(20, 5)
    terminal.feed("ab漢字cd".encode())
    terminal.select(3, 0, Unit.CELL)  # the second half of a character
    assert not terminal.view.selected
    assert terminal.selected_text() == ""
    terminal.select_to(4, 0)  # the first half of another
    assert terminal.view.selected
    assert terminal.selected_text() == "漢字"
    assert marks(terminal) == {0: [(2, 6, SELECTION)]}
    terminal.select_to(0, 0)  # and back over the beginning
    assert terminal.selected_text() == "ab漢"
    terminal.select_none()
    assert terminal.frame().view == ViewState()


def test_words_and_lines_grow_by_words_and_lines() -> None:
    terminal = engine(20, 6)
    terminal.feed(b"see /usr/lib/x.so ok" + b"and so on\r\nnext one here")
    terminal.select(8, 0, Unit.WORD)
    assert terminal.selected_text() == "/usr/lib/x.so"
    terminal.select_to(6, 2)
    assert terminal.selected_text() == "/usr/lib/x.so okand so on\nnext one"
    terminal.select_to(1, 0)
    assert terminal.selected_text() == "see /usr/lib/x.so"
    terminal.select(3, 0, Unit.LINE)
    assert terminal.selected_text() == "see /usr/lib/x.so okand so on"
    terminal.select_to(0, 2)
    assert terminal.selected_text() == "see /usr/lib/x.so okand so on\nnext one here"


def test_a_block_selection() -> None:
    terminal = engine(20, 6)
    terminal.feed(b"one   1\r\ntwo   2\r\nthree 3")
    terminal.select(6, 0, Unit.CELL, block=True)
    terminal.select_to(4, 2)
    assert marks(terminal) == {y: [(4, 7, SELECTION)] for y in range(3)}
    assert terminal.selected_text() == "  1\n  2\ne 3"


def test_soft_wraps_are_joined_and_blanks_dropped() -> None:
    terminal = engine(20, 6)
    terminal.feed(b"w" * 30 + b"   \r\n  second   \r\n")
    terminal.select(0, 0, Unit.CELL)
    terminal.select_to(19, 3)
    assert terminal.selected_text() == "w" * 30 + "\n  second"


def test_a_selection_stays_on_its_text_while_output_moves_it() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"1\r\n2\r\nmine\r\n4\r\n")
    terminal.select(0, 2, Unit.WORD)
    terminal.feed(b"5\r\n6\r\n")
    assert marks(terminal) == {0: [(0, 4, SELECTION)]}
    terminal.feed(b"more\r\n" * 9)
    assert terminal.frame().marks == {}
    assert terminal.view.selected
    assert terminal.selected_text() == "mine"
    terminal.scroll(-9)
    assert marks(terminal) == {0: [(0, 4, SELECTION)]}
    terminal.resize(40, 8)
    assert terminal.selected_text() == "mine"
    assert terminal.frame().view.selected


@pytest.mark.parametrize(
    "output",
    [b"\x1b[3;2Hx", b"\x1b[2J", b"\x1b[3;1H\x1b[K", b"\x1b[H\x1b[M", b"\x1bc", b"\x1b[?1049h",
     b"\x1b[3;1H\x1b[1P", b"\x1b[H" + b"line\r\n" * 4],
)  # fmt: skip
def test_a_selection_ends_when_the_guest_changes_its_text(output: bytes) -> None:
    terminal = engine(20, 5)
    terminal.feed(b"1\r\n2\r\nmine here\r\n4")
    terminal.select(0, 2, Unit.CELL)
    terminal.select_to(6, 2)
    assert terminal.frame().view.selected
    terminal.feed(b"\x1b[5;1Hother text\x1b[2;1H!\x1b[3;8H!\x1b[3;2Hine")
    assert terminal.frame().view.selected
    terminal.feed(output)
    assert not terminal.frame().view.selected
    assert terminal.selected_text() == ""


def test_a_selection_ends_with_its_screen_though_the_other_shows_the_same() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"same text")
    terminal.select(0, 0, Unit.WORD)
    terminal.feed(b"\x1b[?1049h\x1b[Hsame text")
    assert not terminal.frame().view.selected


def test_a_selection_of_a_wrapped_line_outlives_another_width() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"a" * 15 + b" " + b"b" * 15 + b"\r\nnext")
    terminal.select(0, 0, Unit.LINE)
    for columns in (25, 60, 20):
        terminal.resize(columns, 6)
        assert terminal.frame().view.selected
        assert terminal.selected_text() == "a" * 15 + " " + "b" * 15


def test_a_block_ends_only_when_the_guest_writes_into_it() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"abcdef\r\nabcdef\r\nabcdef")
    terminal.select(1, 0, Unit.CELL, block=True)
    terminal.select_to(2, 2)
    terminal.feed(b"\x1b[2;5HX")
    assert terminal.frame().view.selected
    terminal.feed(b"\x1b[2;3HX")
    assert not terminal.frame().view.selected


def test_dragging_beyond_the_page_scrolls_it() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"".join(b"row %d\r\n" % i for i in range(20)) + b"end")
    terminal.select(3, 2, Unit.CELL)
    terminal.select_to(0, -1)
    terminal.select_to(0, -1)
    assert terminal.scrollback() == (21, 14, False)
    assert terminal.selected_text() == "row 14\nrow 15\nrow 16\nrow 17\nrow"
    terminal.select_to(0, 5)
    assert terminal.scrollback() == (21, 15, False)


def test_places_off_the_page_are_its_edges() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"only")
    terminal.select(-9, -9, Unit.CELL)
    terminal.select_to(999, 3)
    assert terminal.selected_text() == "only"
    assert marks(terminal)[3] == [(0, 20, SELECTION)]
