"""A keeper goes on with the agent's output exactly where the record ends."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING, cast

import pytest

from app.agents import shell
from app.keeper import agent_terminal
from app.keeper.agent_terminal import KILLED, AgentTerminal, NotSent
from app.keeper.terminal_record import TerminalRecord
from app.records import SessionRecord
from tests.vm.machine_ssh_fakes import connected
from vm.errors import GuestProtocol, LinkLost
from vm.machine import guest_exec
from vm.machine.guest_exec import NoAgent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    import asyncssh

    from app.keeper.links import Links

RECORD = SessionRecord("0123456789", "n", shell(), "/w", 0.0, "base", "")
RUN = 9


class FakeTerminal:
    """An attachment that gives some output, then an end or a fault."""

    def __init__(self, begun: int, *output: bytes, end: int | Exception) -> None:
        self.run, self.begun = RUN, begun
        self.status = end if isinstance(end, int) else None
        self.sizes: list[tuple[int, int]] = []
        self.told = 0
        self._left: list[bytes | Exception] = [*output, end if isinstance(end, Exception) else b""]

    async def read(self) -> bytes:
        data = self._left.pop(0)
        if isinstance(data, Exception):
            raise data
        return data

    def recorded(self, count: int) -> None:
        self.told = count

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    async def close(self) -> None:
        return


class FakeLinks:
    async def ssh(self) -> object:
        return self


class Bench:
    """An agent's terminal whose attachments come from a list."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.record = TerminalRecord(folder, 80, 24)
        self.asked: list[tuple[int, int]] = []
        self.next: list[FakeTerminal | Exception] = []
        self.agent = AgentTerminal(RECORD, self.record, cast("Links", FakeLinks()))
        monkeypatch.setattr(guest_exec, "attach", self._attach)
        monkeypatch.setattr(agent_terminal, "RETRY_S", 0.0)

    async def _attach(self, _: object, run: int, count: int, *size: int) -> FakeTerminal:
        assert size == (80, 24)
        self.asked.append((run, count))
        found = self.next.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    @property
    def text(self) -> bytes:
        return self.record.read(0, 1 << 20)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(tmp_path, monkeypatch)
    yield made
    made.record.close()


@pytest.mark.parametrize("fault", [LinkLost("gone"), GuestProtocol("nonsense")])
async def test_after_a_broken_link_it_goes_on(bench: Bench, fault: Exception) -> None:
    bench.record.append(b"of an earlier run")
    bench.record.begin_run(RUN)
    bench.next = [
        FakeTerminal(0, b"one", b"two", end=fault),
        LinkLost("not yet"),
        FakeTerminal(6, b"three", end=4),
    ]
    assert await bench.agent.run() == 4
    assert bench.asked == [(RUN, 0), (RUN, 6), (RUN, 6)]
    assert bench.text == b"of an earlier runonetwothree"


async def test_a_new_keeper_asks_for_what_the_record_lacks(bench: Bench, tmp_path: Path) -> None:
    bench.record.append(b"earlier")
    bench.record.begin_run(RUN)
    bench.record.append(b"seen")
    bench.record.append(b"a word of ours", printed=False)
    again = TerminalRecord(tmp_path, 80, 24)
    assert (again.run, again.count, again.end) == (RUN, 4, 25)
    again.close()


async def test_what_is_lost_is_said_once_and_the_program_paints_again(bench: Bench) -> None:
    bench.record.begin_run(RUN)
    bench.record.append(b"some\x1b[3")
    later = FakeTerminal(2_000_007, b"rest", end=0)
    bench.next = [later]
    assert await bench.agent.run() == 0
    assert bench.text.startswith(b"some\x1b[3\x18")
    assert bench.text.endswith(b"rest")
    assert bench.text.count(b"2,000,000 bytes of the output are missing") == 1
    assert bench.record.count == later.told == 2_000_011
    assert later.sizes == [(80, 23), (80, 24)]


async def test_a_size_that_comes_while_it_attaches_is_not_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = FakeTerminal(0, b"drawn", end=0)

    async def attach(_: object, __: int, ___: int, *size: int) -> FakeTerminal:
        assert size == (80, 24)
        bench.agent.resize(103, 19)  # a pane was opened meanwhile
        return late

    monkeypatch.setattr(guest_exec, "attach", attach)
    assert await bench.agent.run() == 0
    assert late.sizes == [(103, 19)]


async def test_a_machine_that_was_put_back_is_followed(bench: Bench) -> None:
    bench.record.begin_run(RUN)
    bench.record.append(b"a future that never was")
    bench.next = [FakeTerminal(8, b", another", end=0)]
    assert await bench.agent.run() == 0
    assert bench.text == b"a future that never was, another"
    assert bench.record.count == 17


async def test_a_fork_without_a_record_takes_what_there_is(bench: Bench) -> None:
    bench.next = [FakeTerminal(0, b"all of it", end=0)]
    assert await bench.agent.run() == 0
    assert bench.asked == [(0, 0)]
    assert (bench.record.run, bench.record.count) == (RUN, 9)


async def test_a_run_that_nobody_knows_was_killed(bench: Bench) -> None:
    bench.record.begin_run(RUN)
    bench.next = [NoAgent("none"), NoAgent("none"), FakeTerminal(0, end=0)]
    assert not await bench.agent.known()
    assert await bench.agent.run() == KILLED
    assert await bench.agent.known()


class Reading:
    """A guest that holds a terminal whose program reads as many bytes as it is let."""

    def __init__(self, program_reads: int) -> None:
        self.left = program_reads
        self.typed = b""
        self.dies_at = 1 << 30

    async def hold(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        process.stdout.write(_frame(b"B", struct.pack("<QQI", RUN, 0, 0)))
        with contextlib.suppress(asyncio.IncompleteReadError):
            while len(self.typed) < self.dies_at:
                (length,) = struct.unpack("<I", await process.stdin.readexactly(4))
                body = await process.stdin.readexactly(length)
                if body[:1] == b"I":
                    self.typed += body[1:]
                    self._take(process, len(body) - 1)
        process.exit(0)

    def _take(self, process: asyncssh.SSHServerProcess[bytes], count: int) -> None:
        took = min(count, self.left)
        self.left -= took
        if took:
            process.stdout.write(_frame(b"T", struct.pack("<I", took)))


def _frame(kind: bytes, payload: bytes) -> bytes:
    return struct.pack("<I", 1 + len(payload)) + kind + payload


class OneLink:
    """Links of which the one connection is always the same."""

    def __init__(self, ssh: asyncssh.SSHClientConnection) -> None:
        self._ssh = ssh

    async def ssh(self) -> asyncssh.SSHClientConnection:
        return self._ssh


@contextlib.asynccontextmanager
async def agent_of(folder: Path, guest: Reading) -> AsyncGenerator[AgentTerminal]:
    record = TerminalRecord(folder, 80, 24)
    record.begin_run(RUN)
    async with connected(folder, guest.hold) as ssh:
        agent = AgentTerminal(RECORD, record, cast("Links", OneLink(ssh)))
        carrying = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
            record.close()


LONG = "word " * 20_000


async def test_a_prompt_is_sent_when_the_terminal_has_taken_it(tmp_path: Path) -> None:
    guest = Reading(1 << 30)
    async with agent_of(tmp_path, guest) as agent, asyncio.timeout(60):
        await asyncio.gather(*(agent.prompt(text) for text in ("one", LONG, "two")))
        assert guest.typed.decode() == f"one\r{LONG}\rtwo\r"


@pytest.mark.parametrize("reads", [0, 3, 70_000])
async def test_a_prompt_that_nobody_takes_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    monkeypatch.setattr(agent_terminal, "TAKEN_S", 0.5)
    guest = Reading(reads)
    async with agent_of(tmp_path, guest) as agent, asyncio.timeout(60):
        with pytest.raises(NotSent, match=r"within 0\.5 s"):
            await agent.prompt(LONG)


async def test_a_prompt_into_a_link_that_breaks_is_not_sent(tmp_path: Path) -> None:
    guest = Reading(0)
    guest.dies_at = 1
    async with agent_of(tmp_path, guest) as agent, asyncio.timeout(60):
        with pytest.raises(NotSent, match="The link broke"):
            await agent.prompt("do it")


async def test_without_a_terminal_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_terminal, "ATTACH_S", 0.05)
    record = TerminalRecord(tmp_path, 80, 24)
    agent = AgentTerminal(RECORD, record, cast("Links", FakeLinks()))
    with pytest.raises(NotSent, match="nothing was sent"):
        await agent.prompt("do it")
    record.close()
