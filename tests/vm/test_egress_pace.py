"""The pace that the network keeps while somebody types."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.vm.test_egress_gateway import Bench
from vm.egress import gateway
from vm.egress.pace import Brake, Pace

if TYPE_CHECKING:
    import pytest

RATE = 1000.0


@given(st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 3)), max_size=30))
def test_no_more_goes_than_the_pace_and_one_piece(wishes: list[tuple[int, float]]) -> None:
    pace, now, sent, last = Pace(RATE), 100.0, 0, 0
    for size, pause in wishes:
        now += pause
        if not pace.wait(now):
            pace.spend(size, now)
            sent, last = sent + size, size
            assert sent - last <= (now - 100.0) * RATE + 1e-6


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=30))
def test_whoever_waits_as_told_goes_at_the_pace(sizes: list[int]) -> None:
    pace, now = Pace(RATE), 100.0
    for size in sizes:
        pace.spend(size, now)
        now += pace.wait(now)
        assert pace.wait(now) < 1e-9
    assert abs((now - 100.0) * RATE - sum(sizes)) < 1e-3


async def test_a_brake_lets_go_by_time_by_word_and_never_after_its_end() -> None:
    freed = asyncio.Event()
    brake = Brake(asyncio.get_running_loop(), freed.set)
    brake.spend(1 << 40)
    assert not brake.holds()
    brake.keep(True)
    brake.spend(80_000)
    assert brake.holds()
    await asyncio.wait_for(freed.wait(), 30)
    freed.clear()
    brake.spend(1 << 40)
    assert brake.holds()
    brake.keep(False)
    assert freed.is_set()
    assert not brake.holds()
    freed.clear()
    brake.keep(True)
    brake.spend(1 << 40)
    assert brake.holds()
    brake.close()
    assert not brake.holds()
    assert not freed.is_set()


async def test_typing_makes_room_until_nothing_was_typed_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    bench.gateway.typed()
    bench.gateway.typed()
    assert bench.outlet.paces == [True]
    monkeypatch.setattr(gateway, "TYPING_S", 0.0)
    bench.gateway.typed()
    await asyncio.sleep(0)  # a timer that is due comes with the loop's next turn but one
    await asyncio.sleep(0)
    assert bench.outlet.paces == [True, False]
    bench.gateway.typed()
    bench.close()
    assert bench.outlet.paces == [True, False, True]
