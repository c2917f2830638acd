"""A machine that an earlier keeper started: taken over, or ended within a bound."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import pytest

from app.agents import shell
from app.errors import AppError
from app.keeper import keeper as keeping
from app.keeper import waking
from app.keeper.engine import Engine
from app.keeper.keeper import Keeper
from app.keeper.terminal_record import TerminalRecord
from app.paths import Paths
from app.processes import start_time
from app.records import Process, SessionRecord, StateRecord, read_state, write_record
from snapshot.capture import CaptureOptions, take_snapshot
from vm.errors import CutOff, LinkLost, NotStopped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from app.keeper.links import Links
    from vm.machine.machine import Machine

HERE = Process(os.getpid(), start_time(os.getpid()))


class FakeMachine:
    """Lives until it is stopped, or for ever."""

    def __init__(self, *, immortal: bool = False) -> None:
        self.running = True
        self.spec = self
        self.name = "0123456789"
        self._immortal = immortal

    async def stop(self, seconds: float, ask: Callable[[], Awaitable[object]]) -> None:
        if self._immortal:
            raise NotStopped("The machine does not end.")
        self.running = False

    def console_tail(self) -> str:
        return ""


class DeafLinks:
    async def ssh(self) -> object:
        raise LinkLost("Nobody answers.")

    async def close(self) -> None:
        return


class Bench:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths = paths = Paths(
            *(root / name for name in ("state", "data", "config", "cache", "run"))
        )
        self.folder = paths.session("0123456789")
        self.folder.mkdir(parents=True)
        (root / "project").mkdir()
        take_snapshot(root / "project", self.folder, CaptureOptions())
        record = SessionRecord(
            self.folder.name, "n", shell(), str(root / "project"), 0.0, "base", ""
        )
        write_record(self.folder / "session.json", record)
        state = StateRecord(state="starting", machine=HERE, prepared=True)
        write_record(self.folder / "state.json", state)
        self.machine = FakeMachine()
        self.adopt_error: LinkLost | None = None
        monkeypatch.setattr(waking, "adopt", self._adopt)
        monkeypatch.setattr(keeping, "ADOPT_S", 0.05)
        self.terminal = TerminalRecord(self.folder, 80, 24)
        self.keeper = Keeper(paths, self.folder, self.terminal)

    async def _adopt(self, *_: object) -> Engine:
        if self.adopt_error is not None:
            raise self.adopt_error
        return Engine(cast("Machine", self.machine), cast("Links", DeafLinks()), "tcg")

    async def close(self) -> None:
        await self.keeper.close()
        self.terminal.close()


@pytest.fixture
async def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    made = Bench(tmp_path, monkeypatch)
    yield made
    await made.close()


async def test_a_guest_that_never_answers_ends_the_start(bench: Bench) -> None:
    await bench.keeper.wake()
    assert bench.keeper.ledger.state.state == "starting"
    await bench.keeper.settled()
    state = read_state(bench.folder)
    assert (state.state, state.fault, state.machine) == ("failed", "boot-failed", None)
    assert state.message == "The guest did not answer within 0.05 s."
    assert "cloche resume 0123456789" in state.hint
    assert not bench.machine.running


async def test_a_machine_that_dies_ends_the_start(bench: Bench) -> None:
    await bench.keeper.wake()
    bench.machine.running = False
    await bench.keeper.settled()
    message = read_state(bench.folder).message
    assert message == "The machine ended before its guest answered."


async def test_a_start_that_is_taken_up_can_be_stopped(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "ADOPT_S", 60)
    await bench.keeper.wake()
    await bench.keeper.stop()
    assert read_state(bench.folder).state == "stopped"
    assert not bench.machine.running


@pytest.mark.parametrize(
    ("error", "said"), [(LinkLost("silence"), waking.DEAF), (CutOff("removed"), waking.CUT_OFF)]
)
async def test_what_a_machine_that_cannot_be_reached_is_told_of_with(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: LinkLost, said: str
) -> None:
    """The refusals of every command say the same as the session's own line."""
    bench.adopt_error = error
    monkeypatch.setattr(waking, "REVIVE_S", 0.05)
    write_record(bench.folder / "state.json", StateRecord(state="running", machine=HERE))
    keeper = Keeper(bench.paths, bench.folder, bench.terminal)
    try:
        await keeper.wake()
        state = read_state(bench.folder)
        assert (state.state, state.message, state.machine) == ("paused", said, HERE)
        for ask in (keeper.resume, lambda: keeper.freeze(True)):
            with pytest.raises(AppError) as caught:
                await ask()
            assert (caught.value.code, caught.value.message) == ("no-answer", said)
            assert caught.value.hint == state.hint
    finally:
        await keeper.close()


async def test_a_machine_that_cannot_be_ended_is_never_forgotten(bench: Bench) -> None:
    bench.machine = FakeMachine(immortal=True)
    await bench.keeper.wake()
    await bench.keeper.settled()
    state = read_state(bench.folder)
    assert (state.state, state.fault, state.machine) == ("failed", "not-stopped", HERE)
    with pytest.raises(AppError) as caught:
        bench.keeper.begin()
    assert caught.value.code == "busy"
