"""Guests and hosts that misbehave: each costs what is its own, and the next connection works."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING

from tests.vm import egress_guest as guest
from tests.vm.egress_tap import WAIT_S, Judge, Site, echo, full_host, site, source, until
from tests.vm.test_egress_gateway import arp_for
from vm.egress import frames
from vm.egress.dial import DirectDialer
from vm.egress.kinds import GATEWAY, GUEST, Entry, Limits, Station

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vm.egress.dial import Address

MEGABYTE = 1 << 20
BLOCK = os.urandom(MEGABYTE)
ROOT = Path(__file__).resolve().parents[2]


def coded(code: str) -> Callable[[Entry], bool]:
    return lambda entry: entry.code == code


async def works(here: Site) -> None:
    """A connection made now is served."""
    port = await here.serve(echo)
    assert (await here.guest(guest.try_connect, here.address("fine.example"), port, "?"))[0] == "?"


async def test_a_guest_that_takes_another_address_is_not_heard_until_it_takes_its_own() -> None:
    async with site(Limits(time_wait_s=0.05)) as here:
        await works(here)
        await until(lambda: not here.gateway.open)  # it could not end from the other address
        await here.guest(guest.set_address, "198.19.255.77", "255.255.255.0")
        happened, _ = await here.guest(guest.try_connect, here.address("a.example"), 80, "", 1.0)
        assert happened in ("TimeoutError", "OSError")
        await here.entry(coded("spoofed-address"))
        assert not here.gateway.open
        await here.guest(guest.set_address, str(IPv4Address(GUEST.ip)), "255.255.255.252")
        await works(here)


async def test_a_guest_that_takes_its_own_card_address_again_is_heard() -> None:
    async with site() as here:
        await here.guest(guest.set_mac, "02c10c4e0099")
        await here.guest(guest.try_connect, here.address("a.example"), 80, "", 0.5)
        await here.entry(coded("spoofed-mac"))
        await here.guest(guest.set_mac, GUEST.mac.hex())
        await here.guest(guest.reset_card)
        await works(here)


async def test_a_guest_that_says_it_is_the_gateway_takes_nothing_over() -> None:
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1"
    as_gateway = frames.Wire(Station(GATEWAY.mac, GATEWAY.ip), GUEST)
    own_card = frames.Wire(GUEST, GATEWAY)
    claims = [
        arp_for(GUEST.ip, own=GATEWAY.ip),
        arp_for(GATEWAY.ip, mac=GATEWAY.mac, own=GATEWAY.ip),
        as_gateway.udp(GATEWAY.ip, 53, 5000, query),
        own_card.udp(GATEWAY.ip, 5000, 53, query),
    ]
    async with site() as here:
        await here.guest(guest.raw_frames, [frame.hex() for frame in claims], 50)
        for code in ("spoofed-gateway", "spoofed-mac", "spoofed-address"):
            await here.entry(coded(code))
        assert len(here.table) == 0, "nothing was looked up for it"
        await works(here)


async def test_a_guest_that_never_reads_keeps_its_host_waiting_and_nobody_else() -> None:
    poured = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal poured
        for _ in range(64):
            writer.write(BLOCK)
            await writer.drain()
            poured += len(BLOCK)

    async with site() as here:
        port = await here.serve(pour)
        plain = await here.serve(source(BLOCK, 64 * MEGABYTE))
        await here.guest(guest.leave_unread, 8, here.address("unread.example"), port)
        whole = hashlib.blake2b(BLOCK * 64).hexdigest()
        count, digest, _ = await here.guest(guest.download, here.address("a.example"), plain)
        assert (count, digest) == (64 * MEGABYTE, whole)
        # of 512 MiB: each has a window of ours, and the buffers of two kernels and of its server
        assert poured < 8 * 12 * MEGABYTE
        await here.guest(guest.let_go)
        await here.entry(coded("reset-by-guest"))
        await works(here)


async def test_a_host_that_never_completes_a_connection_is_given_up() -> None:
    with full_host() as port:
        async with site(Limits(dial_s=0.5)) as here:
            happened, _ = await here.guest(guest.try_connect, here.address("a.example"), port)
            assert happened == "ConnectionRefusedError"
            assert (await here.entry(lambda line: line.kind == "open")).code == "timeout"
            await works(here)


async def test_a_host_that_accepts_and_never_says_a_word_ends_with_the_idle_limit() -> None:
    stay = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stay.wait()

    async with site(Limits(idle_s=0.5)) as here:
        port = await here.serve(silent)
        happened, _ = await here.guest(guest.try_connect, here.address("a.example"), port, "?")
        assert happened in ("ConnectionResetError", "end")
        assert (await here.entry(lambda line: line.kind == "close")).code == "idle"
        stay.set()
        await works(here)


async def test_a_slow_host_loses_nothing_and_slows_nobody() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for value in BLOCK[:300]:
            writer.write(bytes((value,)))
            await writer.drain()
            await asyncio.sleep(0.005)  # that is the test: a host that takes its time

    async with site() as here:
        slow, fast = await here.serve(drip), await here.serve(source(BLOCK, 8 * MEGABYTE))
        got = await here.guest(guest.slow_reader, here.address("slow.example"), slow, "", 0.001, 5)
        assert got == [300, hashlib.blake2b(BLOCK[:300]).hexdigest()]
        count, _, _ = await here.guest(guest.download, here.address("fast.example"), fast)
        assert count == 8 * MEGABYTE


async def test_without_a_name_server_on_the_host_a_connection_is_refused_and_says_why() -> None:
    async def nobody(name: str) -> Sequence[Address]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    async with site(dialer=DirectDialer(Judge(), nobody)) as here:
        happened, _ = await here.guest(guest.try_connect, here.address("a.example"), 4711)
        assert happened == "ConnectionRefusedError"
        entry = await here.entry(lambda line: line.kind == "open")
        assert (entry.code, entry.host) == ("no-resolver", "a.example")
        assert (entry.verdict, entry.failed) == ("allow", True)
        assert "name server" in entry.reason


LOOKUP = """
import asyncio
from vm.egress.dial import SystemResolver, resolved
from vm.egress.kinds import DialRefused
resolver = SystemResolver()
try:
    asyncio.run(resolved(resolver, "host.example"))
except DialRefused as refused:
    print(refused.code)
finally:
    resolver.close()
"""


def test_the_hosts_real_resolver_says_the_same_where_there_is_no_network() -> None:
    spaces = ["--net"] if os.geteuid() == 0 else ["--net", "--map-root-user"]
    done = subprocess.run(
        ["unshare", *spaces, sys.executable, "-c", LOOKUP],
        cwd=ROOT, capture_output=True, timeout=WAIT_S * 2, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"no-resolver\n", b"")
