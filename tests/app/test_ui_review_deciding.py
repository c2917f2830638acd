"""Deciding in a review: hunks, files, everything safe."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from textual import events

from app.errors import AppError
from app.protocol_review import StepReport
from tests.doubles.pilots import settle, until
from tests.doubles.reviews import TOKENIZER, Review, opened_review
from tests.doubles.scenes import changed_files

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@pytest.fixture
async def review() -> AsyncGenerator[Review]:
    """Return an open review of every kind of change."""
    async for opened in opened_review():
        yield opened


async def test_risky_files_come_first_and_everything_is_listed(review: Review) -> None:
    paths = [row.key for row in review.screen.files.items if not row.folder]
    assert paths[:3] == ["bin/run.sh", "logo.png", ".github/workflows/ci.yml"]
    assert sorted(paths) == sorted(file.path for file in changed_files())
    assert "0/11 files" in review.line("head")
    assert "0/15 hunks" in review.line("head")
    assert "3 risky" in review.line("head")


async def test_space_accepts_goes_on_and_says_so(review: Review) -> None:
    await review.open(TOKENIZER)
    assert "hunk 1 of 4" in review.line("unit")
    await review.keys("space")
    assert review.decisions() == ["accepted", "open", "open", "open"]
    assert "hunk 2 of 4" in review.line("unit")
    await review.keys("x")
    assert review.decisions() == ["accepted", "rejected", "open", "open"]
    assert "1 accepted" in review.line("file")
    assert "1 rejected" in review.line("file")


async def test_space_on_what_is_accepted_opens_it_again(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "left_square_bracket")
    assert "open again" in review.line("unit")
    await review.keys("space")
    assert review.decisions() == ["open"] * 4
    assert "hunk 1 of 4" in review.line("unit")


async def test_two_quick_presses_decide_two_hunks(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.pilot.press("space", "space")
    await settle(review.pilot)
    assert review.decisions() == ["accepted", "accepted", "open", "open"]


async def test_a_double_press_that_rejects_files_is_taken_back_whole(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.pilot.press("D", "D")
    await settle(review.pilot)
    assert review.decisions() == ["rejected"] * 4
    await review.keys("u", "u")
    found = {unit.decision for file in review.screen.by_path.values() for unit in file.hunks}
    assert found == {"open"}


async def test_after_the_last_hunk_the_next_open_file_is_shown(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "space", "space", "space")
    assert review.screen.path == "src/quotes.py"
    await until(review.pilot, lambda: "hunk 1 of 1" in review.line("unit"))


async def test_undo_and_redo_go_through_the_keeper(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "x", "u")
    assert review.decisions() == ["accepted", "open", "open", "open"]
    await review.keys("u")
    assert review.decisions() == ["open"] * 4
    assert "Taken back: the decision about a hunk" in review.notice
    await review.keys("u")
    assert "There is nothing to take back" in review.notice
    review.keeper.step = StepReport(solutions=1)
    await review.keys("ctrl+r")
    assert "Again as it was: the solution of a conflict" in review.notice
    assert review.decisions() == ["accepted", "open", "open", "open"]


async def test_whole_files_are_accepted_and_dropped(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("A")
    assert review.decisions() == ["accepted"] * 4
    assert review.screen.path == "src/quotes.py"
    await review.open(TOKENIZER)
    await review.keys("D")
    assert review.decisions() == ["rejected"] * 4


async def test_no_wide_action_is_the_shift_of_its_narrow_twin(review: Review) -> None:
    table = review.screen.table()
    wide = {"accept_file", "reject_file", "accept_safe", "merge", "take_back"}
    narrow = ("space", "x", "u", "c", "v", "e", "backspace")
    assert {table[key.upper()].action for key in narrow if key.upper() in table}.isdisjoint(wide)
    assert "a" not in table


async def test_all_safe_leaves_risky_files_out_and_says_it_in_numbers(review: Review) -> None:
    await review.keys("plus")
    assert "Accepted 13 hunks in 9 files, 1 of them for builds or CI. 2 risky left out" in (
        review.notice
    )
    assert review.decisions() == ["accepted"] * 4
    assert review.decisions(".github/workflows/ci.yml") == ["accepted"]
    assert review.decisions("bin/run.sh") == ["open"]
    assert len(review.keeper.decided) == 1
    await review.keys("u")
    assert review.decisions() == ["open"] * 4


async def test_all_safe_keeps_what_was_rejected(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("x", "plus")
    assert review.decisions() == ["rejected", "accepted", "accepted", "accepted"]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("bin/run.sh", "mode"),
        ("logo.png", "binary"),
        ("current", "link"),
        ("docs/guide.md", "rename"),
    ],
)
async def test_what_has_no_lines_has_a_row_and_is_decided(
    review: Review, path: str, says: str
) -> None:
    await review.open(path)
    assert says in review.line("unit")
    await review.keys("space")
    assert review.decisions(path)[0] == "accepted"


async def test_deleted_added_and_emptied_files_are_decided(review: Review) -> None:
    for path in ("docs/old.md", "src/quotes.py", "app/[slug]/page with space.tsx"):
        await review.open(path)
        await review.keys("space")
        assert review.decisions(path) == ["accepted"]
    await review.open("docs/old.md")
    assert "deleted" in review.line("file")


async def test_what_cannot_be_merged_says_why(review: Review) -> None:
    await review.open("run.sock")
    assert review.screen.pane.document is not None
    assert "a socket" in review.screen.pane.document.notes[0]
    await review.keys("space")
    assert "cannot be merged: a socket" in review.notice
    await review.keys("A")
    assert review.keeper.decided == []


async def test_in_the_list_the_same_keys_decide_files(review: Review) -> None:
    await review.keys("tab", "j", "j", "j", "j", "space")
    assert review.screen.files.has_focus
    assert review.decisions() == ["accepted"] * 4
    await review.keys("x")
    assert review.decisions() == ["rejected"] * 4
    await review.keys("enter")
    assert review.screen.pane.has_focus
    assert review.screen.path == TOKENIZER


async def test_a_decision_that_is_refused_is_said_and_stays_open(review: Review) -> None:
    await review.open(TOKENIZER)
    review.keeper.refuse = AppError("not-found", "That hunk is gone.", "")
    await review.keys("space")
    assert "That hunk is gone" in review.notice
    assert review.decisions() == ["open"] * 4


async def test_nothing_is_decided_about_a_file_that_is_not_shown_yet(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    await review.open(TOKENIZER)
    gate, blob = asyncio.Event(), review.keeper.blob

    async def slow(digest: str) -> bytes:
        await gate.wait()
        return await blob(digest)

    monkeypatch.setattr(review.keeper, "blob", slow)
    for key in ("right_curly_bracket", "space"):
        review.app.post_message(events.Key(key, None))
    await review.pilot.pause()
    await review.app.turns.settled()
    assert "still being read" in review.notice
    assert review.keeper.decided == []
    gate.set()
    await settle(review.pilot)
    await review.keys("space")
    assert [decision.path for step in review.keeper.decided for decision in step] == [
        "src/quotes.py"
    ]


async def test_the_cursor_stays_after_a_decision_when_it_is_told_to(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("ctrl+n", "space")
    assert review.decisions()[0] == "accepted"
    assert review.screen.unit_index() == 0
    await review.keys("ctrl+n", "x")
    assert review.decisions()[0] == "rejected"
    assert review.screen.unit_index() == 1
