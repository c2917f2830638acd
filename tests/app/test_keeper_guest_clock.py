"""The guest's clock is set when there is a reason, and never while the machine stands still."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

import pytest

from app.keeper import guest_clock
from app.keeper.guest_clock import GuestClock, HostClocks
from vm.errors import LinkLost
from vm.machine.bulk import GuestError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.keeper.links import Links
    from vm.machine.machine import Machine

NEVER = 1e6


class Bench:
    """A machine with its monitor, its links and its bulk client in one."""

    def __init__(self) -> None:
        self.running = True
        self.still = False
        self.clocks = HostClocks(1000.0, 0.0)
        self.faults: list[Exception] = []
        self.told: asyncio.Queue[int] = asyncio.Queue()
        self.resumes: asyncio.Queue[tuple[str, dict[str, object]]] = asyncio.Queue()
        self.drops = 0
        self.bulk_lock = asyncio.Lock()
        self.qmp = self
        self.clock = GuestClock(cast("Links", self), cast("Machine", self), lambda: self.still)

    async def events(self, *names: str) -> AsyncIterator[tuple[str, dict[str, object]]]:
        assert "RESUME" in names
        while True:
            yield await self.resumes.get()

    async def bulk(self) -> Bench:
        return self

    async def drop_bulk(self) -> None:
        self.drops += 1

    async def set_clock(self, unix_ns: int) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.told.put_nowait(unix_ns)

    async def set_again(self) -> None:
        async with asyncio.timeout(30):
            await self.told.get()


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    made = Bench()
    monkeypatch.setattr(guest_clock, "LOOK_S", 0.005)
    monkeypatch.setattr(guest_clock, "AGAIN_S", NEVER)
    monkeypatch.setattr(HostClocks, "now", lambda: made.clocks)
    made.clock = GuestClock(cast("Links", made), cast("Machine", made), lambda: made.still)
    watching = asyncio.create_task(made.clock.watch())
    yield made
    made.running = False
    async with asyncio.timeout(30):
        await watching


async def test_it_is_set_at_once_and_then_left_alone(bench: Bench) -> None:
    async with asyncio.timeout(30):
        told = await bench.told.get()
    assert abs(told - time.time_ns()) < 30 * 10**9
    await asyncio.sleep(0.05)  # ten looks
    assert bench.told.empty()


@pytest.mark.parametrize(
    "later",
    [
        HostClocks(1000.0 + 3600, 3600.0),  # it slept for an hour
        HostClocks(1000.0, 0.5),
        HostClocks(990.0, 0.0),  # its wall clock was set back
    ],
)
async def test_a_jump_of_the_hosts_clocks(bench: Bench, later: HostClocks) -> None:
    await bench.set_again()
    bench.clocks = later
    await bench.set_again()
    await asyncio.sleep(0.05)  # ten looks
    assert bench.told.empty()


async def test_a_slow_drift_adds_up(bench: Bench) -> None:
    await bench.set_again()
    for step in range(1, 16):
        bench.clocks = HostClocks(1000.0 + step / 100, 0.0)
        await asyncio.sleep(0)
    await bench.set_again()


async def test_a_machine_that_goes_on(bench: Bench) -> None:
    await bench.set_again()
    bench.resumes.put_nowait(("RESUME", {}))
    await bench.set_again()


async def test_now_and_then(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_clock, "AGAIN_S", 0.01)
    bench.resumes.put_nowait(("RESUME", {}))
    for _ in range(4):
        await bench.set_again()


async def test_nothing_is_asked_of_a_machine_that_stands_still(bench: Bench) -> None:
    await bench.set_again()
    bench.still = True
    bench.clocks = HostClocks(5000.0, 4000.0)
    await asyncio.sleep(0.05)  # ten looks
    assert bench.told.empty()
    bench.still = False
    await bench.set_again()


async def test_a_lost_link_is_made_anew_and_a_refusal_keeps_it(bench: Bench) -> None:
    await bench.set_again()
    bench.faults = [LinkLost("gone"), GuestError(1, "no")]
    bench.resumes.put_nowait(("RESUME", {}))
    await bench.set_again()
    assert bench.drops == 1


def test_the_hosts_clocks_are_read() -> None:
    first = HostClocks.now()
    assert not first.jumped(HostClocks.now())
    assert abs(first.wall + time.monotonic() - time.time()) < 5
