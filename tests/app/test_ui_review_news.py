"""What changes while a review is open: the workspace under it, and the agent's work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.services.drift import MAX_FOLDERS, folders_of
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import screen_text, settle, until
from tests.doubles.reviews import TOKENIZER, Review, opened_review

if TYPE_CHECKING:
    from pathlib import Path


def waits(review: Review, is_so: bool) -> bool:
    """Tell whether a newer generation waits to be asked for, as wanted."""
    return (review.screen.pending is not None) is is_so


async def test_a_file_that_the_user_changes_gets_its_mark_by_itself(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    real = tmp_path / "src" / "a.py"
    real.write_bytes(b"x\n")
    file = FakeFile("src/a.py", b"x\n", b"y\n")
    async for review in opened_review([file], workspace=tmp_path):
        assert review.screen.watched == {tmp_path / "src"}
        file.drift = True  # what the keeper finds once it is asked again
        reads = review.keeper.reads
        while not review.screen.files.items[-1].drift:
            real.write_bytes(real.read_bytes() + b"mine\n")
            await settle(review.pilot)
        assert review.keeper.reads > reads
        assert "yours too" in review.line("head")


async def test_only_folders_of_changed_paths_are_watched(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "node_modules").mkdir()
    found = folders_of(tmp_path, ["a/b/c", "a/new/deep/d", "top"])
    assert found == {tmp_path / "a" / "b", tmp_path / "a", tmp_path}
    for number in range(MAX_FOLDERS + 10):
        (tmp_path / f"d{number}").mkdir()
    many = folders_of(tmp_path, [f"d{number}/f" for number in range(MAX_FOLDERS + 10)])
    assert len(many) == MAX_FOLDERS
    assert folders_of(tmp_path / "gone", ["a"]) == frozenset()


async def test_news_are_counted_and_a_refresh_says_what_it_cost() -> None:
    async for review in opened_review():
        await review.open(TOKENIZER)
        await review.keys("space", "space")
        keeper = review.keeper
        file = next(file for file in keeper.files if file.path == TOKENIZER)
        assert file.agent is not None
        file.agent = file.agent.replace(b"QUOTES = ", b"QUOTATION = ")
        keeper.files.append(FakeFile("late.txt", None, b"late\n"))
        keeper.generation = 2
        keeper.publish("changes")
        await until(review.pilot, partial(waits, review, True))
        assert "2 files changed since: r shows it" in review.line("head")
        await review.pilot.click("#head", offset=(65, 0))
        await until(review.pilot, partial(waits, review, False))
        await review.keys("r")
        assert keeper.refreshed >= 1


async def test_news_are_in_sight_where_there_is_little_room() -> None:
    async for review in opened_review(size=(80, 24)):
        review.keeper.files.append(FakeFile("late.txt", None, b"late\n"))
        review.keeper.generation = 2
        review.keeper.publish("changes")
        await until(review.pilot, partial(waits, review, True))
        assert "! 1 file since: r " in screen_text(review.pilot)


async def test_a_refresh_leaves_the_cursor_on_its_line() -> None:
    async for review in opened_review():
        await review.open(TOKENIZER)
        await review.keys("space", "right_square_bracket")
        pane, keeper = review.screen.pane, review.keeper
        before = pane.place_of_cursor()
        file = next(file for file in keeper.files if file.path == TOKENIZER)
        assert file.agent is not None
        file.agent += b"# the end\n"
        keeper.generation = 2
        await review.keys("r")
        assert "1 file changed. 1 decision kept." in review.notice
        assert review.decisions()[0] == "accepted"
        assert pane.place_of_cursor() == before
