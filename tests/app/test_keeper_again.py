"""An agent that has ended is started again in the machine that it ran in."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from app.agents import shell
from app.errors import AppError
from app.keeper.agent_terminal import AgentTerminal
from app.keeper.keeper import Keeper
from app.keeper.shift import Shift
from app.keeper.terminal_record import TerminalRecord
from app.paths import Paths
from app.processes import start_time
from app.records import Process, SessionRecord, StateRecord, write_record
from tests.app.keeper_bench import FakeGuest
from vm.machine.guest_exec import GuestFailed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from app.keeper.engine import Engine
    from app.keeper.network import GuestNetwork
    from app.keeper.pane import PaneServer

HERE = Process(os.getpid(), start_time(os.getpid()))


class Ends:
    """What the terminal's clients are told."""

    def __init__(self) -> None:
        self.told: list[int | None] = []

    async def ended(self, status: int | None) -> None:
        self.told.append(status)


class Bench:
    """A keeper whose machine runs and whose agent has ended with 3."""

    def __init__(self, root: Path) -> None:
        paths = Paths(*(root / name for name in ("state", "data", "config", "cache", "run")))
        folder = paths.session("0123456789")
        folder.mkdir(parents=True)
        record = SessionRecord(folder.name, "n", shell(), str(root), 0.0, "base", "")
        state = StateRecord(
            state="running", agent_state="failed", agent_started=5.0, exit_code=3, machine=HERE
        )
        write_record(folder / "session.json", record)
        write_record(folder / "state.json", state)
        self.terminal = TerminalRecord(folder, 80, 24)
        self.terminal.append(b"\x1b[?1049hof the first run")
        self.keeper = Keeper(paths, folder, self.terminal)
        self.pane = Ends()
        spec = SimpleNamespace(network_socket=None)
        machine = SimpleNamespace(stands_still=False, spec=spec)
        engine = cast("Engine", SimpleNamespace(links=FakeGuest().links, machine=machine))
        keeper = self.keeper
        self.shift = Shift(
            keeper.ledger, keeper.tree, engine, self.terminal, cast("PaneServer", self.pane)
        )
        keeper.shift = self.shift
        self.first = self.shift.agent


class Network:
    """A network that is taken up when the test says so; its broker knows addresses only then."""

    def __init__(self) -> None:
        self.broker = SimpleNamespace(env={})
        self.go_on = asyncio.Event()

    async def take_up(self, _: object) -> None:
        await self.go_on.wait()
        self.broker.env = {"LAB_URL": "http://lab.cloche.internal"}

    async def stop(self) -> None:
        return


class Agent:
    """Stands for the guest: how often an agent was started there, and how the next start goes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.starts = 0
        self.fault: Exception | None = None
        self.go_on, self.end = asyncio.Event(), asyncio.Event()
        self.begun = asyncio.Event()
        monkeypatch.setattr(AgentTerminal, "start", self.start)
        monkeypatch.setattr(AgentTerminal, "run", self.run)
        monkeypatch.setattr("app.keeper.guest_clock.GuestClock.try_to_set", self.no_clock)

    async def no_clock(self) -> None:
        return

    async def start(self) -> None:
        self.starts += 1
        self.begun.set()
        await self.go_on.wait()
        if self.fault is not None:
            raise self.fault

    async def run(self) -> int:
        await self.end.wait()
        return 0


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.keeper.shift = None  # its machine is nobody's
    await made.shift.end()
    await made.keeper.close()
    made.terminal.close()


@pytest.fixture
async def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    return Agent(monkeypatch)


async def test_two_who_ask_at_once_start_one_agent(bench: Bench, agent: Agent) -> None:
    agent.go_on.set()
    async with asyncio.timeout(30):
        await asyncio.gather(bench.keeper.resume(), bench.keeper.resume())
    state = bench.keeper.ledger.state
    assert (state.state, state.agent_state, state.exit_code) == ("running", "working", None)
    assert (agent.starts, state.agent_ended) == (1, 0.0)
    assert state.agent_started > 5
    assert bench.keeper.agent is not bench.first
    assert bench.pane.told == [None]
    assert b"\x1b[?1049l" in bench.terminal.read(0, 1 << 10)


async def test_its_end_is_told_as_that_of_the_first(bench: Bench, agent: Agent) -> None:
    agent.go_on.set()
    await bench.keeper.resume()
    agent.end.set()
    async with asyncio.timeout(30):
        async for event in bench.keeper.ledger.events():
            if event.session.exit_code == 0:
                break
    assert bench.keeper.ledger.state.agent_state == "done"


async def test_a_start_that_fails_leaves_the_session_as_it_was(bench: Bench, agent: Agent) -> None:
    before = bench.keeper.ledger.state
    agent.go_on.set()
    agent.fault = GuestFailed("another one runs")
    with pytest.raises(GuestFailed):
        await bench.keeper.resume()
    after = bench.keeper.ledger.state
    assert (after.exit_code, after.agent_state) == (before.exit_code, before.agent_state)
    assert bench.pane.told == [None, 3]
    agent.fault = None
    await bench.keeper.resume()
    assert agent.starts == 2


async def test_an_agent_that_runs_is_not_started_again(bench: Bench, agent: Agent) -> None:
    bench.keeper.ledger.change(exit_code=None, agent_state="working")
    with pytest.raises(AppError) as refused:
        await bench.keeper.resume()
    assert refused.value.code == "busy"
    assert agent.starts == 0


async def test_whoever_hangs_up_does_not_break_it_off(bench: Bench, agent: Agent) -> None:
    client = asyncio.create_task(bench.keeper.resume())
    await asyncio.wait_for(agent.begun.wait(), 30)
    client.cancel()
    await asyncio.gather(client, return_exceptions=True)
    agent.go_on.set()
    await asyncio.wait_for(bench.keeper.settled(), 30)
    assert bench.keeper.ledger.state.agent_state == "working"


async def test_in_an_adopted_machine_programs_wait_for_the_addresses_of_their_services(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, keeper = Network(), bench.keeper
    monkeypatch.setattr(keeper, "network", network)
    assert await keeper.world_env() == {}, "nothing is being taken up"
    pane = cast("PaneServer", bench.pane)
    shift = Shift(
        keeper.ledger, keeper.tree, bench.shift.engine, bench.terminal, pane,
        network=cast("GuestNetwork", network),
    )  # fmt: skip
    keeper.shift = shift
    shift.go(adopted=True)
    asking = asyncio.create_task(keeper.world_env())
    await asyncio.sleep(0)
    assert not asking.done()
    network.go_on.set()
    async with asyncio.timeout(30):
        assert await asking == {"LAB_URL": "http://lab.cloche.internal"}
    await shift.end()
