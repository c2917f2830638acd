"""Merging from a review, and taking a merge back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.protocol import Changes, FileChange, MergeReport, Skipped
from app.services.merge_facts import merge_facts
from app.ui.conflict_dialog import ConflictDialog
from app.ui.dialogs import MergedDialog, MergeDialog, paths_text
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import screen_text, settle, until
from tests.doubles.reviews import TOKENIZER, Review, opened_review
from themes.glyphs import UNICODE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


@pytest.fixture
async def review() -> AsyncGenerator[Review]:
    """Return an open review of every kind of change."""
    async for opened in opened_review():
        yield opened


async def test_merge_needs_something_accepted(review: Review) -> None:
    await review.keys("M")
    assert "Nothing is accepted yet" in review.notice
    assert review.keeper.merges == []


async def test_merge_shows_numbers_and_only_another_key_writes(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "x", "M")
    dialog = review.app.screen
    assert isinstance(dialog, MergeDialog)
    facts = dialog.facts
    assert (facts.written, facts.accepted_hunks, facts.rejected_hunks, facts.open_hunks) == (
        (TOKENIZER,),
        1,
        1,
        13,
    )
    await review.keys("M", "enter", "space")
    assert review.keeper.merges == []
    await review.keys("y")
    await until(review.pilot, lambda: isinstance(review.app.screen, MergedDialog))
    assert [report.written for report in review.keeper.merges] == [(TOKENIZER,)]


async def test_escape_in_the_summary_writes_nothing(review: Review) -> None:
    await review.keys("plus", "M", "escape")
    assert review.app.screen is review.screen
    assert review.keeper.merges == []


async def test_risky_files_that_go_in_are_named(review: Review) -> None:
    await review.keys("A", "M")
    dialog = review.app.screen
    assert isinstance(dialog, MergeDialog)
    assert list(dialog.facts.risky) == ["bin/run.sh"]


def test_the_summary_has_the_risky_ones_first_and_says_why_there_is_a_conflict() -> None:
    changes = Changes(
        session="s", generation=1,
        files=(FileChange("a.txt", "added"), FileChange("hook", "added", risk="runs")),
    )  # fmt: skip
    report = MergeReport(
        "m", ("a.txt", "hook"), ("b\x1b", "c"), reasons=(Skipped("b\x1b", "you deleted it"),)
    )
    facts = merge_facts(changes, report)
    assert facts.written == ("hook", "a.txt")
    said = paths_text(facts, UNICODE).plain.splitlines()
    assert said[0].endswith("conflict: you deleted it")
    assert said[1].endswith("conflict: your file is left as it is")
    assert "\x1b" not in "".join(said)


async def test_a_key_of_the_summary_leads_to_the_conflicts(review: Review) -> None:
    await review.keys("plus", "M", "C")
    assert isinstance(review.app.screen, MergeDialog), "without a conflict it does nothing"
    await review.keys("escape")
    review.keeper.clashing = ("README.md",)
    await review.keys("M", "C")
    await until(review.pilot, lambda: isinstance(review.app.screen, ConflictDialog))
    assert review.keeper.merges == []


async def test_conflicts_are_listed_and_counted(review: Review) -> None:
    review.keeper.clashing = ("README.md",)
    await review.keys("plus", "M")
    dialog = review.app.screen
    assert isinstance(dialog, MergeDialog)
    assert dialog.facts.conflicts == ("README.md",)
    await review.keys("y")
    await until(review.pilot, lambda: isinstance(review.app.screen, MergedDialog))
    await review.keys("enter")
    assert "1 conflict" in review.line("head")


async def test_a_merge_is_taken_back_after_a_question_in_numbers(review: Review) -> None:
    await review.keys("plus", "M", "y")
    await until(review.pilot, lambda: isinstance(review.app.screen, MergedDialog))
    await review.keys("T")
    assert "9 files become what they were" in review.notice
    await review.keys("T")
    assert review.keeper.undone == []
    await review.keys("T", "y")
    assert review.keeper.undone == ["m1"]
    assert "Restored 8 files and deleted 2 files" in review.notice
    await review.keys("T")
    assert "Nothing of this session is merged" in review.notice


async def test_a_merge_that_fails_is_said(review: Review) -> None:
    await review.keys("plus")
    review.keeper.refuse = AppError("merge-aborted", "The disk is full.", "Free some space.")
    await review.keys("M")
    assert review.notice == "The disk is full. → Free some space."


async def test_merged_files_say_so_and_a_merge_is_taken_back_after_coming_back(
    review: Review,
) -> None:
    await review.keys("plus", "M", "y")
    await until(review.pilot, lambda: isinstance(review.app.screen, MergedDialog))
    await review.keys("enter")
    assert "9 merged" in review.line("head")
    assert sum(row.merged for row in review.screen.files.items) == 9
    await review.open("README.md")
    assert "merged into your workspace" in review.line("file")
    assert not any(row.merged and row.drift for row in review.screen.files.items)
    await review.keys("q")
    review.app.open_review("s1")
    await until(review.pilot, lambda: review.screen.changes is not None)
    assert "9 merged" in review.line("head")
    await review.keys("T")
    assert "9 files become what they were" in review.notice
    await review.keys("y")
    assert review.keeper.undone == ["m1"]
    await until(review.pilot, lambda: "merged" not in review.line("head"))


async def test_files_are_listed_in_three_orders(review: Review) -> None:
    def paths() -> list[str]:
        return [row.key for row in review.screen.files.items if not row.folder]

    first = paths()
    await review.keys("tab", "o")
    assert sorted(paths()) == sorted(first)
    assert paths()[0] == ".github/workflows/ci.yml"
    assert paths()[-1] == "run.sock"
    assert "by path" in review.line("files-title")
    await review.keys("o")
    assert paths()[0] == "src/tokenizer.py"
    await review.keys("o")
    assert paths() == first
    await review.keys("slash", *"no such")
    assert "no file is so" in screen_text(review.pilot)


async def test_what_is_accepted_is_copied_as_a_patch(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("space", "x", "M", "p")
    await until(review.pilot, lambda: review.app.clipboard != "")
    patch = review.app.clipboard
    assert patch.startswith(f"diff --git a/{TOKENIZER} b/{TOKENIZER}\n")
    assert patch.count("@@ -") == 1
    assert "The patch is copied" in review.notice
    assert review.keeper.merges == []


async def test_a_patch_that_is_no_text_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    async for review in opened_review([FakeFile("a.txt", b"x\n", b"caf\xe9\n")]):
        await review.keys("A", "M", "p")
        await settle(review.pilot)
        assert "The patch is saved" in review.notice
        assert review.app.clipboard == ""
        (patch,) = saved_below(tmp_path)
        assert patch.endswith(b"-x\n+caf\xe9\n")


def saved_below(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.glob("cloche-sides-*/*/review.patch")]
