"""A session's network in its keeper: real gateways, real files; only QEMU's end is the test's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from typing import TYPE_CHECKING

import pytest

from app.agents import shell
from app.egress.edits import MISTAKE
from app.egress.rules_edit import add_rule
from app.egress.session import read_session_egress, started_with, write_session_egress
from app.egress.writing import write_choice
from app.errors import AppError
from app.keeper.ledger import Ledger
from app.keeper.network import SHUT, GuestNetwork
from app.paths import Paths
from app.protocol import EgressAnswer, EgressInfo, EgressRule
from app.records import SessionRecord, StateRecord, read_state, write_record
from app.services.egress_rules import offered
from tests.app.test_gateway_process import WAIT_S, frame, look_up, send
from tests.vm.test_egress_gateway import tcp_frame
from vm.egress.ledger import NAME, read_entries
from vm.egress.questions import TIMEOUT_S
from vm.egress.rules import parse_rule

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from vm.egress.questions import Answer

HOST = "a.dev.example"
RESET = 0x14


class Bench:
    """One session whose machine listens where the test says."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(*(root / name for name in ("state", "data", "config", "cache", "run")))
        self.workspace = root / "work"
        self.folder = self.paths.session("0123456789")
        for made in (self.folder, self.workspace, self.paths.config):
            made.mkdir(parents=True)
        egress = started_with("standard", [], [])
        write_session_egress(self.folder, egress)
        record = SessionRecord(
            self.folder.name, "n", shell(), str(self.workspace), 0.0, "base", "key"
        )
        write_record(self.folder / "session.json", record)
        state = StateRecord(state="running", egress=EgressInfo("on"))
        write_record(self.folder / "state.json", state)
        self.link = root / "net.sock"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.link))
        self._listener.listen(4)
        self._listener.setblocking(False)
        self.session = Ledger(self.folder)
        self.network = GuestNetwork(self.paths, self.session)

    async def card(self) -> socket.socket:
        """The gateway's connection, as QEMU has it."""
        loop = asyncio.get_running_loop()
        card, _ = await asyncio.wait_for(loop.sock_accept(self._listener), WAIT_S)
        card.setblocking(False)
        return card

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds of the session, whose events tell of every change."""
        async with asyncio.timeout(WAIT_S):
            async for _ in self.session.events():
                if condition():
                    return

    async def asked(self, card: socket.socket) -> None:
        """Have the guest try the host, and the question come."""
        await look_up(card, HOST)
        await send(card, tcp_frame())
        await self.until(lambda: self.session.info().asks)

    async def started(self) -> socket.socket:
        """Start the network; the gateway's connection."""
        await self.network.prepare()
        self.network.start(self.link)
        return await self.card()

    async def close(self) -> None:
        await self.network.stop()
        self.session.journal.close()
        self._listener.close()


@contextlib.asynccontextmanager
async def bench_of(root: Path) -> AsyncGenerator[Bench]:
    made = Bench(root)
    try:
        yield made
    finally:
        await made.close()


async def flags(card: socket.socket) -> int:
    """TCP's flags in the next frame to the guest."""
    return (await frame(card))[47]


@pytest.mark.parametrize(
    ("answer", "wide", "text", "file"),
    [
        ("deny", False, f"deny {HOST} in this session", "session"),
        ("deny", True, "deny *.dev.example in this session", "session"),
        ("deny-project", False, f"deny {HOST} in every session on this workspace", "rules"),
        ("deny-always", False, f"deny {HOST} in every session", "rules"),
    ],
)
async def test_an_answer_is_written_where_it_belongs_and_ends_the_wait(
    tmp_path: Path, answer: str, wide: bool, text: str, file: str
) -> None:
    async with bench_of(tmp_path) as here:
        card = await here.started()
        await here.asked(card)
        (question,) = read_state(here.folder).asks
        assert (question.host, question.ports, question.waiting) == (HOST, (443,), 1)
        given = EgressAnswer(HOST, answer, wide)  # type: ignore[arg-type]  # a word of the table above
        assert (await here.network.answer(given)).rule == text
        assert await flags(card) == RESET
        await here.until(lambda: not here.session.info().asks)
        here_rules = [one.rule for one in read_session_egress(here.folder).rules]
        always = here.paths.config / "rules.yaml"
        assert (bool(here_rules), always.exists()) == (file == "session", file == "rules")
        with pytest.raises(AppError) as caught:
            await here.network.answer(given)
        assert caught.value.code == "no-such"
        card.close()


async def test_of_two_answers_at_once_one_holds_and_the_other_is_told(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        card = await here.started()
        await here.asked(card)
        answers: tuple[Answer, ...] = ("deny", "deny-always", "session")
        given = (here.network.answer(EgressAnswer(HOST, one)) for one in answers)
        first, *late = await asyncio.gather(*given, return_exceptions=True)
        assert first == EgressRule(f"deny {HOST} in this session")
        assert [one.code for one in late if isinstance(one, AppError)] == ["no-such"] * 2
        assert await flags(card) == RESET
        assert len(read_session_egress(here.folder).rules) == 1
        assert not (here.paths.config / "rules.yaml").exists()
        card.close()


async def test_an_answer_for_once_is_no_rule_of_any_file(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        card = await here.started()
        await here.asked(card)
        with pytest.raises(AppError, match="Nobody asks"):
            await here.network.answer(EgressAnswer(HOST, "once", ports=(8443,)))
        given = EgressAnswer(HOST, "once", ports=(443, 8443))
        assert (await here.network.answer(given)).rule == f"allow {HOST}:443 for 60 s"
        # the test's resolver knows no such name: what the guest hears is that nobody is there
        assert await flags(card) == RESET
        assert not read_session_egress(here.folder).rules
        await here.network.stop()
        (entry,) = [one for one in read_entries(here.folder / NAME) if one.kind == "open"]
        assert (entry.level, entry.code in ("no-address", "no-resolver")) == ("session", True)
        card.close()


async def test_rules_that_were_written_elsewhere_hold_after_a_reload(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        card = await here.started()
        await here.asked(card)
        rules = here.paths.config / "rules.yaml"
        rules.write_text("always: {deny: [nothing at all]}\n")
        with pytest.raises(AppError, match=r"rules\.yaml"):
            await here.network.reload()
        assert here.session.info().asks, "a file with a mistake changes nothing"
        rules.write_text(f"always: {{deny: [{HOST}]}}\n")
        await here.network.reload()
        assert await flags(card) == RESET
        card.close()


async def test_an_edit_by_hand_holds_at_once_and_a_mistake_in_it_changes_nothing(
    tmp_path: Path,
) -> None:
    async with bench_of(tmp_path) as here:
        card = await here.started()
        await here.asked(card)
        rules = here.paths.config / "rules.yaml"
        rules.write_text("always:\n  deny:\n    - nothing at all\n")
        await here.until(lambda: here.session.info().notices)
        (told,) = read_state(here.folder).notices
        assert told.startswith(f"{MISTAKE} {rules}:3:")
        assert "is no host name" in told
        assert here.session.info().asks, "the rules from before hold"
        project = here.workspace / ".cloche.yaml"
        project.write_text("egress: !!timestamp soon\n")  # as code from anywhere may bring along
        rules.unlink()
        wanted = f"{MISTAKE} {project}:1:"
        await here.until(lambda: here.session.info().notices[0].startswith(wanted))
        project.write_text(f"egress: {{deny: [{HOST}]}}\n")
        rules.write_text("always:\n  deny:\n    - spy.example\n")
        await here.until(lambda: not here.session.info().asks)
        assert await flags(card) == RESET
        assert not read_state(here.folder).notices
        assert await look_up(card, "spy.example") == "3"
        card.close()


async def test_how_long_a_question_waits_is_live_too(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        card = await here.started()
        await here.asked(card)
        first = here.session.info().asks[0].ends

        def longer() -> float:
            return here.session.info().asks[0].ends - first

        config = here.paths.config / "config.yaml"
        config.write_text("egress: {wait: 600}\n")
        await here.until(lambda: longer() == pytest.approx(600 - TIMEOUT_S))
        config.write_text("egress: {wait: 300}\n")
        await here.until(lambda: longer() == pytest.approx(300 - TIMEOUT_S))
        card.close()


async def test_a_deny_for_the_workspace_beats_what_the_session_allows(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        write_session_egress(here.folder, started_with("standard", [HOST], []))
        card = await here.started()
        assert await look_up(card, HOST) == "198.18.0.1"
        add_rule(here.paths.config, parse_rule(HOST, "deny"), str(here.workspace))
        await here.network.reload()
        assert await look_up(card, HOST) == "3"
        with pytest.raises(AppError, match="decides first"):
            write_choice(here.paths, here.folder.name, offered(HOST, 443, "allow")[0])
        project = offered(HOST, 443, "allow")[1]
        assert [one.effect for one in write_choice(here.paths, here.folder.name, project).removed]
        await here.network.reload()
        assert await look_up(card, HOST) == "198.18.0.1"
        await here.network.stop()
        levels = [one.level for one in read_entries(here.folder / NAME) if one.kind == "query"]
        assert levels == ["session", "workspace", "session"]
        card.close()


async def test_a_headless_session_asks_whoever_is_there(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        write_session_egress(here.folder, started_with("standard", [], [], ask=False))
        card = await here.started()
        assert await look_up(card, HOST) == "3"  # nobody can be asked
        await here.network.attended(True)
        await here.asked(card)
        await here.network.attended(False)  # what waits is refused: nobody is there any more
        assert await flags(card) == RESET
        assert await look_up(card, HOST) == "3"
        await here.network.resumed()
        assert await look_up(card, HOST) == "198.18.0.1"
        await here.network.reload()
        assert await look_up(card, HOST) == "198.18.0.1"  # it stands in the session's file
        card.close()


async def test_names_rules_and_counts_outlive_gateway_and_keeper(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        card = await here.started()
        address = await look_up(card, HOST)
        await here.asked(card)
        await here.network.answer(EgressAnswer(HOST, "deny"))
        assert await flags(card) == RESET
        gateway = here.network._gateway  # pyright: ignore[reportPrivateUsage]
        assert gateway is not None
        assert gateway.process is not None
        os.kill(gateway.process.pid, signal.SIGKILL)
        card.close()
        card = await here.card()
        assert await look_up(card, HOST) == "3", "a denied name has no address"
        await here.network.stop()
        card.close()
        second = GuestNetwork(here.paths, here.session)
        try:
            await second.take_up(here.link)
            card = await here.card()
            write_session_egress(here.folder, started_with("standard", [HOST], []))
            await second.reload()
            assert await look_up(card, HOST) == address
            await second.stop()
            assert read_state(here.folder).egress.denied == 2  # the connection and the name
            card.close()
        finally:
            await second.stop()


async def test_a_keeper_that_cannot_read_the_rules_lets_nothing_through(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        rules = here.paths.config / "rules.yaml"
        rules.write_text("always: nonsense\n")
        with pytest.raises(AppError):
            await here.network.prepare()
        await here.network.take_up(here.link)
        card = await here.card()
        assert await look_up(card, HOST) == "3"
        assert [one for one in read_state(here.folder).notices if one.startswith(SHUT)]
        rules.unlink()
        await here.network.reload()
        assert await look_up(card, HOST) == "198.18.0.1"
        assert not read_state(here.folder).notices
        card.close()


async def test_without_a_card_there_is_no_gateway(tmp_path: Path) -> None:
    async with bench_of(tmp_path) as here:
        here.session.change(egress=EgressInfo("off"))
        await here.network.take_up(here.link)
        await here.network.reload()
        assert here.network._gateway is None  # pyright: ignore[reportPrivateUsage]
