"""The list of files of a review: folders, filters, marks."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.protocol import Changes, FileChange
from app.ui.review_rows import KeptRows, tree_rows, with_known
from app.ui.review_tree import ALL, FILE_ORDERS, Shape, files_under, in_order, passes
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import settle, until
from tests.doubles.reviews import TOKENIZER, Review, opened_review
from tests.sampling import sampled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)
FILES = st.dictionaries(NAMES, st.sampled_from(["", "runs"]), max_size=12)


@pytest.fixture
async def review() -> AsyncGenerator[Review]:
    """Return an open review of every kind of change."""
    async for opened in opened_review():
        yield opened


def shown(review: Review) -> list[str]:
    """Return the keys of the list's rows."""
    return [row.key for row in review.screen.files.items]


@given(files=FILES, order=st.sampled_from(FILE_ORDERS))
def test_each_file_stands_in_the_tree_once_and_in_order(files: dict[str, str], order: str) -> None:
    changes = [FileChange(f"{path}.x", "modified", risk=risk) for path, risk in files.items()]
    ordered = in_order(changes, order)
    rows = tree_rows(ordered, Shape(order))
    assert [row.key for row in rows if not row.folder] == [file.path for file in ordered]
    assert sorted(file.path for file in ordered) == sorted(file.path for file in changes)
    folders = [row.key for row in rows if row.folder]
    assert len(folders) == len(set(folders))
    for row in rows:
        if row.folder:
            assert row.total == len(files_under(ordered, row.key)) or row.key != ALL


def test_folders_with_one_child_are_joined_and_generated_files_come_last() -> None:
    paths = ("uv.lock", "a/b/c/one.py", "a/b/c/two.py", "z.py", "a/b/run.sh")
    files = in_order([FileChange(path, "modified") for path in paths])
    rows = [(row.key, row.path, row.depth) for row in tree_rows(files, Shape())]
    assert rows == [
        (ALL, "all files", 0),
        ("a/b/", "a/b/", 0),
        ("a/b/c/", "c/", 1),
        ("a/b/c/one.py", "one.py", 2),
        ("a/b/c/two.py", "two.py", 2),
        ("a/b/run.sh", "run.sh", 1),
        ("z.py", "z.py", 0),
        ("uv.lock", "uv.lock", 0),
    ]


@pytest.mark.parametrize("order", FILE_ORDERS)
def test_folders_can_be_deeper_than_calls(order: str) -> None:
    depths = range(sys.getrecursionlimit() + 50)
    files = [FileChange("a/" * depth + "f", "modified") for depth in depths]
    rows = tree_rows(in_order(files, order), Shape(order))
    assert sorted(row.key for row in rows if not row.folder) == sorted(file.path for file in files)


CHANGE = st.builds(
    FileChange,
    path=NAMES.map(lambda path: f"{path}.x"),
    kind=st.just("modified"),
    added=st.integers(0, 3),
    risk=st.sampled_from(["", "runs"]),
    note=st.sampled_from(["", "", "a socket"]),
    decision=st.sampled_from(["open", "accepted", "rejected", "mixed"]),
    viewed=st.booleans(),
)
STATES = st.lists(st.lists(CHANGE, max_size=8, unique_by=lambda file: file.path), max_size=4)


@settings(max_examples=sampled(100, 30))
@given(states=STATES, order=st.sampled_from(FILE_ORDERS), closed=st.sampled_from(["", "a/"]))
def test_rows_that_are_kept_are_those_that_would_be_made_anew(
    states: list[list[FileChange]], order: str, closed: str
) -> None:
    kept = KeptRows()
    for state in states:
        conflicts = tuple(file.path for file in state[:1])
        shape = Shape(order, frozenset((closed,)), conflicts)
        ordered = kept.ordered(state, order)
        assert ordered == in_order(state, order)
        assert kept.rows(ordered, shape) == tree_rows(ordered, shape)


@given(states=STATES, order=st.sampled_from(FILE_ORDERS), closed=st.sampled_from(["", "a/"]))
def test_rows_that_were_made_beforehand_are_those_of_their_files_alone(
    states: list[list[FileChange]], order: str, closed: str
) -> None:
    kept, shape = KeptRows(), Shape(order, frozenset((closed,)))
    for state in states:
        asyncio.run(kept.get_ready(state, shape))
        for wanted in (state, state[1:], state):
            ordered = kept.ordered(wanted, order)
            assert kept.rows(ordered, shape) == tree_rows(ordered, shape)
            other = Shape(order, frozenset(("b/",)))
            assert kept.rows(ordered, other) == tree_rows(ordered, other)


@given(state=st.lists(CHANGE, min_size=1, max_size=8, unique_by=lambda file: file.path))
def test_a_folder_adds_up_its_files(state: list[FileChange]) -> None:
    for row in tree_rows(in_order(state, "by path"), Shape("by path")):
        if row.folder:
            files = files_under(state, row.key)
            mergeable = [file for file in files if not file.note]
            decisions = {file.decision for file in mergeable} or {"open"}
            assert row.decision == ("mixed" if len(decisions) > 1 else decisions.pop())
            assert row.added == sum(file.added for file in files)
            assert row.risky == any(file.risk for file in files)
            assert row.total == len(mergeable)
            assert row.done == sum(file.decision != "open" for file in mergeable)


def test_a_decision_about_one_file_keeps_the_rows_of_the_others() -> None:
    files = [FileChange(f"d/{n}", "modified") for n in range(9)]
    kept = KeptRows()
    before = kept.rows(kept.ordered(files, "by path"), Shape("by path"))
    files[4] = msgspec.structs.replace(files[4], decision="accepted")
    after = kept.rows(kept.ordered(files, "by path"), Shape("by path"))
    rows = zip(before, after, strict=True)
    assert [new.key for old, new in rows if old is not new] == [ALL, "d/", "d/4"]


async def test_what_is_as_it_was_is_the_value_that_was_known() -> None:
    known = {n: FileChange(n, "modified") for n in "ab"}
    told = Changes("s", 1, (FileChange("a", "modified"), FileChange("b", "modified", viewed=True)))
    files = (await with_known(told, known)).files
    assert files == told.files
    assert files[0] is known["a"]
    assert files[1] is told.files[1]


async def test_folders_close_and_open_by_keys_and_by_mouse(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("tab", "h")
    assert review.screen.files.current_key == "src/"
    await review.keys("h")
    assert TOKENIZER not in shown(review)
    assert review.screen.path == TOKENIZER
    await review.keys("l")
    assert TOKENIZER in shown(review)
    at = shown(review).index("src/")
    await review.pilot.click(review.screen.files, offset=(3, at))
    await settle(review.pilot)
    assert TOKENIZER not in shown(review)
    await review.keys("enter")
    assert TOKENIZER in shown(review)


async def test_going_to_a_file_opens_the_folder_around(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("tab", "h", "h", "tab", "right_curly_bracket")
    assert review.screen.path == "src/quotes.py"
    assert "src/quotes.py" in shown(review)


async def test_a_folder_is_accepted_rejected_and_opened_as_one_step(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("tab", "h", "space")
    assert review.decisions() == ["accepted"] * 4
    assert review.decisions("src/quotes.py") == ["accepted"]
    assert "Accepted 5 hunks in 2 files" in review.notice
    row = next(row for row in review.screen.files.items if row.key == "src/")
    assert (row.decision, row.done, row.total) == ("accepted", 2, 2)
    await review.keys("x")
    assert review.decisions() == ["rejected"] * 4
    assert "Rejected: 2 files" in review.notice
    await review.keys("x")
    assert review.decisions() == ["open"] * 4
    await review.keys("u", "u")
    assert review.decisions() == ["accepted"] * 4
    assert len(review.keeper.decided) == 3


async def test_everything_is_rejected_at_once_and_accepting_leaves_risky_out(
    review: Review,
) -> None:
    await review.keys("tab", "g", "x")
    assert review.screen.files.current_key == ALL
    assert "Rejected: 11 files" in review.notice
    await review.keys("backspace", "space")
    assert "2 risky left out" in review.notice
    assert review.decisions("bin/run.sh") == ["open"]


async def test_a_click_on_a_sign_in_the_list_decides_the_row(review: Review) -> None:
    at = shown(review).index(TOKENIZER)
    for expected in ("accepted", "rejected", "open"):
        await review.pilot.click(review.screen.files, offset=(1, at))
        await settle(review.pilot)
        assert review.decisions() == [expected] * 4


async def test_filters_list_what_is_open_risky_or_yours(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("A")
    await review.open("README.md")
    await review.keys("f")
    assert "open 10/12" in review.line("files-title")
    assert TOKENIZER not in shown(review)
    await review.keys("f")
    assert "risky 4/12" in review.line("files-title")
    await review.keys("f")
    assert "yours too 1/12" in review.line("files-title")
    await review.keys("escape", "escape")
    assert "12" not in review.line("files-title")
    assert TOKENIZER in shown(review)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("src", True),
        ("*.tsx", True),
        ("*.py", False),
        ("[slug]/*", True),
        ("src/*/page?.tsx", True),
        ("!*.tsx", False),
        ("src !*.py page", True),
        ("app", False),
    ],
)
def test_words_and_patterns_filter_paths(text: str, kept: bool) -> None:
    assert passes(FileChange("src/[slug]/Page1.tsx", "modified"), "all", text, ()) is kept


async def test_viewed_is_a_mark_of_one_state_of_the_file(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("m")

    def viewed() -> bool:
        return next(row for row in review.screen.files.items if row.key == TOKENIZER).viewed

    await until(review.pilot, viewed)
    file = next(file for file in review.keeper.files if file.path == TOKENIZER)
    file.agent = (file.agent or b"") + b"# more\n"
    await review.keys("r")
    await until(review.pilot, lambda: not viewed())
    await review.keys("m")
    await until(review.pilot, viewed)
    await review.keys("m")
    await until(review.pilot, lambda: not viewed())


async def test_a_review_of_one_file_in_a_folder_shows_its_name_below_it() -> None:
    async for review in opened_review([FakeFile("a/b.py", b"x\n", b"y\n")]):
        assert shown(review) == [ALL, "a/", "a/b.py"]
        assert review.screen.path == "a/b.py"


async def test_in_a_filtered_list_the_row_under_the_cursor_is_decided(review: Review) -> None:
    await review.open(TOKENIZER)
    await review.keys("tab", "slash", *"quotes", "enter")
    assert review.screen.files.current_key == "src/quotes.py" or await_row(review)
    await review.keys("x")
    assert review.decisions("src/quotes.py") == ["rejected"]
    assert review.decisions() == ["open"] * 4


def await_row(review: Review) -> bool:
    """Put the list's cursor on the only file without telling the screen."""
    return review.screen.files.select("src/quotes.py")
