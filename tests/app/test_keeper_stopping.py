"""A stop goes on to its end, whoever stays to hear of it."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, cast

import pytest

from app.agents import shell
from app.keeper.keeper import Keeper
from app.keeper.shift import Shift
from app.keeper.terminal_record import TerminalRecord
from app.paths import Paths
from app.processes import start_time
from app.records import Process, SessionRecord, StateRecord, read_state, write_record
from vm.errors import NotStopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path


HERE = Process(os.getpid(), start_time(os.getpid()))


class SlowShift:
    """Work on a machine whose last pass takes until `go_on`."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.stops = 0
        self.immortal = False
        self.lacking = False
        self.running = True
        self.fault: Exception | None = None
        self.silent = False
        self.keys = 0
        self.engine = self.room = self.machine = self.pulse = self

    async def take(self, *, freeze: bool) -> bool:
        assert freeze
        self.begun.set()
        await self.go_on.wait()
        if self.fault is not None:
            raise self.fault
        return True

    take_last = Shift.take_last

    def typed(self) -> None:
        self.keys += 1

    def wake(self) -> None:
        return

    async def unless_silent(self, work: Awaitable[bool]) -> bool:
        return await work

    async def end(self) -> None:
        return

    async def let_go(self) -> None:
        return

    async def stop(self, *, asked: bool) -> None:
        assert asked
        self.stops += 1
        self.ended.set()
        if self.immortal:
            raise NotStopped("The machine does not end.")


class Bench:
    def __init__(self, root: Path) -> None:
        paths = Paths(*(root / name for name in ("state", "data", "config", "cache", "run")))
        self.folder = paths.session("0123456789")
        self.folder.mkdir(parents=True)
        record = SessionRecord(self.folder.name, "n", shell(), str(root), 0.0, "base", "")
        write_record(self.folder / "session.json", record)
        write_record(self.folder / "state.json", StateRecord(state="running", machine=HERE))
        self.terminal = TerminalRecord(self.folder, 80, 24)
        self.keeper = Keeper(paths, self.folder, self.terminal)
        self.shift = SlowShift()
        self.keeper.shift = cast("Shift", self.shift)

    def go_on_with(self, engine: object) -> None:
        """Take up the work on a machine that lives on, as the keeper would: with this shift."""
        assert engine is self.shift.engine

    @property
    def state(self) -> str:
        return read_state(self.folder).state


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    await made.keeper.close()
    made.terminal.close()


async def test_a_client_that_hangs_up_does_not_break_off_a_stop(bench: Bench) -> None:
    client = asyncio.create_task(bench.keeper.stop())
    await asyncio.wait_for(bench.shift.begun.wait(), 30)
    client.cancel()
    await asyncio.gather(client, return_exceptions=True)
    assert bench.state == "stopping"
    bench.shift.go_on.set()
    await asyncio.wait_for(bench.shift.ended.wait(), 30)
    await bench.keeper.stop()  # joins the stop that is under way, or finds nothing to do
    assert (bench.state, bench.shift.stops) == ("stopped", 1)


async def test_whoever_waits_hears_that_the_machine_lives_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.shift.immortal = True
    bench.shift.go_on.set()
    monkeypatch.setattr(bench.keeper, "work_on", bench.go_on_with)
    with pytest.raises(NotStopped):
        await bench.keeper.stop()


@pytest.mark.parametrize(("alive", "state"), [(True, "running"), (False, "lost")])
async def test_a_fault_of_our_own_leaves_no_session_in_stopping(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, alive: bool, state: str
) -> None:
    bench.shift.go_on.set()
    bench.shift.running = alive
    bench.shift.fault = AttributeError("a fault of our own")
    monkeypatch.setattr(bench.keeper, "work_on", bench.go_on_with)
    with pytest.raises(AttributeError):
        await bench.keeper.stop()
    assert bench.state == state
    assert bench.keeper.busy is alive
    bench.shift.fault = None
    await bench.keeper.stop()
    assert bench.state == ("stopped" if alive else "lost")


@pytest.mark.parametrize(("accelerator", "told"), [("tcg", 2), ("kvm", 0)])
async def test_keys_come_before_the_network_where_the_processor_is_emulated(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, accelerator: str, told: int
) -> None:
    heard: list[None] = []
    monkeypatch.setattr(bench.keeper.network, "typed", lambda: heard.append(None))
    bench.keeper.ledger.change(accelerator=accelerator)
    bench.keeper.typed()
    bench.keeper.make_room()
    assert len(heard) == told
    assert bench.shift.keys == 1
