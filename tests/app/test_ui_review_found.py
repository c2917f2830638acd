"""Finding a text in all files of a review: the list of places, and the walk over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.protocol_review import FoundPlace, FoundPlaces
from app.ui.found_dialog import FoundDialog, place_rows
from tests.doubles.keeper import FakeFile
from tests.doubles.pilots import settle, until
from tests.doubles.reviews import Review, opened_review
from widgets.place_list import PlaceList

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

FAR = b"".join(b"line %d\n" % number for number in range(60))
FILES = [
    FakeFile("a.py", FAR, FAR.replace(b"line 3\n", b"Needle 3\n") + b"needle end\n"),
    FakeFile("b.py", b"old needle\n", b"new\n"),
    FakeFile("c.py", b"x\n", b"y\n"),
    FakeFile("[d]/\x1bd.py", None, b"\x1b]0;needle\x07\n"),
]


@pytest.fixture
async def review() -> AsyncGenerator[Review]:
    """Return an open review whose files hold the text in several places."""
    async for opened in opened_review(FILES):
        yield opened


async def search(review: Review, text: str) -> None:
    await review.keys("F", *text, "enter")
    await settle(review.pilot)


def place(review: Review) -> tuple[str, tuple[str, int] | None]:
    return review.screen.path, review.screen.pane.place_of_cursor()


async def test_places_of_all_files_are_listed_and_gone_to(review: Review) -> None:
    await search(review, "needle")
    dialog = review.app.screen
    assert isinstance(dialog, FoundDialog)
    rows = dialog.query_one(PlaceList).items
    assert [row.text for row in rows if not row.key] == ["a.py", "b.py", "[d]/␛d.py"]
    assert [row.number.strip() for row in rows if row.key] == ["4", "61", "1-", "1"]
    assert all(row.text.isprintable() for row in rows)
    await review.keys("j", "enter")
    await until(review.pilot, lambda: place(review) == ("a.py", ("new", 60)))
    assert review.screen.pane.has_focus
    assert review.screen.pane.find == "needle"


async def test_n_walks_over_the_files_and_round_the_end(review: Review) -> None:
    await search(review, "needle")
    await review.keys("enter")
    expected = [
        ("a.py", ("new", 3)),
        ("a.py", ("new", 60)),
        ("b.py", ("new", 0)),  # its line stands beside the one that took its place
        ("[d]/\x1bd.py", ("new", 0)),
        ("a.py", ("new", 3)),
    ]
    for one in expected:
        await until(review.pilot, lambda wanted=one: place(review) == wanted)  # type: ignore[misc]  # mypy infers no type for `wanted`
        await review.keys("n")
    await review.keys("N", "N")
    await until(review.pilot, lambda: place(review) == expected[3])
    assert "Place 4 of 4" in review.notice
    await review.keys("escape")
    assert review.screen.pane.find == ""
    await review.keys("n")
    assert "Place" not in review.notice or review.screen.pane.find == ""


async def test_one_place_is_gone_to_at_once_also_where_it_is_folded(review: Review) -> None:
    await search(review, "line 40")
    await until(review.pilot, lambda: place(review) == ("a.py", ("new", 40)))


async def test_nothing_found_and_a_refusal_are_told(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    await search(review, "haystack")
    assert "No changed file holds" in review.notice

    async def refuse(_: str) -> FoundPlaces:
        raise AppError("usage", "This cannot be searched for.")

    monkeypatch.setattr(review.keeper, "find", refuse)
    await search(review, "x")
    assert "cannot be searched" in review.notice


async def test_typing_for_all_files_marks_nothing_in_this_one(review: Review) -> None:
    await review.keys("slash", *"line", "enter")
    await review.keys("F", *"zz", "escape")
    assert review.screen.pane.find == "line"


def test_each_file_stands_once_above_its_places() -> None:
    places = [FoundPlace("a", "new", 5, "x"), FoundPlace("a", "old", 100, "x\x1b")]
    assert [(row.key, row.number) for row in place_rows(places)] == [
        ("", ""),
        ("0", "  5 "),
        ("1", "100-"),
    ]
