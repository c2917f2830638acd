"""Deciding single lines in a review, by keys and with the mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import settle
from tests.doubles.reviews import Review, opened_review
from widgets.diff_draw import EDGE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

BASE = b"".join(b"line %d\n" % n for n in range(40))
AGENT = (
    BASE.replace(b"line 5\n", b"five\n")
    .replace(b"line 7\n", b"seven\nmore\n")
    .replace(b"line 30\n", b"thirty\n")
)
PATH = "numbers.txt"


@pytest.fixture
async def review() -> AsyncGenerator[Review]:
    """Return an open review of one file with two hunks, of five and two changed lines."""
    async for opened in opened_review([FakeFile(PATH, BASE, AGENT)], size=(100, 40)):
        await opened.open(PATH)
        yield opened


def marks(review: Review) -> list[str]:
    """Return the letters of each hunk."""
    assert review.screen.changes is not None
    return [unit.marks for unit in review.screen.changes.files[0].hunks]


async def test_v_and_space_accept_the_line_under_the_cursor_alone(review: Review) -> None:
    await review.keys("v", "space")
    assert marks(review) == ["aoooo", "oo"]
    assert "1 in, 4 open" in review.line("unit")
    await review.keys("v", "x")
    assert marks(review) == ["arooo", "oo"]


async def test_a_range_over_unchanged_lines_and_two_hunks_is_one_step(review: Review) -> None:
    await review.keys("v", "G")
    assert "7 lines chosen" in review.line("unit")
    await review.keys("x")
    assert marks(review) == ["rrrrr", "rr"]
    assert len(review.keeper.decided) == 1
    await review.keys("u")
    assert marks(review) == ["ooooo", "oo"]


async def test_deciding_lines_again_opens_them_and_backspace_does_always(review: Review) -> None:
    await review.keys("v", "j", "space", "g")
    await review.keys("right_square_bracket", "left_square_bracket", "v", "j", "space")
    assert marks(review)[0] == "ooooo"
    await review.keys("left_square_bracket", "x", "left_square_bracket", "backspace")
    assert marks(review)[0] == "ooooo"


async def test_a_block_is_the_changed_lines_that_stand_together(review: Review) -> None:
    await review.keys("S")
    assert "2 lines chosen" in review.line("unit")
    await review.keys("space")
    assert marks(review) == ["aaooo", "oo"]


async def test_escape_ends_a_choice_and_what_is_unchanged_is_said(review: Review) -> None:
    await review.keys("v", "escape", "space")
    assert marks(review) == ["aaaaa", "oo"]
    await review.keys("g", "v", "space")
    assert "No changed line is chosen" in review.notice


async def test_a_partly_decided_hunk_is_still_open(review: Review) -> None:
    await review.keys("v", "space", "G", "n")
    assert "hunk 1 of 2" in review.line("unit")
    assert "0/2 hunks" in review.line("head")
    await review.keys("plus")
    assert marks(review) == ["aaaaa", "aa"]
    await review.keys("u")
    assert marks(review) == ["aoooo", "oo"]


async def test_all_safe_leaves_a_rejected_line_rejected(review: Review) -> None:
    await review.keys("v", "x", "plus")
    assert marks(review) == ["raaaa", "aa"]


async def click(review: Review, x: int, row: int) -> None:
    """Click a cell of the diff."""
    pane = review.screen.pane
    await review.pilot.click(pane, offset=(x, pane.top_of(row) - pane.scroll_offset.y))
    await settle(review.pilot)


async def test_clicks_on_marks_accept_reject_and_open_again(review: Review) -> None:
    first = review.screen.pane.first_row_of(0)
    for expected in ("aaaaa", "rrrrr", "ooooo"):
        await click(review, 0, first)
        assert marks(review)[0] == expected
    for expected in ("oaooo", "orooo", "ooooo"):
        await click(review, EDGE + 1, first + 1)
        assert marks(review)[0] == expected
    await click(review, EDGE + 20, first + 1)
    assert marks(review)[0] == "ooooo"
    assert review.screen.pane.cursor == first + 1


async def test_in_a_mixed_hunk_the_mark_at_the_edge_is_the_lines(review: Review) -> None:
    first = review.screen.pane.first_row_of(0)
    await click(review, EDGE + 1, first + 1)
    await click(review, 1, first)
    assert marks(review)[0] == "aaooo"


async def test_in_two_columns_each_side_has_its_own_line(review: Review) -> None:
    await review.keys("s")
    pane = review.screen.pane
    first = pane.first_row_of(0)
    right = EDGE + pane.look.gutter + pane.look.code_width("old") + 2
    await click(review, right, first)
    assert marks(review)[0] == "oaooo"
    await click(review, EDGE + 1, first)
    assert marks(review)[0] == "aaooo"
    assert pane.row_decision(0, pane.row_at(first)) == "accepted"


async def test_lines_are_chosen_by_drawing_over_them(review: Review) -> None:
    pane = review.screen.pane
    y = pane.top_of(pane.first_row_of(0)) - pane.scroll_offset.y
    await review.pilot.mouse_down(pane, offset=(30, y))
    await review.pilot.hover(pane, offset=(30, y + 1))
    await review.pilot.mouse_up(pane, offset=(30, y + 1))
    await settle(review.pilot)
    assert "2 lines chosen" in review.line("unit")
    await review.keys("space")
    assert marks(review)[0] == "aaooo"


async def test_words_of_the_lower_line_are_clicked(review: Review) -> None:
    unit = review.screen.query_one("#unit")
    width = unit.size.width
    await review.pilot.click(unit, offset=(width - 3, 0))
    await settle(review.pilot)
    assert marks(review)[0] == "rrrrr"


async def test_lines_are_copied_without_numbers(review: Review) -> None:
    await review.keys("v", "j", "j", "y")
    assert review.app.clipboard == "line 5\nfive\nline 6"
    await review.keys("escape", "y")
    assert review.app.clipboard.startswith("line 5\nfive\nline 6\nline 7")


async def test_a_risk_that_only_its_characters_show_is_left_out_of_all_safe() -> None:
    trojan = FakeFile("ok.txt", b"a\n", "a\u202eb\n".encode())
    async for review in opened_review([trojan]):
        assert "1 risky" in review.line("head")
        await review.keys("plus")
        assert "Nothing safe is open" in review.notice
