"""Memory for machines: promised once, waited for in turn, given back by death."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pytest

from app import locking
from app.agents import shell
from app.errors import AppError
from app.host_memory import HostMemory
from app.keeper import claim_files, governor
from app.keeper.governor import Governor
from app.keeper.ledger import Ledger
from app.memory_claims import Claim
from app.paths import Paths
from app.processes import start_time
from app.records import Limits, Process, SessionRecord, read_state, session_info, write_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GIB = 1 << 30
WAIT_S = 30


class Desk:
    """Sessions of one user, and a host whose memory the test sets."""

    def __init__(self, root: Path, home: str = "state") -> None:
        names = (home, "data", "config", "cache", "run")
        self.paths = Paths(*(root / name for name in names))
        self.ledgers: list[Ledger] = []

    def session(self, name: str, memory: int = 2048, queue: int = 600, pool: int = 0) -> Governor:
        folder = self.paths.session(name * 10)
        folder.mkdir(parents=True)
        limits = Limits(memory=memory, queue=queue, pool=pool)
        record = SessionRecord(folder.name, name, shell(), "/", 0.0, "base", "", limits=limits)
        write_record(folder / "session.json", record)
        ledger = Ledger(folder)
        self.ledgers.append(ledger)
        return Governor(self.paths, ledger)

    def claims(self) -> dict[str, Claim]:
        return {one.session[0]: one for one in claim_files.living(self.paths.runtime).values()}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    for ledger in made.ledgers:
        ledger.journal.close()


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A host of 16 GiB with 5 GiB available: 4096 MiB for machines."""
    known = {"available": 5 * GIB, "total": 16 * GIB, "resident": 0}
    monkeypatch.setattr(
        governor, "host_memory", lambda: HostMemory(known["total"], known["available"])
    )

    def resident(_: int) -> int:
        return known["resident"]

    monkeypatch.setattr(governor, "resident", resident)
    monkeypatch.setattr(governor, "LOOK_S", 0.01)
    return known


@pytest.fixture
def program() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a machine."""
    child = subprocess.Popen(["sleep", "600"])
    yield child
    child.kill()
    child.wait()


def process_of(child: subprocess.Popen[bytes]) -> Process:
    return Process.here(child.pid, start_time(child.pid))


async def let_in(one: Governor) -> None:
    await one.enter()
    await one.granted()


async def test_machines_are_let_in_until_the_memory_is_promised(desk: Desk) -> None:
    await let_in(desk.session("a"))
    await let_in(desk.session("b"))
    last = desk.session("c", queue=0)
    with pytest.raises(AppError) as caught:
        await last.enter()
    assert caught.value.code == "no-memory"
    assert "needs 2048 MiB, and 0 MiB are left" in caught.value.message
    assert sorted(desk.claims()) == ["a", "b"]


async def test_what_machines_hold_is_not_counted_twice(
    desk: Desk, host: dict[str, int], program: subprocess.Popen[bytes]
) -> None:
    first = desk.session("a")
    await let_in(first)
    first.hold(process_of(program))
    host["available"], host["resident"] = 4 * GIB, GIB  # the machine has touched 1 GiB
    await desk.session("b", queue=0).enter()


async def test_a_session_that_waits_says_so_and_goes_on(desk: Desk) -> None:
    first, second = desk.session("a", 3072), desk.session("b", 2048)
    await let_in(first)
    await second.enter()
    waiting = asyncio.create_task(second.granted())
    ledger = desk.ledgers[1]
    async with asyncio.timeout(WAIT_S):
        async for event in ledger.events():
            if event.session.waits:
                break
    shown = ledger.info()
    assert shown.waits == "memory"
    assert shown.message == "Waits for memory: 1024 MiB free of 2048 needed."
    assert shown.hint.endswith(f"cloche stop {'b' * 10}")
    first.leave()
    async with asyncio.timeout(WAIT_S):
        await waiting
    assert (ledger.info().waits, ledger.info().message) == ("", "")
    assert desk.claims()["b"].granted


async def test_the_line_is_kept(desk: Desk) -> None:
    """A small machine that comes later does not slip in before a large one."""
    first = desk.session("a", 2048)
    await let_in(first)
    large, small = desk.session("b", 3072), desk.session("c", 512)
    await large.enter()
    await small.enter()
    assert not desk.claims()["c"].granted
    waiting = [asyncio.create_task(one.granted()) for one in (large, small)]
    first.leave()
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*waiting)
    assert all(claim.granted for claim in desk.claims().values())


async def test_patience_ends(desk: Desk) -> None:
    await let_in(desk.session("a", 4096))
    second = desk.session("b")
    await second.enter(0.05)
    with pytest.raises(AppError, match=r"waited for 0\.05 s"):
        await second.granted()
    assert sorted(desk.claims()) == ["a"]


async def test_what_can_never_fit_is_refused_at_once(desk: Desk) -> None:
    with pytest.raises(AppError) as caught:
        await desk.session("a", 14000).enter()
    assert caught.value.hint.endswith("'defaults: {memory: 13107}'")
    with pytest.raises(AppError) as caught:
        await desk.session("b", 2048, pool=1024).enter()
    assert "'pool'" in caught.value.message
    assert not desk.paths.runtime.exists()


async def test_the_line_has_an_end(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(governor, "MAX_WAITING", 1)
    await let_in(desk.session("a", 4096))
    await desk.session("b").enter()
    with pytest.raises(AppError, match="needs 2048 MiB"):
        await desk.session("c").enter()


async def test_the_users_own_limit_counts(desk: Desk) -> None:
    await let_in(desk.session("a", 1024, pool=2048))
    with pytest.raises(AppError, match="1024 MiB are left"):
        await desk.session("b", 2048, queue=0, pool=2048).enter()


async def test_another_state_home_is_counted(desk: Desk, tmp_path: Path) -> None:
    await let_in(desk.session("a", 4096))
    other = Desk(tmp_path, "elsewhere")
    with pytest.raises(AppError, match="0 MiB are left"):
        await other.session("b", queue=0).enter()
    other.ledgers[0].journal.close()


async def test_a_claim_dies_with_its_machine(desk: Desk, program: subprocess.Popen[bytes]) -> None:
    one = desk.session("a", 4096)
    await let_in(one)
    one.hold(process_of(program))
    one.leave()  # says nothing: the machine lives
    assert sorted(desk.claims()) == ["a"]
    program.kill()
    program.wait()
    assert desk.claims() == {}
    await desk.session("b", 4096, queue=0).enter()


def test_a_claim_dies_with_its_keeper(desk: Desk, program: subprocess.Popen[bytes]) -> None:
    folder = desk.paths.sockets("a" * 10)
    folder.mkdir(parents=True)
    held = Claim("a" * 10, 4096, process_of(program), 0.0, granted=True)
    (folder / claim_files.CLAIM).write_bytes(msgspec.json.encode(held))
    assert sorted(desk.claims()) == ["a"]
    program.kill()
    program.wait()
    assert desk.claims() == {}


def test_a_machine_that_nobody_wrote_down_yet_is_counted(desk: Desk) -> None:
    """Its keeper was killed in the moment after it started it."""
    folder = desk.paths.sockets("a" * 10)
    (folder / "vm").mkdir(parents=True)
    gone = Claim("a" * 10, 4096, Process.here(1 << 22, 1), 0.0, granted=True)
    (folder / claim_files.CLAIM).write_bytes(msgspec.json.encode(gone))
    assert desk.claims() == {}
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.bind(str(folder / "vm" / "qmp.sock"))
        monitor.listen(1)
        assert sorted(desk.claims()) == ["a"]
    assert desk.claims() == {}


def test_a_damaged_claim_is_none(desk: Desk) -> None:
    for name, content in (("0" * 8, b"{"), ("1" * 8, b"x" * 9000), ("2" * 8, b'{"session": 1}')):
        folder = desk.paths.runtime / name
        folder.mkdir(parents=True)
        (folder / claim_files.CLAIM).write_bytes(content)
    (desk.paths.runtime / "other").mkdir()
    assert desk.claims() == {}


def test_eight_at_once_are_promised_no_memory_twice(desk: Desk) -> None:
    """The lock belongs to whoever opened it, so threads compete for it as keepers do."""
    starts = [desk.session(name, 1024, queue=0) for name in "abcdefgh"]
    together = threading.Barrier(len(starts))

    def start(one: Governor) -> bool:
        together.wait(WAIT_S)
        try:
            asyncio.run(one.enter())
        except AppError as error:
            return error.code != "no-memory"
        return True

    with ThreadPoolExecutor(len(starts)) as threads:
        answers = list(threads.map(start, starts))
    assert answers.count(True) == 4
    assert sum(claim.memory for claim in desk.claims().values()) == 4096


async def test_somebody_who_hangs_with_the_lock_is_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "LOCK_WAIT_S", 0.05)
    one = desk.session("a")
    with claim_files.deciding(desk.paths.runtime), pytest.raises(AppError) as caught:
        await one.enter()
    assert caught.value.code == "busy"
    assert caught.value.hint.startswith("See who holds it: fuser -v ")


def test_only_a_session_that_is_starting_waits(desk: Desk) -> None:
    desk.session("a")
    ledger = desk.ledgers[0]
    ledger.change(waits="memory", message="Waits.")
    assert ledger.info().waits == "memory"
    ledger.change(state="stopped")
    state = read_state(ledger.folder)
    assert session_info(ledger.record, state).waits == ""
