"""How the host reaches a name: what is resolved is checked as a whole, and then connected to."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest

from tests.vm.egress_tap import ALLOW, Judge, full_host
from vm.egress import addresses
from vm.egress.dial import MAX_ADDRESSES, DirectDialer, SystemResolver, in_hosts
from vm.egress.kinds import Dialled, DialRefused, Request, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from vm.egress.dial import Address


class Resolver:
    """Answers each call with the next of its answers."""

    def __init__(self, *answers: Sequence[str] | Exception) -> None:
        self.asked: list[str] = []
        self._answers = list(answers)

    async def __call__(self, name: str) -> Sequence[Address]:
        self.asked.append(name)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return [ip_address(text) for text in answer]


def strict(request: Request, verdict: Verdict) -> Verdict:
    """What the policy does: one forbidden address denies the name."""
    found = addresses.check_all(request.addresses, private=False, own=addresses.Own())
    return verdict if found is None else replace(verdict, action="deny", code=found.code)


@contextlib.asynccontextmanager
async def server() -> AsyncGenerator[int]:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    made = await asyncio.start_server(close, "127.0.0.1", 0)
    try:
        yield int(made.sockets[0].getsockname()[1])
    finally:
        made.close()


async def dial(resolver: Resolver, port: int, judge: Judge | None = None) -> Dialled:
    return await DirectDialer(judge or Judge(), resolver).dial(Request("a.example", port), ALLOW)


async def refusal(resolver: Resolver, port: int = 9, judge: Judge | None = None) -> str:
    with pytest.raises(DialRefused) as refused:
        await dial(resolver, port, judge)
    assert refused.value.reason
    return refused.value.code


async def test_a_name_is_looked_up_once_and_its_address_connected_to() -> None:
    resolver = Resolver(["127.0.0.1"])
    async with server() as port:
        made = await dial(resolver, port)
        assert made.address == "127.0.0.1"
        assert made.socket.getpeername() == ("127.0.0.1", port)
        assert not made.socket.getblocking()
        made.socket.close()
    assert resolver.asked == ["a.example"]


async def test_an_address_that_does_not_answer_gives_way_to_the_next() -> None:
    async with server() as port:
        made = await dial(Resolver(["127.0.0.2", "127.0.0.1"]), port)
        assert made.address == "127.0.0.1"
        made.socket.close()


@pytest.mark.parametrize(
    "found",
    [
        ["127.0.0.1"],
        ["169.254.169.254"],
        ["64:ff9b::a9fe:a9fe"],
        ["::ffff:10.0.0.1"],
        ["2002:7f00:1::"],
        ["203.0.113.7", "10.0.0.1"],
        ["::1"],
    ],
)
async def test_one_forbidden_address_refuses_the_name(found: list[str]) -> None:
    code = await refusal(Resolver(found), judge=Judge(checked=strict))
    assert code not in ("allowed", "refused", "")


async def test_what_the_resolver_says_is_told_in_stable_words() -> None:
    again = socket.gaierror(socket.EAI_AGAIN, "later")
    unknown = socket.gaierror(socket.EAI_NONAME, "unknown")
    assert await refusal(Resolver(again)) == "no-resolver"
    assert await refusal(Resolver(TimeoutError())) == "no-resolver"
    assert await refusal(Resolver(unknown)) == "no-address"
    assert await refusal(Resolver([])) == "no-address"
    many = [f"192.0.2.{n}" for n in range(MAX_ADDRESSES + 1)]
    assert await refusal(Resolver(many)) == "no-address"


async def test_what_the_network_says_is_told_in_stable_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert await refusal(Resolver(["127.0.0.1"]), taken.getsockname()[1]) == "refused"


async def test_a_literal_address_is_not_looked_up_but_checked() -> None:
    resolver = Resolver()
    dialer = DirectDialer(Judge(checked=strict), resolver)
    with pytest.raises(DialRefused):
        await dialer.dial(Request("127.0.0.1", 80), ALLOW)
    assert resolver.asked == []


async def test_an_attempt_that_is_cancelled_leaves_no_socket() -> None:
    with full_host() as port:
        waiting = asyncio.create_task(dial(Resolver(["127.0.0.1"]), port))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_the_hosts_own_resolver_reads_the_file_of_names_first(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.5 Mirror.corp.example mirror # ours\n::9 mirror.corp.example\nbad\n")
    resolver = SystemResolver(hosts)
    try:
        found = await resolver("mirror.corp.example")
        assert found == [ip_address("192.0.2.5"), ip_address("::9")]
    finally:
        resolver.close()


def test_a_file_of_names_that_is_damaged_gives_what_it_holds() -> None:
    text = "nonsense a.example\n\n#192.0.2.1 a.example\n192.0.2.2\ta.example b.example#c.example\n"
    assert in_hosts(text, "a.example") == [ip_address("192.0.2.2")]
    assert in_hosts(text, "c.example") == []
