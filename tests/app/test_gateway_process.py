"""The gateway as a process: what it is given, what it says, and what happens when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import dns.message
import msgspec
import pytest

from app.client.launch import role_command
from app.gateway import wire
from app.keeper.gateway import NAMES, GatewayKeeper
from app.processes import start_time
from tests.vm.test_egress_gateway import question, tcp_frame
from vm.egress.link import BUFFER
from vm.egress.pace import RATE, TYPING_S
from vm.egress.policy import Policy, Profile
from vm.egress.questions import Question, choice, rule_of
from vm.egress.rules import parse_rule

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from vm.egress.kinds import Entry

WAIT_S = 60.0
POLICY = Policy(Profile("standard", (parse_rule("b.dev.example", "allow"),), "ask"))


class Machine:
    """Where QEMU would listen, and a keeper of its gateway."""

    def __init__(self, folder: Path) -> None:
        self.log: list[Entry] = []
        self.questions: Sequence[Question] = ()
        self.faults: list[str] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "net.sock"))
        self._listener.listen(4)
        self._listener.setblocking(False)
        self._news = asyncio.Event()
        self.keeper = GatewayKeeper(
            role_command("gateway"),
            folder,
            folder / "net.sock",
            POLICY,
            log=self._note,
            asked=self._ask,
            fault=self._fault,
        )
        self.keeper.start()

    def _note(self, entry: Entry) -> None:
        self.log.append(entry)
        self._news.set()

    def _ask(self, questions: Sequence[Question]) -> None:
        self.questions = questions
        self._news.set()

    def _fault(self, sentence: str) -> None:
        self.faults.append(sentence)
        self._news.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def card(self) -> socket.socket:
        """The gateway's connection, as QEMU has it."""
        loop = asyncio.get_running_loop()
        card, _ = await asyncio.wait_for(loop.sock_accept(self._listener), WAIT_S)
        card.setblocking(False)
        return card

    async def close(self) -> None:
        await self.keeper.stop()
        self._listener.close()


@contextlib.asynccontextmanager
async def machine(folder: Path) -> AsyncGenerator[Machine]:
    made = Machine(folder)
    try:
        yield made
    finally:
        await made.close()


async def send(card: socket.socket, frame: bytes) -> None:
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(card, len(frame).to_bytes(4, "big") + frame)


async def frame(card: socket.socket) -> bytes:
    """The next frame to the guest."""
    loop = asyncio.get_running_loop()

    async def exactly(count: int) -> bytes:
        got = b""
        while len(got) < count:
            piece = await asyncio.wait_for(loop.sock_recv(card, count - len(got)), WAIT_S)
            assert piece
            got += piece
        return got

    return await exactly(int.from_bytes(await exactly(4), "big"))


async def look_up(card: socket.socket, name: str) -> str:
    await send(card, question(name))
    reply = dns.message.from_wire((await frame(card))[42:])
    rows = [line.split()[-1] for line in reply.to_text().splitlines() if " IN A " in line]
    return rows[0] if rows else str(int(reply.rcode()))


def core_limit(pid: int) -> str:
    """The longest core dump that a process may leave."""
    rows = Path(f"/proc/{pid}/limits").read_text().splitlines()
    (core,) = (row.split() for row in rows if row.startswith("Max core file size"))
    return core[4]


def has_mapped(pid: int, library: str) -> bool:
    """Whether a process has loaded a library."""
    return library in Path(f"/proc/{pid}/maps").read_text()


async def test_names_outlive_the_gateway_that_gave_them(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        card = await here.card()
        assert await look_up(card, "a.dev.example") == "198.18.0.1"
        assert await look_up(card, "b.dev.example") == "198.18.0.2"
        with (tmp_path / NAMES).open("ab") as file:
            file.write(b'["torn')
        assert here.keeper.process is not None
        os.kill(here.keeper.process.pid, signal.SIGKILL)
        card.close()
        card = await here.card()
        assert await look_up(card, "c.dev.example") == "198.18.0.3"
        assert await look_up(card, "b.dev.example") == "198.18.0.2"
        assert here.faults
        assert [entry.host for entry in here.log if entry.kind == "query"][:1] == ["a.dev.example"]
        card.close()
    assert len((tmp_path / NAMES).read_bytes().splitlines()) == 3


async def test_a_question_reaches_the_keeper_and_its_answer_the_guest(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        card = await here.card()
        assert await look_up(card, "a.dev.example") == "198.18.0.1"
        await send(card, tcp_frame())
        await here.until(lambda: here.questions)
        (asked,) = here.questions
        assert (asked.host, asked.ports, asked.waiting) == ("a.dev.example", (443,), 1)
        rule = rule_of(choice(asked, "deny", wide=False), 0.0)
        await here.keeper.change(replace(POLICY, session=(rule,)), WAIT_S)
        reset = await frame(card)
        assert reset[47] == 0x14
        await here.until(lambda: any(entry.kind == "open" for entry in here.log))
        await here.until(lambda: not here.questions)
        (entry,) = (entry for entry in here.log if entry.kind == "open")
        assert (entry.verdict, entry.level, entry.rule) == ("deny", "session", "a.dev.example")
        assert await look_up(card, "a.dev.example") == "3"
        card.close()


async def test_a_shorter_wait_ends_what_waits_already(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        card = await here.card()
        await look_up(card, "a.dev.example")
        await send(card, tcp_frame())
        await here.until(lambda: here.questions)
        await here.keeper.change(POLICY, 3600.0)
        await here.until(lambda: here.questions[0].ends > here.questions[0].first_seen + 3599)
        await here.keeper.change(POLICY, 0.05)
        assert (await frame(card))[47] == 0x14
        await here.until(lambda: not here.questions)
        await here.until(lambda: any(entry.code == "no-answer" for entry in here.log))
        card.close()


async def test_the_gateway_ends_with_its_keeper_and_holds_nothing_of_the_session(
    tmp_path: Path,
) -> None:
    async with machine(tmp_path) as here:
        card = await here.card()
        await look_up(card, "a.dev.example")
        assert here.keeper.process is not None
        pid = here.keeper.process.pid
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
        held = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
        files = [path for path in held if path.startswith("/") and not path.startswith("/dev/")]
        assert [path for path in files if str(tmp_path) in path] == [str(tmp_path / NAMES)]
        assert core_limit(pid) == "0"
        assert not has_mapped(pid, "libssl")  # it speaks no TLS itself
        card.close()
    assert not start_time(pid)


async def test_a_machine_that_is_away_is_tried_again(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        for number in range(3):
            card = await here.card()
            assert await look_up(card, f"n{number}.dev.example") == f"198.18.0.{number + 1}"
            card.close()


async def test_the_network_leaves_room_for_somebody_who_types(tmp_path: Path) -> None:
    async with machine(tmp_path) as here:
        card = await here.card()
        await look_up(card, "a.dev.example")
        began = asyncio.get_running_loop().time()
        here.keeper.typed()
        here.keeper.typed()
        await here.keeper.change(POLICY, 60.0)  # what was sent before it was heard
        for _ in range(100):
            await send(card, bytes(65_000))
        assert await look_up(card, "a.dev.example") == "198.18.0.1"
        least = min((6_500_000 - BUFFER) / RATE, TYPING_S)
        assert asyncio.get_running_loop().time() - began >= least
        assert not here.faults
        card.close()


@pytest.mark.parametrize("raw", [b"", b"{}\n", b'{"type":"entry"}\n', b"[1]\n", b"\xff\n"])
def test_lines_that_are_none_of_ours_are_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        wire.report(raw)
    with pytest.raises(msgspec.DecodeError):
        wire.order(raw)


def test_a_policy_goes_over_the_wire_unchanged() -> None:
    order = wire.InForce(POLICY, 7.5)
    assert wire.order(wire.line(order)) == wire.beginning(wire.line(order)) == order
