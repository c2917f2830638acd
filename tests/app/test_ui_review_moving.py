"""Moving in a review, and what it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.protocol import Decide
from app.ui.fleet_screen import FleetScreen
from app.ui.review_screen import ReviewScreen
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import press, screen_text, settle, until
from tests.doubles.reviews import SIZE, TOKENIZER, Review, opened_review
from tests.doubles.scenes import workstation
from widgets.line_bar import LineBar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


def paths_of(review: Review) -> list[str]:
    """Return the files that the list shows."""
    return [row.key for row in review.screen.files.items if not row.folder]


@pytest.fixture
async def review() -> AsyncGenerator[Review]:
    """Return an open review of every kind of change."""
    async for opened in opened_review():
        yield opened


async def test_hunks_and_files_are_walked_through(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("right_square_bracket")
    assert "hunk 2 of 4" in review.line("unit")
    await review.keys("left_square_bracket", "left_square_bracket")
    assert review.screen.path == ".github/workflows/ci.yml"
    await review.keys("right_curly_bracket")
    assert review.screen.path == TOKENIZER
    await review.keys("right_curly_bracket")
    assert review.screen.path == "src/quotes.py"


async def test_the_ends_of_the_list_are_said(review: Review) -> None:
    await review.keys("left_curly_bracket")
    assert "first file" in review.notice
    await review.open("run.sock")
    await review.keys("right_curly_bracket")
    assert "last file" in review.notice


async def test_n_goes_to_what_is_open_and_says_when_nothing_is(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("A")
    await review.open(TOKENIZER)
    await review.keys("n")
    assert review.screen.path == "src/quotes.py"
    for file in review.keeper.files:
        if not file.note:
            review.screen.open_file(file.path)
            await review.keys("A") if review.decisions(file.path) != ["accepted"] * len(
                review.decisions(file.path)
            ) else None
    await review.keys("n")
    assert "Everything is decided" in review.notice


async def test_split_follows_the_width_until_the_user_chooses(review: Review) -> None:
    pane = review.screen.pane
    assert pane.layout_name == "split"
    await review.pilot.resize_terminal(100, 40)
    await until(review.pilot, lambda: pane.layout_name == "unified")
    await review.keys("s")
    assert pane.layout_name == "split"
    await review.pilot.resize_terminal(90, 40)
    await settle(review.pilot)
    assert pane.layout_name == "split"


async def test_a_file_with_one_side_is_not_split(review: Review) -> None:
    seen: list[str] = []
    for path in ("src/quotes.py", TOKENIZER, "docs/old.md"):
        await review.open(path)
        seen.append(review.screen.pane.layout_name)
    assert seen == ["unified", "split", "unified"]


async def test_the_list_of_files_can_be_hidden(review: Review) -> None:
    await review.keys("t")
    assert not review.screen.query_one("#side").display
    await review.keys("tab")
    assert review.screen.query_one("#side").display
    assert review.screen.files.has_focus
    await review.keys("t")
    assert review.screen.pane.has_focus


async def test_wrapping_and_scrolling_to_the_side(review: Review) -> None:
    pane = review.screen.pane
    await review.keys("l", "l")
    assert pane.side_scroll == 16
    await review.keys("h")
    assert pane.side_scroll == 8
    await review.keys("w")
    assert pane.wrap_lines
    assert pane.side_scroll == 0
    await review.keys("l", "w")
    assert not pane.wrap_lines


async def test_folds_open_by_enter_and_the_whole_file_by_z(review: Review) -> None:
    await review.open(TOKENIZER)
    pane = review.screen.pane
    before = pane.total_rows
    await review.keys("g", "enter")
    assert pane.total_rows > before
    await review.keys("Z")
    assert pane.document is not None
    rows = pane.document.rows.rows(0, pane.total_rows)
    assert all(row.kind != "fold" for row in rows)
    await review.keys("G", "g", "pagedown", "pageup", "j", "k")


async def test_find_marks_and_walks(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("slash", *"quote")
    pane = review.screen.pane
    assert pane.find == "quote"
    first = pane.cursor
    await review.keys("down")
    assert pane.cursor > first
    await review.keys("up")
    assert pane.cursor == first
    await review.keys(*"xyz")
    assert review.screen.query_one(LineBar).text == "quotexyz"
    await review.keys("escape")
    assert pane.find == ""
    assert pane.has_focus


async def test_after_enter_n_walks_through_what_was_found_and_escape_ends_it(
    review: Review,
) -> None:
    await review.open(TOKENIZER)
    pane = review.screen.pane
    await review.keys("slash", *"quote", "enter")
    assert pane.has_focus
    first = pane.cursor
    await review.keys("n")
    second = pane.cursor
    assert second > first
    await review.keys("N")
    assert pane.cursor == first
    await review.keys("escape")
    assert pane.find == ""
    await review.keys("n")
    assert "hunk 2 of 4" in review.line("unit")
    await review.keys("N")
    assert "hunk 1 of 4" in review.line("unit")


async def test_what_is_folded_away_is_found_and_shown(review: Review) -> None:
    await review.open(TOKENIZER)
    pane = review.screen.pane
    before = pane.total_rows
    await review.keys("slash", *"isspace", "enter")
    assert pane.total_rows > before
    assert "isspace" in pane.row_strip(pane.cursor).text


async def test_context_grows_and_shrinks_and_the_line_stays(review: Review) -> None:
    await review.open(TOKENIZER)
    pane = review.screen.pane
    before, top = pane.total_rows, pane.scroll_offset.y
    line, offset = pane.row_at(pane.cursor), pane.cursor - top
    await review.keys("greater_than_sign")
    assert pane.total_rows > before
    assert pane.row_at(pane.cursor) == line
    await review.keys("less_than_sign", "less_than_sign", "less_than_sign")
    assert pane.total_rows < before
    assert pane.row_at(pane.cursor) == line
    assert pane.cursor - pane.scroll_offset.y <= offset


async def test_a_filter_in_the_list_of_files(review: Review) -> None:
    await review.keys("tab", "slash", *"docs")
    assert paths_of(review) == ["docs/old.md", "docs/guide.md"]
    await review.keys("escape")
    assert len(paths_of(review)) == 12
    assert review.screen.files.has_focus
    await review.keys("slash", *"docs !old", "enter")
    assert "docs/guide.md" in paths_of(review)
    assert "docs/old.md" not in paths_of(review)
    assert "/docs !old" in review.line("files-title")
    await review.keys("escape")
    assert len(paths_of(review)) == 12


async def test_decisions_of_somebody_else_arrive(review: Review) -> None:
    await review.keeper.decide([Decide(TOKENIZER, "accepted")])
    await until(review.pilot, lambda: review.decisions() == ["accepted"] * 4)


async def test_a_newer_generation_waits_until_it_is_asked_for(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space")
    keeper = review.keeper
    keeper.generation = 2
    keeper.files.append(FakeFile("late.txt", None, b"late\n"))
    keeper.publish("changes")
    await until(review.pilot, lambda: review.screen.pending is not None)
    assert "changed since" in review.line("head")
    assert "late.txt" not in [row.key for row in review.screen.files.items]
    await review.keys("space")
    assert review.decisions()[:2] == ["accepted", "accepted"]
    await review.keys("r")
    assert keeper.refreshed == 1
    assert "late.txt" in [row.key for row in review.screen.files.items]
    assert "changed since" not in review.line("head")


async def test_leaving_keeps_decisions_and_coming_back_shows_them(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "q")
    assert isinstance(review.app.screen, FleetScreen)
    review.app.open_review("s1")
    await settle(review.pilot)
    await until(review.pilot, lambda: review.screen.changes is not None)
    assert review.decisions() == ["accepted", "open", "open", "open"]


async def test_an_agent_that_changed_nothing() -> None:
    async for review in opened_review([]):
        assert review.screen.query_one("#empty").display
        await review.keys("space", "x", "n", "A", "D", "plus", "u", "M", "slash", "escape", "r")
        assert review.app.screen is review.screen
        review.keeper.generation = 2
        review.keeper.files.append(FakeFile("first.txt", None, b"x\n"))
        await review.keys("r")
        assert review.screen.path == "first.txt"
        assert review.screen.pane.display


async def test_a_keeper_that_cannot_be_reached_is_an_error_with_a_fix() -> None:
    app, fleet, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        fleet.refuse = AppError("keeper-lost", "The keeper does not answer.", "cloche doctor")
        await press(pilot, "r")
        screen = app.screen
        assert isinstance(screen, ReviewScreen)
        assert screen.notice is not None
        assert screen.notice.hint == "cloche doctor"
        await press(pilot, "space", "M", "r", "u", "q")
        assert isinstance(app.screen, FleetScreen)


async def test_80_by_24_shows_the_diff_and_tab_the_files() -> None:
    async for review in opened_review(size=(80, 24)):
        assert not review.screen.query_one("#side").display
        assert review.screen.pane.layout_name == "unified"
        await review.keys("tab")
        assert review.screen.query_one("#side").display
        assert not review.screen.query_one("#main").display
        await review.keys("j", "enter")
        assert review.screen.query_one("#main").display
        assert review.screen.path == "logo.png"


async def test_every_file_is_shown_printable(review: Review) -> None:
    evil = FakeFile(
        "e\x1b]52;c;x\x07vil\u202e.py", b"ok\n", "x = 1 # \x1b[2J\u202e hidden\x9b\n".encode()
    )
    review.keeper.files.append(evil)
    await review.keys("r")
    await review.open(evil.path)
    shown = screen_text(review.pilot)
    assert "vil" in shown
    assert not any(char in shown for char in "\x1b\x07\x9b\u202e")
    assert "Hidden or reordering characters" in shown


async def test_names_that_look_like_markup_are_shown_whole(review: Review) -> None:
    for name in ("[/foo].py", "[red]x[/].py"):
        review.keeper.files.append(FakeFile(name, b"1\n", b"2 [/bar] [@click=quit]x\n"))
    await review.keys("r")
    for name in ("[/foo].py", "[red]x[/].py"):
        await review.open(name)
        shown = screen_text(review.pilot)
        assert name in shown
        assert "2 [/bar] [@click=quit]x" in shown


async def test_both_sides_get_their_colours(review: Review) -> None:
    await review.open(TOKENIZER)
    pane = review.screen.pane
    await until(
        review.pilot,
        lambda: pane.document is not None and set(pane.document.spans) == {"old", "new"},
    )
    assert pane.document is not None
    kinds = {name for line in pane.document.spans["new"].values() for _, _, name in line}
    assert {"keyword", "string", "function"} <= kinds
