"""The screen that reads an agent's commits: moving, hostile texts, and that it decides nothing."""

from __future__ import annotations

import time
import unicodedata
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.errors import AppError
from app.protocol_commits import Branch, CommitFile, CommitInfo, CommitList
from app.ui.commit_facts import commit_rows, flags_of, moment_of, reachable, short_moment
from app.ui.commit_screen import CommitScreen
from tests.doubles.commits import FIRST, MERGE, SECOND, TRAP, give_commits
from tests.doubles.pilots import screen_text, settle, until
from tests.doubles.reviews import Reading, Review, opened_review

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

NARROW = (80, 24)


class Commits(Reading):
    """An open screen of commits over a review."""

    def __init__(self, review: Review) -> None:
        super().__init__(review.app, review.pilot, review.keeper)
        self.review = review

    @property
    def screen(self) -> CommitScreen:
        """The screen."""
        screen = super().screen
        assert isinstance(screen, CommitScreen)
        return screen

    async def show(self, key: str) -> None:
        """Put the cursor of the list on a commit and wait for its change."""
        self.screen.wanted = key
        self.screen.commits.select(key)
        self.screen.show_change()
        await until(self.pilot, lambda: self.screen.shown == key)
        await settle(self.pilot)

    async def begin(self) -> Commits:
        """Open the screen and wait for the first change."""
        give_commits(self.keeper, time.time())
        await self.keys("L")
        await until(self.pilot, lambda: self.screen.shown != "")
        await settle(self.pilot)
        return self


async def opened(size: tuple[int, int] = (160, 40)) -> AsyncGenerator[Commits]:
    async for review in opened_review(size=size):
        yield await Commits(review).begin()


@pytest.fixture
async def commits() -> AsyncGenerator[Commits]:
    async for one in opened():
        yield one


async def test_commits_are_listed_from_the_oldest_below_their_branches(commits: Commits) -> None:
    rows = [row.key for row in commits.screen.commits.items]
    assert rows == ["branch main", "branch quotes", FIRST, SECOND, MERGE, TRAP]
    first = commits.screen.commits.items[2]
    assert (first.short, first.title) == ("1111111", "Scan both kinds of quotes")
    assert "3d" in first.about
    assert "1 file" in first.about
    assert (first.added, first.removed) == (12, 4) or first.added > 0
    assert [row.flagged for row in commits.screen.commits.items][-1]
    assert commits.screen.commits.items[4].merge


async def test_the_diff_follows_the_commit_and_comes_back_to_the_whole(commits: Commits) -> None:
    await commits.keys("full_stop", "full_stop")
    await until(commits.pilot, lambda: commits.screen.shown == FIRST)
    await until(commits.pilot, lambda: commits.screen.loaded is not None)
    assert commits.screen.path == "src/tokenizer.py"
    assert "Scan both kinds of quotes" in commits.line("commit")
    await commits.keys("full_stop")
    await until(commits.pilot, lambda: commits.screen.shown == SECOND)
    assert {file.path for file in commits.screen.ordered} >= {"src/quotes.py", "logo.png"}
    await commits.keys("comma")
    await until(commits.pilot, lambda: commits.screen.shown == FIRST)
    await commits.keys("q")
    assert commits.review.app.screen is commits.review.screen
    assert commits.review.screen.path == "src/tokenizer.py"


async def test_hunks_and_files_are_walked_and_the_end_is_told(commits: Commits) -> None:
    await commits.show(FIRST)
    await commits.keys("tab", "tab")
    seen = [commits.screen.pane.current_unit]
    for _ in range(commits.screen.pane.unit_count - 1):
        await commits.keys("right_square_bracket")
        seen.append(commits.screen.pane.current_unit)
    assert seen == list(range(commits.screen.pane.unit_count))
    await commits.keys("right_square_bracket")
    assert "last file of the commit" in commits.notice
    await commits.show(SECOND)
    before = commits.screen.path
    await commits.keys("right_curly_bracket")
    await until(commits.pilot, lambda: commits.screen.path != before)
    await commits.keys("left_square_bracket")
    await until(commits.pilot, lambda: commits.screen.path == before)


@pytest.mark.parametrize("key", ["space", "x", "A", "D", "plus", "M", "c"])
async def test_nothing_is_decided_here_and_the_screen_says_where(
    commits: Commits, key: str
) -> None:
    await commits.show(FIRST)
    await commits.keys("enter", key)
    assert "decisions are about the whole change" in commits.notice
    assert commits.keeper.decided == []
    assert "decisions are about the whole change" in commits.line("unit")


async def test_a_click_on_a_mark_decides_nothing(commits: Commits) -> None:
    await commits.show(FIRST)
    row = commits.screen.pane.first_row_of(0) - commits.screen.pane.scroll_offset.y
    await commits.pilot.click(commits.screen.pane, offset=(1, row))
    await settle(commits.pilot)
    assert commits.keeper.decided == []
    assert "whole change" in commits.notice
    await commits.pilot.click(commits.screen.commits, offset=(5, 2 * 3))
    await until(commits.pilot, lambda: commits.screen.shown == SECOND)


async def test_hostile_texts_reach_no_screen_as_they_are(commits: Commits) -> None:
    await commits.show(TRAP)
    text = screen_text(commits.pilot)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "touches .env" in commits.line("commit")
    assert "1 to look at" in commits.line("head")


async def test_an_empty_merge_and_a_whole_branch(commits: Commits) -> None:
    await commits.show(MERGE)
    assert commits.screen.files.items == ()
    assert not commits.screen.pane.display
    assert "merge of 2, against the first" in commits.line("commit")
    assert "no hunk" in commits.line("unit")
    await commits.show("branch main")
    assert commits.screen.pane.display
    assert "all of the branch" in commits.line("commit")
    assert "src/quotes.py" in {file.path for file in commits.screen.ordered}


async def test_words_filter_the_commits(commits: Commits) -> None:
    await commits.keys("slash", *"logo", "enter")
    keys = [row.key for row in commits.screen.commits.items]
    assert keys == ["branch main", "branch quotes", SECOND]
    await commits.keys("slash", "escape")
    assert len(commits.screen.commits.items) == 6


async def test_a_text_is_found_in_the_file(commits: Commits) -> None:
    await commits.show(FIRST)
    await commits.keys("enter", "slash", *"scan", "enter")
    first = commits.screen.pane.cursor
    await commits.keys("n")
    assert commits.screen.pane.cursor > first
    await commits.keys("N")
    assert commits.screen.pane.cursor == first
    await commits.keys("escape", "n")
    assert "Nothing is searched for" in commits.notice


async def test_branches_become_refs_after_a_question(commits: Commits) -> None:
    await commits.keys("F", "escape")
    assert all(not branch.ref for branch in commits.keeper.agents_commits.branches)
    await commits.keys("F", "y")
    assert all(branch.ref for branch in commits.keeper.agents_commits.branches)
    assert "refs/cloche/s/main" in commits.notice


async def test_a_refusal_is_told_and_the_list_stays(commits: Commits) -> None:
    commits.keeper.refuse = AppError("bundle-refused", "The commits are refused.", "cloche changes")
    commits.screen.changes.clear()
    commits.screen.wanted = SECOND
    commits.screen.show_change()
    await until(commits.pilot, lambda: "refused" in commits.notice)
    assert len(commits.screen.commits.items) == 6


async def test_no_commits_are_an_empty_page_with_what_to_do() -> None:
    async for review in opened_review():
        await review.keys("L")
        await settle(review.pilot)
        assert "It made no new commits" in screen_text(review.pilot)
        await review.keys("q")
        assert review.app.screen is review.screen


async def test_commits_that_cannot_be_read_are_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(**_: bool) -> CommitList:
        raise AppError("bundle-refused", "The agent's commits are refused: no.", "cloche changes")

    async for review in opened_review():
        monkeypatch.setattr(review.keeper, "commits", refuse)
        await review.keys("L")
        await settle(review.pilot)
        text = screen_text(review.pilot)
        assert "Its commits cannot be read" in text
        assert "The agent's commits are refused" in text


async def test_a_branch_that_grew_is_read_anew(commits: Commits) -> None:
    await commits.show("branch main")
    commits.keeper.commit_files[TRAP, True] = commits.keeper.commit_files[FIRST, False]
    await commits.keys("r")
    await until(commits.pilot, lambda: len(commits.screen.ordered) == 1)


async def test_narrow_screens_show_lists_or_diff() -> None:
    async for commits in opened(NARROW):
        side, main = commits.screen.query_one("#side"), commits.screen.query_one("#main")
        assert (side.display, main.display) == (True, False)
        await commits.show(FIRST)
        await commits.keys("enter")
        assert (side.display, main.display) == (False, True)
        assert commits.screen.pane.has_focus
        await commits.keys("tab", "tab")
        assert commits.screen.files.has_focus
        await commits.keys("enter")
        assert commits.screen.pane.has_focus


async def test_a_thousand_commits_are_moved_through(commits: Commits) -> None:
    many = [
        CommitInfo(f"{n:040x}", (f"{n - 1:040x}",), "A <a@b.example>", n, f"step {n}")
        for n in range(1000, 0, -1)
    ]
    for one in many:
        commits.keeper.commit_files[one.id, False] = []
    commits.keeper.commit_files[many[0].id, True] = []  # of the branch as a whole
    branches = (Branch("main", many[0].id),)
    commits.keeper.commit_files[many[0].id, True] = []  # the branch's own row is read on the way
    commits.keeper.agents_commits = CommitList("s1", branches, tuple(many))
    await commits.keys("r")
    await until(commits.pilot, lambda: len(commits.screen.commits.items) == 1001)
    await commits.keys("G")
    await until(commits.pilot, lambda: commits.screen.shown == many[0].id)
    assert "step 1000" in commits.line("commit")
    assert commits.screen.commits.items[0].about == "all 1000 commits together"


TEXT = st.text(max_size=40)
UNPRINTABLE = {"Cc", "Cs", "Zl", "Zp"}
"""Control characters, halves of a pair, line and paragraph ends; others only look strange."""


@given(message=TEXT, author=TEXT, at=st.integers(-(10**12), 10**12), path=TEXT)
def test_any_text_and_time_of_an_agent_is_printable(
    message: str, author: str, at: int, path: str
) -> None:
    commit = CommitInfo(
        "a" * 40, (), author, at, message, (CommitFile(path, "A", True),), True, (path,)
    )
    (_, row) = commit_rows(CommitList("s", (Branch("x", "a" * 40),), (commit,)), "", 1e9)
    said = [row.title, row.about, *flags_of(commit), moment_of(commit), short_moment(commit, 1e9)]
    assert all(said)
    assert not {unicodedata.category(char) for text in said for char in text} & UNPRINTABLE
    assert row.flagged


def test_what_a_commit_builds_on_is_counted_once() -> None:
    graph = {"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ("known",)}
    found = CommitList(
        "s", (), tuple(CommitInfo(name, ones, "", 0, "") for name, ones in graph.items())
    )
    assert reachable(found, "a") == set("abcd")
    assert reachable(msgspec.structs.replace(found, commits=()), "a") == set()
