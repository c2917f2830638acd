"""The broker's doors: how the gateway hands a connection over, and whom the broker may reach."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest

from tests.vm.broker_lab import Upstream, body
from tests.vm.egress_tap import ALLOW
from tests.vm.test_broker_proxy import hello
from vm.egress.broker import services
from vm.egress.broker.doors import MAX_NAME, Door, DoorDialer, ServiceJudge
from vm.egress.kinds import Dialled, DialRefused, Request, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.vm.broker_lab import Lab

WAIT_S = 60.0


class Elsewhere:
    """The dialer for all other names."""

    async def dial(self, request: Request, verdict: Verdict) -> Dialled:
        raise DialRefused("elsewhere", request.host)


@contextlib.asynccontextmanager
async def door(lab: Lab, place: Path) -> AsyncGenerator[DoorDialer]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place))
    listener.listen(8)
    task = asyncio.create_task(Door(listener, lab.broker.hosts(), lab.broker.serve).run())
    try:
        yield DoorDialer(place, Elsewhere())
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        listener.close()


async def test_a_connection_is_handed_over_and_served(tmp_path: Path) -> None:
    async with Upstream(tmp_path, hello) as upstream:
        lab = upstream.lab()
        async with door(lab, tmp_path / "door") as dialer:
            made = await dialer.dial(Request("lab.cloche.internal", 80), ALLOW)
            assert made.address == "broker"
            reader, writer = await asyncio.open_connection(sock=made.socket)
            writer.write(lab.head("GET /v1/a", "Connection: close"))
            async with asyncio.timeout(WAIT_S):
                assert body(await reader.read()) == b"hello"
            writer.close()
    assert len(upstream.heads) == 1


@pytest.mark.parametrize(
    ("host", "port", "code"),
    [
        ("other.cloche.internal", 80, "broker-without"),
        ("lab.cloche.internal", 443, "internal-name"),
        ("api.example.org", 443, "elsewhere"),
        ("lab.cloche.internal.example.org", 80, "elsewhere"),
    ],
)
async def test_only_services_are_handed_over(
    tmp_path: Path, host: str, port: int, code: str
) -> None:
    async with Upstream(tmp_path, hello) as up, door(up.lab(), tmp_path / "door") as dialer:
        with pytest.raises(DialRefused) as refused:
            await dialer.dial(Request(host, port), ALLOW)
    assert refused.value.code == code


async def test_a_broker_that_is_away_is_told_of(tmp_path: Path) -> None:
    for place in (tmp_path / "none", None):
        with pytest.raises(DialRefused) as refused:
            await DoorDialer(place, Elsewhere()).dial(Request("lab.cloche.internal", 80), ALLOW)
        assert refused.value.code == ("broker-away" if place else "internal-name")


@pytest.mark.parametrize(
    "greeting", [b"\n", b"a" * (MAX_NAME + 9), b"\xff\n", b"LAB.cloche.internal\n"]
)
async def test_a_greeting_that_names_no_service_gets_no_further(
    tmp_path: Path, greeting: bytes
) -> None:
    async with Upstream(tmp_path, hello) as upstream:
        lab = upstream.lab()
        async with door(lab, tmp_path / "door"):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "door"))
            writer.write(greeting)
            async with asyncio.timeout(WAIT_S):
                with contextlib.suppress(ConnectionError):  # it may hang up on what it did not read
                    assert await reader.read() == b"-"
            writer.close()
    assert upstream.heads == []
    assert lab.records == []


SETTINGS = {
    "upstream": "https://api.lab.example", "credential": "env:KEY", "add": "bearer",
    "accept": ["bearer"], "allow": ["GET /**"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("address", "private", "code"),
    [
        ("93.184.216.34", False, "allowed"),
        ("10.0.0.1", False, "private-address"),
        ("10.0.0.1", True, "allowed"),
        ("127.0.0.1", True, "loopback-address"),
        ("169.254.169.254", True, "metadata-address"),
    ],
)
def test_a_service_leads_to_no_machine_that_it_must_not(
    address: str, private: bool, code: str
) -> None:
    service = services.parse("lab", {**SETTINGS, "private": private})
    request = Request("api.lab.example", 443, (ip_address(address),))
    assert ServiceJudge([service]).check(request, ALLOW).code == code


def test_other_hosts_are_not_reached() -> None:
    judge = ServiceJudge([services.parse("lab", SETTINGS)])
    assert judge.decide(Request("api.lab.example", 443)).action == "allow"
    assert judge.decide(Request("api.lab.example", 80)).action == "deny"
    assert judge.decide(Request("b.lab.example", 443)).action == "deny"


def test_a_placeholder_is_the_sessions_and_the_same_again() -> None:
    from vm.egress.broker.secret import Secret

    service = services.parse("lab", SETTINGS)
    first, again = (services.hold(service, Secret(b"a" * 20, ""), "s" * 40) for _ in range(2))
    other = services.hold(service, Secret(b"a" * 20, ""), "t" * 40)
    drawn = services.hold(service, Secret(b"a" * 20, ""))
    assert first.placeholder == again.placeholder
    assert len({first.placeholder, other.placeholder, drawn.placeholder}) == 3
