"""Finding a text in all files, by the keeper: with its contents, and within its bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.keeper import finding
from app.keeper.finding import find
from app.protocol_review import MAX_FIND
from tests.app.keeper_bench import NUMBERS, Bench, bench_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_of(
        tmp_path, {"a.txt": NUMBERS, "b.txt": "Needle\n", "same.txt": "needle\n"}
    ) as made:
        made.guest.put(b"a.txt", NUMBERS.replace("\n5\n", "\nfive NEEDLES\n").encode())
        made.guest.put(b"b.txt", b"gone\n")
        made.guest.put(b"bin", b"\0needle\n")
        made.guest.link(b"link", b"needle")
        yield made


async def test_both_sides_of_changed_files_are_searched(bench: Bench) -> None:
    await bench.take()
    found = find(bench.desk, "needle")
    assert [(place.path, place.side, place.line, place.text) for place in found.places] == [
        ("a.txt", "new", 5, "five NEEDLES"),
        ("b.txt", "old", 1, "Needle"),
    ]
    assert found.cut == ""


async def test_bounds_end_a_search_with_a_sentence(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.guest.put(b"many.txt", b"x needle\n" * 50)
    await bench.take()
    monkeypatch.setattr(finding, "MAX_TOLD", 10)
    found = find(bench.desk, "needle")
    assert (len(found.places), found.cut) == (10, "These are the first 10 places.")
    monkeypatch.setattr(finding, "FIND_S", -1.0)
    assert find(bench.desk, "needle").cut.startswith("The search ended")


@pytest.mark.parametrize("text", ["", "  ", "a\nb", "x" * (MAX_FIND + 1)])
async def test_what_is_no_text_to_find_is_refused(bench: Bench, text: str) -> None:
    await bench.take()
    with pytest.raises(AppError, match="A text to find"):
        find(bench.desk, text)
