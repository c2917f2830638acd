"""A sandbox's keeper and its client: nothing outlives the client, whoever was killed."""

from __future__ import annotations

import asyncio
import subprocess
from typing import TYPE_CHECKING

import pytest

from app.agents import Agent
from app.client import fleet
from app.client.connection import new_host_key
from app.client.launch import take_lock
from app.client.sandboxes import discard
from app.errors import AppError
from app.files import write_atomic
from app.keeper.house import House
from app.paths import Paths, private_folder
from app.processes import start_time
from app.records import Process, SessionRecord, StateRecord, read_state, write_record
from vm.errors import NotStopped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ID = "0123456789"


def make(state: StateRecord | None = None) -> Path:
    """Make a sandbox's folder, as its client does; there is no image to boot."""
    paths = Paths.from_environment()
    for folder in (paths.state, paths.sessions, paths.runtime):
        private_folder(folder)
    folder = private_folder(paths.session(ID))
    private_folder(paths.sockets(ID))
    public, key = new_host_key()
    write_atomic(folder / "control_key", key)
    write_record(folder / "state.json", state or StateRecord())
    agent = Agent("sandbox", ("true",))
    record = SessionRecord(ID, "sandbox: true", agent, "", 1.0, "base", public, sandbox=True)
    write_record(folder / "session.json", record)
    return folder


@pytest.fixture
def short_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("r")
    folder.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))


pytestmark = pytest.mark.usefixtures("short_runtime")


async def run(folder: Path, *, start: bool, idle_s: float) -> None:
    async with asyncio.timeout(60):
        await House(Paths.from_environment(), folder).run(start=start, idle_s=idle_s)


async def test_a_keeper_without_a_client_goes_and_takes_all_along() -> None:
    folder = make()
    await run(folder, start=True, idle_s=0.0)
    paths = Paths.from_environment()
    assert list(paths.sessions.iterdir()) == []
    assert not paths.sockets(ID).exists()


@pytest.fixture
def machine() -> Iterator[Process]:
    """A process that stands for QEMU."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield Process.here(process.pid, start_time(process.pid))
        process.kill()


async def test_a_keeper_that_finds_a_sandbox_ends_its_machine(machine: Process) -> None:
    folder = make(StateRecord(state="running", machine=machine, prepared=True))
    await run(folder, start=False, idle_s=600.0)
    assert not folder.exists()
    assert not machine.alive


async def test_a_machine_that_does_not_end_keeps_its_folder(
    machine: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck(pid: int, started: int) -> None:
        raise NotStopped(f"The machine (process {pid}) does not end.")

    folder = make(StateRecord(state="running", machine=machine, prepared=True))
    monkeypatch.setattr("app.keeper.sandbox.end_process", stuck)
    monkeypatch.setattr("app.keeper.sandbox.SandboxKeeper.wake", _nothing)
    await run(folder, start=False, idle_s=0.0)
    state = read_state(folder)
    assert (state.state, state.machine) == ("failed", machine)


async def _nothing(_: object) -> None:
    return


async def test_a_client_can_have_a_sandbox_removed_that_nobody_keeps() -> None:
    folder = make(StateRecord(state="running", prepared=True))
    paths = Paths.from_environment()
    for number in range(2_000):  # so that the keeper takes a while over it
        (folder / f"blob-{number}").touch()
    async with asyncio.timeout(60):
        await discard(paths, ID)
    assert not folder.exists()
    assert list(paths.sessions.iterdir()) == []
    await discard(paths, ID)  # nothing is left to do


def test_commands_for_agents_refuse_it_and_lists_for_them_leave_it_out() -> None:
    folder = make()
    paths = Paths.from_environment()
    lock = take_lock(folder)
    assert lock is not None
    with pytest.raises(AppError, match="is a sandbox") as caught:
        fleet.find_session(paths, ID)
    assert caught.value.hint == f"Look into it: cloche exec {ID} -- CMD"
    (listed,) = fleet.list_sessions(paths)
    assert (listed.sandbox, listed.agent) == (True, "sandbox")
    assert fleet.find_session(paths, ID[:4], sandbox=True) == listed


async def test_the_workstation_does_not_see_it() -> None:
    make()
    watched = fleet.watch_sessions(Paths.from_environment())
    assert await anext(watched) == []
