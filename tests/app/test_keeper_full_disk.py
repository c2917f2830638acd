"""The host's disk is full: one sentence with the fix, nothing lost, nothing half written."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple, cast

import msgspec
import pytest

from app.agents import shell
from app.errors import AppError
from app.keeper import room as rooms
from app.keeper import shift as shifts
from app.keeper.journal import Line
from app.keeper.ledger import Ledger
from app.keeper.room import Room
from app.keeper.service import KeeperService
from app.keeper.shift import Shift
from app.keeper.terminal_record import TerminalRecord
from app.keeper.tree import Tree
from app.records import SessionRecord, read_state, write_record
from snapshot.capture import CaptureOptions, take_snapshot
from tests.app.keeper_bench import FakeGuest
from tests.doubles.small_disk import SmallDisk, small_disk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from app.keeper.engine import Engine
    from app.keeper.keeper import Keeper
    from app.protocol import SessionInfo
    from vm.machine.machine import Machine
    from vm.machine.qmp import Event


class FakeMachine:
    """QEMU's monitor: events are put in, the run state is what the test says."""

    def __init__(self) -> None:
        self.qmp = self
        self.status = "running"
        self.running = self.connected = True
        self.stands_still = False
        self.failing = False
        self.disk = "nospace"
        self.asked = asyncio.Event()
        self.tried: asyncio.Queue[None] = asyncio.Queue()
        self.news: asyncio.Queue[Event] = asyncio.Queue()

    async def events(self, *names: str) -> AsyncIterator[Event]:
        assert names == ("STOP", "BLOCK_IO_ERROR")
        while True:
            yield await self.news.get()

    async def execute(self, command: str, timeout_s: float = 10.0) -> object:
        del timeout_s
        if command == "query-block":
            return [{"device": "", "io-status": "ok"}, {"device": "", "io-status": self.disk}]
        assert command == "query-status"
        self.asked.set()
        return {"status": self.status, "running": self.status == "running"}

    async def resume(self) -> None:
        self.tried.put_nowait(None)
        if not self.failing:
            self.status = "running"

    def stop_for_want_of_room(self, reason: str = "No space left on device") -> None:
        data: dict[str, object] = {"action": "stop", "reason": reason}
        self.status = "io-error"
        self.news.put_nowait(("BLOCK_IO_ERROR", data))
        self.news.put_nowait(("BLOCK_IO_ERROR", data))
        self.news.put_nowait(("STOP", {}))


class House:
    """A session on a small disk, its workspace beside it, its guest a dictionary."""

    def __init__(self, root: Path, workspace: Path) -> None:
        self.folder = root / "session"
        self.folder.mkdir()
        take_snapshot(workspace, self.folder, CaptureOptions())
        record = SessionRecord("0123456789", "n", shell(), str(workspace), 0.0, "base", "")
        self.record = record
        write_record(self.folder / "session.json", record)
        self.guest = FakeGuest()
        self.machine = FakeMachine()
        self.ledger = Ledger(self.folder)
        self.ledger.change(state="running", agent_state="working", agent_started=1.0, exit_code=0)
        self.tree = Tree(record, self.folder)
        self.terminal = TerminalRecord(self.folder, 80, 24)
        engine = cast("Engine", SimpleNamespace(links=self.guest.links, machine=self.machine))
        self.shift = Shift(self.ledger, self.tree, engine, self.terminal, None)
        self.service = KeeperService(cast("Keeper", self), lambda: None)

    async def call(self, method: str, **params: object) -> object:
        return await self.service.call(method, msgspec.Raw(msgspec.json.encode(params)))

    async def told(self, **wanted: object) -> SessionInfo:
        """Wait until the session tells this of itself."""
        async with asyncio.timeout(20):
            async for event in self.ledger.events():
                if all(getattr(event.session, name) == wanted[name] for name in wanted):
                    return event.session
        raise AssertionError

    async def close(self) -> None:
        await self.shift.end()
        await self.tree.close()
        self.terminal.close()
        self.ledger.journal.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.fixture
async def house(
    disk: SmallDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    monkeypatch.setattr(rooms, "ENOUGH", 1 << 20)
    monkeypatch.setattr(rooms, "LOOK_S", 0.01)
    monkeypatch.setattr(rooms, "SETTLE_S", 0.0)
    monkeypatch.setattr(shifts, "IDLE_PASS_S", 0.05)
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "a.txt").write_text("a\n")
    made = House(disk.root, tmp_path / "project")
    await made.tree.open()
    yield made
    await made.close()


async def test_the_mirror_says_it_and_goes_on_when_there_is_room(
    house: House, disk: SmallDisk
) -> None:
    house.guest.put(b"a.txt", b"first\n")
    house.shift.go()
    await house.told(generation=1)
    disk.fill()
    house.guest.put(b"big", bytes(1 << 20))
    sentence = f"Changes are not mirrored: The disk of {house.folder} is full."
    told = await house.told(message=sentence)
    assert told.hint == f"Free some space: df -h '{house.folder}'"
    assert [file.path for file in house.tree.desk.changes().files] == ["a.txt"]
    disk.free()
    shown = await house.told(generation=2, message="")
    assert shown.changes.files == 2
    assert read_state(house.folder).generation == 2


async def test_the_state_is_written_even_then(house: House, disk: SmallDisk) -> None:
    house.ledger.change(message="a long sentence " * 50)
    disk.fill()
    house.ledger.change(state="paused", message="m", hint="h")
    found = read_state(house.folder)
    assert (found.state, found.message, found.hint) == ("paused", "m", "h")
    assert not list(house.folder.glob(".state*"))


async def test_a_state_that_does_not_fit_is_told_and_written_later(
    house: House, disk: SmallDisk
) -> None:
    disk.fill()
    house.ledger.change(state="stopping", message="m" * 5000)
    assert house.ledger.info().state == "stopping"
    assert read_state(house.folder).state == "running"
    house.ledger.fail(AppError("code", "Sentence." * 1000, "Hint."))
    assert house.ledger.info().hint == "Hint."
    disk.free()
    house.ledger.change(state="failed")
    assert (read_state(house.folder).state, read_state(house.folder).hint) == ("failed", "Hint.")


async def test_the_journal_has_whole_lines_only(house: House, disk: SmallDisk) -> None:
    disk.fill()
    for number in range(300):
        house.ledger.journal.write(f"event {number}", "x" * 100)
    disk.free()
    house.ledger.journal.write("after")
    lines = (house.folder / "journal.jsonl").read_bytes().splitlines()
    events = [msgspec.json.decode(line, type=Line).event for line in lines]
    assert events[0] == "running"
    assert events[-1] == "after"


async def test_a_decision_is_refused_whole(house: House, disk: SmallDisk) -> None:
    house.guest.put(b"a.txt", b"b\n")
    await house.shift.take()
    disk.fill()
    decide = {"path": "a.txt", "decision": "accepted"}
    with pytest.raises(AppError) as caught:
        await house.call("decide", decisions=[decide])
    assert (caught.value.code, caught.value.hint) == ("disk-full", "Free some space: df -h")
    assert (house.folder / "decisions.jsonl").read_bytes() == b""
    disk.free()
    await house.call("decide", decisions=[decide])
    assert house.tree.desk.changes().files[0].decision == "accepted"


async def test_the_terminal_goes_on(house: House, disk: SmallDisk) -> None:
    disk.fill()
    for number in range(3):
        house.terminal.append(bytes([65 + number]) * (4 << 20))
        house.terminal.resize(100 + number, 30)
    assert house.terminal.read(house.terminal.end - 3, 3) == b"CCC"
    assert house.terminal.size == (102, 30)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes are free; the test changes it."""
    bytes_free = [0]

    def usage(_: object) -> Usage:
        return Usage(1 << 30, 0, bytes_free[0])

    monkeypatch.setattr(rooms, "disk_usage", usage)
    return bytes_free


async def test_a_machine_without_room_is_paused_and_goes_on_by_itself(
    house: House, free: list[int]
) -> None:
    house.shift.go()
    house.machine.stop_for_want_of_room()
    paused = await house.told(state="paused")
    assert paused.message == (
        "The host's disk is full (0 MiB free): the machine stands still, and nothing is lost."
    )
    assert paused.hint.startswith("Free 1 MiB and it goes on by itself: df -h ")
    free[0] = 2 << 20
    await house.told(state="running", message="", hint="")
    assert house.machine.status == "running"
    house.machine.stop_for_want_of_room()
    free[0] = 0
    await house.told(state="paused")


async def test_a_keeper_finds_a_machine_without_room(house: House, free: list[int]) -> None:
    house.machine.status = "io-error"
    house.shift.go()
    await house.told(state="paused")
    with pytest.raises(AppError) as caught:
        await house.shift.room.go_on()
    assert (caught.value.code, caught.value.message) == (
        "disk-full",
        "Only 0 MiB are free, the machine goes on with 1.",
    )


async def test_a_machine_over_its_quota_is_tried_again_less_and_less_often(
    house: House, free: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room on the disk, only not for us: nobody tells when that changes."""
    monkeypatch.setattr(rooms, "LONGEST_LOOK_S", 0.04)
    free[0] = 2 << 20
    machine = house.machine
    machine.failing, machine.disk = True, "failed"
    house.shift.go()
    async with asyncio.timeout(30):
        await machine.asked.wait()
    machine.stop_for_want_of_room("Disk quota exceeded")
    paused = await house.told(state="paused")
    assert paused.message == (
        "The host cannot write the session's disk (Disk quota exceeded): "
        "the machine stands still, and nothing is lost."
    )
    assert "cloche resume 0123456789; look why: " in paused.hint
    async with asyncio.timeout(30):
        for _ in range(4):
            await machine.tried.get()
    assert house.ledger.info().state == "paused"  # it did not flicker
    with pytest.raises(AppError) as caught:
        await house.shift.room.go_on()
    assert caught.value.code == "disk-failed"
    machine.failing = False
    await house.told(state="running", message="", hint="")


async def test_an_error_that_the_guest_was_told_of_is_told_here_as_well(house: House) -> None:
    watching = asyncio.create_task(Room(house.ledger, cast("Machine", house.machine)).watch())
    data: dict[str, object] = {"action": "report", "reason": "Input/output error"}
    house.machine.news.put_nowait(("BLOCK_IO_ERROR", data))
    message = "The host could not read or write the session's disk (Input/output error)."
    shown = await house.told(message=message)
    assert shown.state == "running"
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
