"""Searching page and scrollback of the real engine."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.doubles.engines import engine, lines
from tests.doubles.pages import filled, found, marks
from vm.terminal import ghostty_search
from vm.terminal.screen import MarkKind, Motion, ViewState

if TYPE_CHECKING:
    import pytest

MATCH, CURRENT = MarkKind.MATCH, MarkKind.CURRENT


def test_matches_are_marked_and_the_cursor_goes_from_one_to_the_next() -> None:
    terminal = filled()
    assert found(terminal, "row 9", backwards=True) == ViewState(True, False, 11, 11, False)
    assert marks(terminal)[8] == [(0, 5, CURRENT)]
    assert marks(terminal)[7] == [(0, 5, MATCH)]
    terminal.find()
    assert terminal.view.match == 10
    terminal.find(backwards=True)
    terminal.find(backwards=True)
    assert terminal.view.match == 1  # round the end
    assert lines(terminal)[5] == "row 9 of it"  # in the middle of the page
    terminal.copy_move(Motion.DOWN)
    assert terminal.view.match == 0
    assert found(terminal, "", backwards=True) == ViewState(copying=True)


def test_forwards_from_where_the_cursor_is() -> None:
    terminal = filled()
    terminal.copy_mode(True)
    terminal.copy_move(Motion.TOP, 21)
    assert found(terminal, "row").match == 22
    terminal.find()
    assert terminal.view.match == 23
    terminal.copy_move(Motion.BOTTOM)
    terminal.find()
    assert terminal.view.match == 1


def test_a_search_that_is_being_typed_begins_where_the_first_letter_did() -> None:
    terminal = filled()
    terminal.copy_mode(True)
    for typed in ("r", "ro", "row", "row 3", "row 33", "row 3", "row 95"):
        view = found(terminal, typed, backwards=True)
        assert view.match
    assert terminal.view.match == 1
    found(terminal, "row", backwards=True)
    assert terminal.view.match == 100


def test_upper_case_in_the_needle_tells_cases_apart() -> None:
    terminal = engine(40, 6)
    terminal.feed(b"error Error ERROR\r\n" * 3 + b"w" * 37 + b"Error")
    assert found(terminal, "error").matches == 10
    assert found(terminal, "Error").matches == 4
    assert found(terminal, "ERROR").matches == 3
    assert found(terminal, "ErrOR").matches == 0


def test_matches_over_a_soft_wrap_and_in_wide_text() -> None:
    terminal = engine(20, 6)
    terminal.feed(("x" * 17 + "needle\r\nab漢字cd").encode())
    found(terminal, "needle")
    assert marks(terminal) == {0: [(17, 20, CURRENT)], 1: [(0, 3, CURRENT)]}
    found(terminal, "漢字")
    assert marks(terminal) == {2: [(2, 6, CURRENT)]}


def test_what_is_not_there_is_not_found() -> None:
    terminal = filled()
    before = lines(terminal)
    assert found(terminal, "nowhere") == ViewState(True, False, 0, 0, False)
    assert found(terminal, "x" * 5000).matches == 0
    assert found(terminal, "\ud800").matches == 0
    terminal.find()
    assert lines(terminal) == before


def test_a_search_of_a_full_scrollback_is_done_in_slices_and_its_matches_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock is looked at between two steps, and no step is more than a page or a batch."""
    ticks = itertools.count(step=0.005)
    monkeypatch.setattr(ghostty_search, "monotonic", lambda: next(ticks))
    terminal = engine(120, 40)
    terminal.feed(b"e" * 119 + b"\r\n")
    for _ in range(120):
        terminal.feed((b"e" * 119 + b"\r\n") * 100)
    for needle in ("e", "E", "zz"):
        terminal.search(needle)
        slices = 1
        while terminal.work(0.008):  # the time of one step
            slices += 1
        assert slices >= 25
        assert terminal.view.matches <= ghostty_search.MAX_MATCHES
        assert not terminal.view.searching
