"""The broker as a process: what it is handed, what it says, what becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.agents import Agent
from app.broker.handover import hand_over, take_over
from app.broker.record import BrokerRecord, WantedService, broker_of
from app.broker.settings import BrokerSettings
from app.errors import AppError
from app.keeper.broker import BrokerKeeper
from app.records import SessionRecord
from tests.vm.egress_tap import ALLOW
from vm.egress.broker.doors import DoorDialer
from vm.egress.broker.meter import Caps, Totals
from vm.egress.dial import DirectDialer
from vm.egress.kinds import Request
from vm.egress.proxy import Proxies

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from vm.egress.kinds import Entry

CANARY = "sk-CANARY-0123456789"
WAIT_S = 60.0
LAB = {
    "upstream": "https://localtest.example.org", "credential": "env:LAB_KEY", "add": "bearer",
    "accept": ["bearer"], "allow": ["GET /v1/**"],
    "env": {"LAB_URL": "{url}", "LAB_KEY": "{placeholder}"},
}  # fmt: skip


def record(**services: WantedService) -> SessionRecord:
    broker = BrokerRecord(services, "5eed" * 10)
    return SessionRecord("s1", "s", Agent("a", ("a",)), "", 0.0, "base", "key", broker=broker)


class Session:
    """A keeper's broker and what it said."""

    def __init__(self, made: SessionRecord, folder: Path, env: dict[str, str]) -> None:
        self.log: list[Entry] = []
        self.faults: list[str] = []
        self.news = asyncio.Event()
        self._variables = hand_over({**os.environ, **env}, made.broker.variables())
        self.keeper = BrokerKeeper(
            made, folder, self._variables, Proxies(), Totals(), Caps(), ask=True,
            log=self._log, changed=self.news.set, fault=self._fault,
        )  # fmt: skip

    def _log(self, entry: Entry) -> None:
        self.log.append(entry)
        self.news.set()

    def _fault(self, sentence: str) -> None:
        self.faults.append(sentence)
        self.news.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self.news.clear()
                await self.news.wait()

    async def ask(self, head: bytes) -> Any:
        """Ask as the gateway lets a guest ask; the error's words in its answer."""
        dialer = DoorDialer(self.keeper.door, _Nobody())
        made = await dialer.dial(Request("lab.cloche.internal", 80), ALLOW)
        reader, writer = await asyncio.open_connection(sock=made.socket)
        writer.write(head)
        async with asyncio.timeout(WAIT_S):
            answer = await reader.read()
        writer.close()
        return json.loads(answer.partition(b"\r\n\r\n")[2])["error"]

    async def close(self) -> None:
        await self.keeper.stop()
        os.close(self._variables)


class _Nobody(DirectDialer):
    def __init__(self) -> None:
        pass


@contextlib.asynccontextmanager
async def session(
    folder: Path, made: SessionRecord, env: dict[str, str]
) -> AsyncGenerator[Session]:
    opened = Session(made, folder, env)
    try:
        yield opened
    finally:
        await opened.close()


def of_process(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


async def test_it_has_the_key_and_shows_it_nowhere(tmp_path: Path) -> None:
    lab = record(lab=WantedService(LAB, "required"))
    async with session(tmp_path, lab, {"LAB_KEY": CANARY}) as opened:
        ready = await opened.keeper.start()
        assert ready.hosts == ("lab.cloche.internal",)
        assert ready.env["LAB_URL"] == "http://lab.cloche.internal"
        assert ready.env["LAB_KEY"].startswith("cloche-")
        assert opened.keeper.process is not None
        pid = opened.keeper.process.pid
        assert CANARY.encode() not in of_process(pid, "cmdline")
        if os.geteuid() == 0:
            assert CANARY.encode() not in of_process(pid, "environ")
        else:
            with pytest.raises(PermissionError):  # nothing of the user's looks into it
                of_process(pid, "environ")
        limits = of_process(pid, "limits").decode()
        core = next(line for line in limits.splitlines() if line.startswith("Max core file"))
        assert core.split()[4:6] == ["0", "0"]
        error = await opened.ask(b"GET /v1/a HTTP/1.1\r\nHost: lab.cloche.internal\r\n\r\n")
        assert error["code"] == "no-placeholder"
        await opened.until(lambda: opened.log)
    row = opened.log[0]
    assert (row.kind, row.verdict, row.host) == ("request", "deny", "lab.cloche.internal")
    assert (row.code, row.address) == ("no-placeholder", "localtest.example.org:443")
    assert not (tmp_path / "broker.sock").exists()


async def test_one_that_dies_is_started_with_the_same_placeholder(tmp_path: Path) -> None:
    lab = record(lab=WantedService(LAB, "required"))
    async with session(tmp_path, lab, {"LAB_KEY": CANARY}) as opened:
        before = await opened.keeper.start()
        assert opened.keeper.process is not None
        first = opened.keeper.process.pid
        os.kill(first, signal.SIGKILL)
        await opened.until(
            lambda: opened.keeper.process is not None and opened.keeper.process.pid != first
        )
        error = await opened.ask(b"GET /v2 HTTP/1.1\r\nHost: lab.cloche.internal\r\n\r\n")
        assert error["code"] == "no-placeholder"
        assert opened.keeper.ready == before
    assert opened.faults == ["The session's credential broker ended and is started again."]


async def test_what_is_missing_is_said_with_its_fix(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(CANARY)
    (tmp_path / "key").chmod(0o644)
    wanted = record(
        lab=WantedService(LAB),
        open=WantedService({**LAB, "credential": f"file:{tmp_path}/key"}),
        good=WantedService({**LAB, "credential": "command:printf 0123456789"}),
    )
    async with session(tmp_path, wanted, {}) as opened:
        ready = await opened.keeper.start()
    assert ready.hosts == ("good.cloche.internal",)
    missing = {one.name: one for one in ready.missing}
    assert missing["lab"].unset
    assert missing["lab"].hint == "export LAB_KEY=…"
    assert not missing["open"].unset
    assert missing["open"].hint == f"chmod 600 {tmp_path}/key"


async def test_one_that_can_hold_nothing_refuses_to_start(tmp_path: Path) -> None:
    lab = record(lab=WantedService(LAB, "required"))
    nowhere = {"LAB_KEY": CANARY, "SSL_CERT_FILE": "/nonexistent/ca.pem"}
    async with session(tmp_path, lab, nowhere) as opened:
        with pytest.raises(AppError) as caught:
            await opened.keeper.start()
        assert opened.keeper.process is None
    assert caught.value.hint == "unset SSL_CERT_FILE"
    assert not (tmp_path / "broker.sock").exists()


def test_variables_go_through_memory_and_no_others_do() -> None:
    env = {"LAB_KEY": "a\udcff", "HOME": "/h", "OTHER": "x"}
    descriptor = hand_over(env, ["LAB_KEY", "UNSET"])
    try:
        assert take_over(descriptor) == {"LAB_KEY": "a\udcff", "HOME": "/h"}
        assert take_over(descriptor) == take_over(descriptor)
        assert not os.get_inheritable(descriptor)
        with pytest.raises(PermissionError):
            os.pwrite(descriptor, b"x", 0)
    finally:
        os.close(descriptor)


def test_a_record_has_references_and_names_their_variables() -> None:
    agent = Agent("a", ("a",), services={"anthropic": "required", "github": "optional"})
    settings = BrokerSettings({"github": {"credential": "keyring:git/me"}}, 100, 5.0)
    made = broker_of(agent, settings)
    assert tuple(made.variables()) == ("ANTHROPIC_API_KEY",)
    assert made.services["anthropic"].need == "required"
    assert made.services["github"].data["credential"] == "keyring:git/me"
    assert made.services["github"].data["upstream"] == "https://github.com"
    assert (made.tokens, made.usd) == (100, 5.0)
    assert made.seed != broker_of(agent, settings).seed
    assert broker_of(Agent("b", ("b",)), settings) == BrokerRecord()
