"""Contents that nothing needs any more go, so that rewriting files fills no quota."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.keeper import pruning
from app.protocol import Decide, MergeRequest
from tests.app.keeper_bench import Bench, bench_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = 1000
QUOTA = 10 * SIZE


def content(number: int) -> bytes:
    return f"{number}\n".encode().rjust(SIZE, b"x")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_of(tmp_path, {"base.txt": "base\n"}, QUOTA) as made:
        yield made


def blobs(bench: Bench) -> set[str]:
    return {path.name for path in (bench.folder / "blobs").glob("??/*")}


async def test_a_file_that_is_rewritten_again_and_again_never_meets_the_quota(
    bench: Bench,
) -> None:
    for number in range(50):
        bench.guest.put(b"big", content(number))
        assert await bench.take()
        (file,) = bench.desk.changes().files
        assert file.note == ""
        assert (bench.folder / "blobs" / file.agent[:2] / file.agent).is_file()
    assert len(blobs(bench)) <= QUOTA // SIZE


async def test_what_the_generation_shows_and_merges_stays(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "STEP_BYTES", 1)
    bench.guest.put(b"base.txt", b"other\n")
    bench.guest.link(b"link", b"base.txt")
    bench.guest.put(b"big", content(0))
    await bench.take()
    bench.desk.decide([Decide("base.txt", "accepted")])
    merge = bench.desk.merge(MergeRequest()).merge
    for number in range(1, 5):
        bench.guest.put(b"big", content(number))
        await bench.take()
    shown = {name for file in bench.desk.changes().files for name in (file.base, file.agent)}
    assert shown - {""} <= blobs(bench)
    assert bench.desk.undo(merge).restored == ("base.txt",)
    assert (bench.workspace / "base.txt").read_text() == "base\n"


async def test_a_client_can_still_read_the_generation_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "STEP_BYTES", 1)
    names: list[str] = []
    for number in range(3):
        bench.guest.put(b"big", content(number))
        await bench.take()
        names.append(bench.desk.changes().files[0].agent)
    assert blobs(bench) == set(names[1:])


async def test_what_finds_no_room_is_said_and_fetched_when_there_is_some(bench: Bench) -> None:
    for number in range(9):
        bench.guest.put(b"file-%d" % number, content(number))
    await bench.take()
    for number in range(9):
        bench.guest.put(b"file-%d" % number, content(100 + number))
    assert await bench.take()
    assert sum(bool(file.note) for file in bench.desk.changes().files) == 8
    assert await bench.take()
    assert not any(file.note for file in bench.desk.changes().files)


async def test_a_store_of_an_earlier_keeper_is_looked_through(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        bench.guest.put(b"big", content(number))
        await bench.take()
    assert len(blobs(bench)) == 3
    monkeypatch.setattr(pruning, "STEP_BYTES", 1)
    bench.desk.close()
    bench.open()
    assert blobs(bench) == {bench.desk.changes().files[0].agent}
