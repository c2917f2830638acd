"""The gateway against the Linux kernel's own TCP, through a tap in a network namespace."""

from __future__ import annotations

import asyncio
import hashlib
import random
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from tests.vm import egress_guest as guest
from tests.vm.egress_tap import DENY, WAIT_S, echo, site, source, swallow, until, verdict
from vm.egress import frames
from vm.egress.kinds import GATEWAY, GUEST, Limits, Station
from vm.egress.table import NameTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.egress.kinds import Entry

MEGABYTE = 1_000_000
BLOCK = guest.pattern(7, 1 << 20)


def hashed(total: int) -> str:
    digest = hashlib.blake2b()
    for start in range(0, total, len(BLOCK)):
        digest.update(BLOCK[: min(len(BLOCK), total - start)])
    return digest.hexdigest()


async def test_a_large_download_arrives_whole() -> None:
    async with site() as here:
        port = await here.serve(source(BLOCK, 100 * MEGABYTE))
        count, digest, _ = await here.guest(guest.download, here.address("a.example"), port)
        assert (count, digest) == (100 * MEGABYTE, hashed(100 * MEGABYTE))
        entry = await here.entry(lambda line: line.kind == "close")
        assert (entry.code, entry.down, entry.up) == ("closed", 100 * MEGABYTE, 0)
        assert entry.host == "a.example"


async def test_a_large_upload_arrives_whole() -> None:
    async with site() as here:
        port = await here.serve(swallow)
        total = 60 * MEGABYTE
        got, sent, _ = await here.guest(guest.upload, here.address("a.example"), port, total)
        assert got == sent
        entry = await here.entry(lambda line: line.kind == "close")
        assert (entry.up, entry.down) == (total, len(sent))


async def test_200_connections_at_once_in_pieces_of_random_sizes() -> None:
    async with site() as here:
        port = await here.serve(echo)
        address = here.address("a.example")
        assert await here.guest(guest.at_once, 200, address, port, 150_000) == [200, 0]
        assert here.gateway.counts["tcp-checksum"] == here.gateway.counts["link-full"] == 0


async def test_data_flows_both_ways_at_the_same_time() -> None:
    async with site() as here:
        port = await here.serve(echo)
        address = here.address("a.example")
        assert await here.guest(guest.echo_randomly, address, port, 3, 20 * MEGABYTE)


async def test_the_guest_may_go_on_sending_after_the_host_has_ended() -> None:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"no more from me")
        writer.write_eof()
        heard.set_result(await reader.read())

    async with site() as here:
        port = await here.serve(handler)
        said = await here.guest(guest.half_close, here.address("a.example"), port)
        assert said == "no more from me"
        assert await asyncio.wait_for(heard, WAIT_S) == b"still here"
        await here.entry(lambda line: line.kind == "close" and line.code == "closed")


async def test_the_host_may_go_on_sending_after_the_guest_has_ended() -> None:
    async with site() as here:
        port = await here.serve(swallow)
        got, sent, _ = await here.guest(guest.upload, here.address("a.example"), port, 10)
        assert got == sent


async def test_a_reset_of_the_guest_reaches_the_host() -> None:
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(1))
        try:
            ended.set_result(repr(await reader.read(1)))
        except ConnectionResetError:
            ended.set_result("reset")

    async with site() as here:
        port = await here.serve(handler)
        await here.guest(guest.reset, here.address("a.example"), port)
        assert await asyncio.wait_for(ended, WAIT_S) == "reset"
        assert (await here.entry(lambda line: line.kind == "close")).code == "reset-by-guest"


async def test_a_reset_of_the_host_reaches_the_guest() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with site() as here:
        port = await here.serve(handler)
        happened, _ = await here.guest(guest.try_connect, here.address("a.example"), port, "?")
        assert happened == "ConnectionResetError"
        assert (await here.entry(lambda line: line.kind == "close")).code == "reset-by-host"


async def test_a_host_that_refuses_is_a_refusal_in_the_guest() -> None:
    async with site() as here:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            happened, _ = await here.guest(guest.try_connect, here.address("a.example"), port)
        assert happened == "ConnectionRefusedError"
        assert (await here.entry(lambda line: line.kind == "open")).code == "refused"


async def test_a_slow_guest_slows_the_host_and_loses_nothing() -> None:
    async with site() as here:
        port = await here.serve(source(BLOCK, 8 * MEGABYTE))
        address = here.address("a.example")
        got = await here.guest(guest.slow_reader, address, port, "", 0.02, 40)
        assert got == [8 * MEGABYTE, hashed(8 * MEGABYTE)]


async def test_a_host_that_never_reads_closes_the_guests_window() -> None:
    stay = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport has it
        await stay.wait()

    async with site() as here:
        port = await here.serve(handler)
        sent = await here.guest(guest.stuff, here.address("a.example"), port, 1.0)
        # the socket buffers of two kernels and one window of ours; not the 256 MiB that it has
        assert 1 << 20 < sent < 1 << 26
        stay.set()


async def test_what_the_guest_drops_is_sent_again() -> None:
    dice = random.Random(5)
    async with site(Limits(rto_s=0.1)) as here:
        port = await here.serve(source(BLOCK, 6 * MEGABYTE))
        address = here.address("a.example")
        here.link.lose = lambda header: dice.random() < 0.05
        count, digest, _ = await here.guest(guest.download, address, port)
        here.link.lose = lambda header: False
        assert (count, digest) == (6 * MEGABYTE, hashed(6 * MEGABYTE))


async def test_one_connection_after_the_other_leaves_nothing_behind() -> None:
    async with site(Limits(time_wait_s=0.05)) as here:
        port = await here.serve(echo)
        right, _ = await here.guest(guest.one_by_one, 500, here.address("a.example"), port)
        assert right == 500
        await until(lambda: not here.gateway.open)


async def test_10_000_connections_at_once_are_bounded_and_the_link_survives() -> None:
    limits = Limits(flows=300, half_open=200)
    async with site(limits) as here:
        port = await here.serve(echo)
        address = here.address("a.example")
        found = await here.guest(guest.open_many, 10_000, address, port, 2.0)
        assert found["open"] >= 200
        assert found["open"] + found["refused"] + found["pending"] == 10_000
        assert found["other"] == 0
        assert here.gateway.open <= 300
        await until(lambda: not here.gateway.open)
        assert (await here.guest(guest.try_connect, address, port, "?"))[0] == "?"


async def test_a_flood_of_syns_that_are_never_completed_ends_by_itself() -> None:
    limits = Limits(half_open=50, handshake_s=0.5)
    async with site(limits) as here:
        port = await here.serve(echo)
        address = here.address("a.example")
        frames = [syn(address, port, source_port) for source_port in range(2000, 2500)]
        here.link.lose = lambda header: True  # or the kernel would answer each with a reset
        await here.guest(guest.raw_frames, frames)
        await until(lambda: here.gateway.counts["half-open"] >= 400)
        assert here.gateway.open <= 50
        await until(lambda: not here.gateway.open)
        here.link.lose = lambda header: False
        happened, _ = await here.guest(guest.try_connect, address, port, "?")
        assert happened == "?"


def syn(address: str, port: int, source_port: int) -> str:
    """A SYN of the guest as a frame."""
    other = Station(GATEWAY.mac, socket.inet_aton(address))
    wire = frames.Wire(GUEST, other)
    segment = frames.Segment(source_port, port, 1, 0, frames.SYN, 64_240, memoryview(b""), 1460, 7)
    return b"".join(wire.tcp(GUEST.ip, segment)).hex()


async def test_a_denied_connection_is_refused_at_once() -> None:
    async with site() as here:
        here.judge.verdicts["a.example"] = DENY
        happened, seconds = await here.guest(guest.try_connect, here.address("a.example"), 4711)
        assert happened == "ConnectionRefusedError"
        assert seconds < WAIT_S
        entry = await here.entry(lambda line: line.kind == "open")
        assert (entry.verdict, entry.code, entry.host) == ("deny", "denied", "a.example")


async def test_plain_http_is_refused_in_words() -> None:
    async with site() as here:
        here.judge.verdicts["a.example"] = DENY
        said = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n"
        happened, _ = await here.guest(guest.try_connect, here.address("a.example"), 80, said)
        assert happened.startswith("HTTP/1.1 403 ")
        assert '"retry":false' in happened
        assert '"code":"denied"' in happened


async def test_a_held_connection_goes_on_with_the_answer() -> None:
    async with site() as here:
        port = await here.serve(echo)
        here.judge.verdicts["a.example"] = verdict(action="ask")
        call = asyncio.create_task(
            here.guest(guest.try_connect, here.address("a.example"), port, "hello")
        )
        _, request, answer = await asyncio.wait_for(here.judge.asked.get(), WAIT_S)
        assert (request.host, request.port) == ("a.example", port)
        assert not call.done()
        answer.set_result(verdict())
        assert (await call)[0] == "hello"


async def test_a_question_that_nobody_answers_ends_in_a_refusal() -> None:
    async with site(Limits(ask_s=0.3)) as here:
        here.judge.verdicts["a.example"] = verdict(action="ask")
        happened, _ = await here.guest(guest.try_connect, here.address("a.example"), 4711)
        assert happened == "ConnectionRefusedError"
        assert (await here.entry(lambda line: line.kind == "open")).code == "unanswered"


async def test_a_program_that_gives_up_takes_its_question_with_it() -> None:
    async with site() as here:
        here.judge.verdicts["a.example"] = verdict(action="ask")
        address = here.address("a.example")
        call = asyncio.create_task(here.guest(guest.try_connect, address, 4711, "", 0.5))
        _, _, answer = await asyncio.wait_for(here.judge.asked.get(), WAIT_S)
        assert (await call)[0] == "TimeoutError"
        entry = await here.entry(lambda line: line.code == "gave-up")
        assert entry.verdict == "ask"
        assert answer.cancelled()


REFUSED = (
    ("203.0.113.9", 443, "denied"),
    ("198.18.77.1", 443, "unknown-name"),
    ("198.19.255.1", 22, "gateway-port"),
)


@pytest.mark.parametrize(("address", "port", "code"), REFUSED)
async def test_what_has_no_name_is_refused_with_its_own_reason(
    address: str, port: int, code: str
) -> None:
    async with site() as here:
        here.judge.verdicts["203.0.113.9"] = DENY
        happened, _ = await here.guest(guest.try_connect, address, port)
        assert happened == "ConnectionRefusedError"
        entry = await here.entry(lambda line: line.code == code)
        assert (entry.verdict, entry.port) == ("deny", port)


def coded(code: str) -> Callable[[Entry], bool]:
    return lambda line: line.code == code


async def test_datagrams_to_others_are_refused_at_once_with_their_reasons() -> None:
    async with site() as here:
        for port, code in ((53, "foreign-dns"), (443, "quic"), (853, "dot"), (123, "udp")):
            happened, _ = await here.guest(guest.udp, "8.8.8.8", port, "00")
            assert happened == "ConnectionRefusedError"
            assert (await here.entry(coded(code))).port == port


async def test_ipv6_is_refused_at_once_with_its_target_in_the_log() -> None:
    async with site() as here:
        if not await here.guest(guest.add_ipv6):
            pytest.skip("this kernel has no IPv6")
        happened, _ = await here.guest(guest.try_connect, "2001:db8::1", 80)
        assert happened == "PermissionError"
        entry = await here.entry(coded("ipv6"))
        assert (entry.kind, entry.host, entry.port) == ("drop", "2001:db8::1", 80)


async def test_a_guest_that_is_somebody_else_is_not_heard() -> None:
    async with site() as here:
        port = await here.serve(echo)
        address = here.address("a.example")
        await here.guest(guest.set_mac, "02c10c4e0099")
        happened, _ = await here.guest(guest.try_connect, address, port, "?", 1.0)
        assert happened in ("TimeoutError", "OSError")
        await here.entry(lambda line: line.code == "spoofed-mac")


async def test_a_card_that_was_reset_gets_on_the_net_again() -> None:
    async with site() as here:
        port = await here.serve(echo)
        address = here.address("a.example")
        assert (await here.guest(guest.try_connect, address, port, "?"))[0] == "?"
        await here.guest(guest.reset_card)
        assert (await here.guest(guest.try_connect, address, port, "?"))[0] == "?"


async def test_connections_of_an_earlier_link_are_reset() -> None:
    heard = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1):
            heard.set()
            writer.write(data)

    async with site() as here:
        port = await here.serve(handler)
        address = here.address("a.example")
        call = asyncio.create_task(here.guest(guest.hold_open, address, port))
        await asyncio.wait_for(heard.wait(), WAIT_S)
        here.link.lose = lambda header: True  # the reset of the old link's end gets lost with it
        here.gateway.attach(here.link)
        here.link.lose = lambda header: False
        assert await call == "ConnectionResetError"
        entry: Entry = await here.entry(lambda line: line.kind == "close")
        assert entry.code == "link-ended"


async def test_names_come_from_the_gateway_by_udp_and_tcp() -> None:
    async with site() as here:
        port = await here.serve(echo)
        here.judge.verdicts["evil.example"] = DENY
        first = await here.guest(guest.look_up, "Shop.Example", False)
        assert first == ["NOERROR", ["198.18.0.1"]]
        assert await here.guest(guest.look_up, "shop.example", True) == first
        assert await here.guest(guest.look_up, "evil.example", False) == ["NXDOMAIN", []]
        assert here.table.rows() == [("shop.example", "198.18.0.1")]
        assert (await here.guest(guest.try_connect, "198.18.0.1", port, "?"))[0] == "?"
        assert NameTable(here.table.rows()).rows() == here.table.rows()
