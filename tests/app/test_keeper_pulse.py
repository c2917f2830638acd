"""A machine that stands still: said at once, never waited for, and let go on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from app.agents import shell
from app.errors import AppError
from app.keeper import pulse as pulses
from app.keeper.ledger import Ledger
from app.keeper.pulse import Pulse
from app.records import SessionRecord, read_state, write_record
from vm.errors import LinkLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from app.keeper.room import Room
    from app.protocol import SessionInfo
    from vm.machine.machine import Machine


class FakeMachine:
    """A QEMU that can be stopped, or hang."""

    def __init__(self) -> None:
        self.qmp = self
        self.pid = 4711
        self.running = self.connected = True
        self.stands_still = self.hangs = False
        self.woken = 0

    async def execute(self, command: str, timeout_s: float) -> object:
        assert command == "query-status"
        if self.hangs:
            raise LinkLost(f"QEMU did not answer {command} within {timeout_s:g} s.")
        return {}

    def wake(self) -> None:
        self.woken += 1
        self.stands_still = False


class Bench:
    def __init__(self, folder: Path) -> None:
        record = SessionRecord("0123456789", "n", shell(), "/w", 0.0, "base", "")
        write_record(folder / "session.json", record)
        self.folder = folder
        self.ledger = Ledger(folder)
        self.ledger.change(state="running", agent_state="working")
        self.machine = FakeMachine()
        room = SimpleNamespace(lacking=False)
        self.pulse = Pulse(self.ledger, cast("Machine", self.machine), cast("Room", room))
        self.room = room
        self.watching = asyncio.create_task(self.pulse.watch())

    async def told(self, state: str) -> SessionInfo:
        async with asyncio.timeout(30):
            async for event in self.ledger.events():
                if event.session.state == state:
                    return event.session
        raise AssertionError


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(pulses, "LOOK_S", 0.005)
    made = Bench(tmp_path)
    yield made
    made.machine.running = False
    await made.watching
    made.ledger.journal.close()


async def test_a_stopped_process_is_said_with_both_ways_out(bench: Bench) -> None:
    bench.pulse.check()
    bench.machine.stands_still = True
    with pytest.raises(AppError) as caught:  # at once, before anybody has looked
        bench.pulse.check()
    assert caught.value.code == "no-answer"
    info = await bench.told("paused")
    assert "4711 was stopped from outside" in info.message
    assert "cloche resume 0123456789" in info.hint
    assert "cloche stop 0123456789" in info.hint
    bench.pulse.wake()
    assert (await bench.told("running")).message == ""
    bench.pulse.check()
    lines = (bench.folder / "journal.jsonl").read_text().splitlines()
    assert [line.split('"event":"')[1].split('"')[0] for line in lines][-2:] == [
        "paused",
        "running",
    ]


async def test_a_monitor_that_hangs_is_a_machine_that_does_not_answer(bench: Bench) -> None:
    bench.machine.hangs = True
    info = await bench.told("paused")
    assert "hangs" in info.message
    with pytest.raises(AppError):
        bench.pulse.check()
    bench.machine.hangs = False
    await bench.told("running")


async def test_a_monitor_that_was_closed_says_nothing_about_the_machine(bench: Bench) -> None:
    bench.machine.hangs, bench.machine.connected = True, False
    await asyncio.sleep(0)
    bench.pulse.check()
    assert read_state(bench.folder).state == "running"


async def test_work_is_broken_off_when_the_machine_falls_silent(bench: Bench) -> None:
    never = asyncio.Event()
    working = asyncio.create_task(bench.pulse.unless_silent(_true(never)))
    await asyncio.sleep(0)
    bench.machine.stands_still = True
    with pytest.raises(LinkLost, match="stopped from outside"):
        await asyncio.wait_for(working, 30)
    bench.machine.stands_still = False
    await bench.told("running")
    never.set()
    assert await bench.pulse.unless_silent(_true(never))


async def test_a_machine_without_room_stays_paused_when_its_process_goes_on(bench: Bench) -> None:
    bench.machine.stands_still = True
    await bench.told("paused")
    bench.room.lacking = True
    bench.pulse.wake()
    async with asyncio.timeout(30):
        while bench.pulse.silent:  # noqa: ASYNC110 - nothing tells when it speaks again
            await asyncio.sleep(0.005)
    assert bench.ledger.state.state == "paused"


async def _true(event: asyncio.Event) -> bool:
    await event.wait()
    return True
