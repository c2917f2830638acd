"""A keeper goes on with the agent's output exactly where the record ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from app.agents import shell
from app.keeper import agent_terminal
from app.keeper.agent_terminal import KILLED, AgentTerminal
from app.keeper.terminal_record import TerminalRecord
from app.records import SessionRecord
from vm.errors import GuestProtocol, LinkLost
from vm.machine import guest_exec
from vm.machine.guest_exec import NoAgent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
