"""What a guest may try against the mirror, without a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from snapshot.errors import ListingRefused
from tests.app.keeper_bench import Bench, bench_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with bench_of(tmp_path, {"d/kept": "kept\n"}) as made:
        yield made


async def test_a_list_that_was_cut_short_is_no_change_set(bench: Bench) -> None:
    bench.guest.put(b"seen", b"1\n")
    await bench.take()
    before = bench.desk.changes()
    bench.guest.folder(b"d", opaque=True)  # what is in it now comes later in the list
    bench.guest.cut_short = True
    with pytest.raises(ListingRefused):
        await bench.take()
    assert bench.desk.changes() == before
    bench.guest.put(b"d/kept", b"kept\n")
    bench.guest.cut_short = False
    assert await bench.take()
    assert "d/kept" not in {file.path for file in bench.desk.changes().files}


async def test_no_more_entries_are_asked_for_than_a_small_host_can_hold(bench: Bench) -> None:
    await bench.take()
    assert 100_000 <= bench.guest.most <= 300_000
