"""Connections that are read along, through the kernel's TCP: the wrong name gets nowhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.vm import egress_guest as guest
from tests.vm.egress_tap import ALLOW, WAIT_S, Judge, echo, resolve_here, site
from tests.vm.test_egress_sniff import GET, HELLO
from vm.egress.dial import DirectDialer
from vm.egress.kinds import Dialled, Limits, Request, Verdict

if TYPE_CHECKING:
    import asyncio

    from vm.egress.kinds import Inspect


class Ported:
    """Reaches every port of a host at one of this machine."""

    def __init__(self) -> None:
        self.port = 0
        self.dialled = 0

    async def dial(self, request: Request, verdict: Verdict) -> Dialled:
        self.dialled += 1
        direct = DirectDialer(Judge(), resolve_here)
        return await direct.dial(replace(request, port=self.port), verdict)


async def talk(
    port: int, inspect: Inspect, said: bytes, limits: Limits | None = None
) -> tuple[str, str, int]:
    """Say something to `a.example`: what came back, how it ended, bytes that reached the host."""
    dialer = Ported()
    async with site(limits, dialer) as here:
        dialer.port = await here.serve(echo)
        here.judge.verdicts["a.example"] = replace(ALLOW, inspect=inspect, hidden=False)
        address = here.address("a.example")
        words = said.decode("latin-1")
        got, _ = await here.guest(guest.try_connect, address, port, words)
        entry = await here.entry(lambda line: line.kind == "close")
        assert entry.host == "a.example"
        return got, entry.code, entry.up


async def test_tls_that_names_the_host_passes_unchanged() -> None:
    hello = HELLO.replace(b"api.example", b"www.example")
    dialer = Ported()
    async with site(dialer=dialer) as here:
        dialer.port = await here.serve(echo)
        here.judge.verdicts["www.example"] = replace(ALLOW, inspect="tls")
        address = here.address("www.example")
        got, _ = await here.guest(guest.try_connect, address, 443, hello.decode("latin-1"))
        assert got.encode("latin-1") == hello


@pytest.mark.parametrize("said", [HELLO, HELLO[:9] + HELLO[9:].replace(b"api", b"API")])
async def test_tls_that_names_another_host_gets_an_alert_and_reaches_nobody(said: bytes) -> None:
    got, code, up = await talk(443, "tls", said)
    assert got.encode("latin-1") == b"\x15\x03\x03\x00\x02\x02\x31"
    assert (code, up) == ("sni-mismatch", 0)


async def test_what_is_no_tls_is_reset_on_its_port() -> None:
    assert await talk(443, "tls", b"SSH-2.0-x\r\n") == ("ConnectionResetError", "not-tls", 0)


async def test_a_guest_that_says_nothing_on_a_port_for_tls_is_reset() -> None:
    got, code, up = await talk(443, "tls", b"", Limits(hello_s=0.3))
    assert (got, code, up) == ("ConnectionResetError", "no-hello", 0)


async def test_a_server_that_speaks_first_never_waits_for_a_hello() -> None:
    async def banner(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-server\r\n")
        await writer.drain()

    async with site() as here:
        port = await here.serve(banner)
        got, seconds = await here.guest(guest.try_connect, here.address("a.example"), port)
        assert got == "SSH-2.0-server\r\n"
        assert seconds < WAIT_S


async def test_plain_http_that_names_the_host_passes_unchanged() -> None:
    got, _, up = await talk(80, "http", GET)
    assert (got.encode(), up) == (GET, len(GET))


async def test_plain_http_for_another_host_is_refused_in_words() -> None:
    got, code, up = await talk(80, "http", GET.replace(b"a.example", b"b.example"))
    assert got.startswith("HTTP/1.1 403 ")
    assert '"code":"host-mismatch"' in got
    assert (code, up) == ("host-mismatch", 0)


async def test_a_later_request_for_another_host_ends_the_connection() -> None:
    other = GET.replace(b"a.example", b"b.example")
    _, code, up = await talk(80, "http", GET + other)
    # the parser sees both before anything is passed on
    assert (code, up) == ("host-mismatch", 0)


async def test_what_is_no_http_is_reset_on_its_port() -> None:
    got, code, up = await talk(80, "http", HELLO)
    assert (got, code, up) == ("ConnectionResetError", "not-http", 0)
