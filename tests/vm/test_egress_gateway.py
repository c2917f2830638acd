"""The gateway without a kernel at its other end: hostile frames, its bounds, its log, its wire."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dns.message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.vm.egress_tap import ALLOW, Judge
from vm.egress import frames
from vm.egress.entries import BURST, MAX_KEYS, Merging
from vm.egress.frames import ACK, FIN, RST, SYN, Segment, Wire
from vm.egress.gateway import Gateway
from vm.egress.kinds import GATEWAY, GUEST, Dialled, DialRefused, Entry, Limits, Request, Station
from vm.egress.table import NameTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.egress.kinds import Verdict

HOST = bytes((198, 18, 0, 1))
TO_GATEWAY = Wire(GUEST, GATEWAY)
TO_HOST = Wire(GUEST, Station(GATEWAY.mac, HOST))


class Outlet:
    """Keeps what is sent to the guest."""

    def __init__(self) -> None:
        self.congested = False
        self.frames: list[bytes] = []
        self.paces: list[bool] = []

    def send(self, *parts: bytes | memoryview) -> bool:
        self.frames.append(b"".join(parts))
        return True

    def flush(self) -> None:
        pass

    def keep_pace(self, kept: bool) -> None:
        self.paces.append(kept)


class NoHost:
    """A dialer that knows nobody, or a socket pair whose other end it keeps."""

    def __init__(self, connects: bool) -> None:
        self.ends: list[socket.socket] = []
        self._connects = connects

    async def dial(self, request: Request, verdict: Verdict) -> Dialled:
        if not self._connects:
            raise DialRefused("refused", "Nobody is there.")
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self.ends.append(theirs)
        return Dialled(ours, "192.0.2.1")

    def close(self) -> None:
        for end in self.ends:
            end.close()


class Bench:
    """A gateway, what it sent and what it wrote down."""

    def __init__(self, connects: bool = True, limits: Limits | None = None) -> None:
        self.outlet = Outlet()
        self.log: list[Entry] = []
        self.judge = Judge()
        self.dialer = NoHost(connects)
        self.table = NameTable([("a.example", "198.18.0.1")])
        self.gateway = Gateway(self.judge, self.dialer, self._note, self.table, limits)
        self.gateway.attach(self.outlet)

    def _note(self, entry: Entry) -> None:
        self.log.append(entry)

    def take(self, *batch: bytes) -> list[bytes]:
        self.outlet.frames.clear()
        self.gateway.take([memoryview(frame) for frame in batch])
        return list(self.outlet.frames)

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    def close(self) -> None:
        self.gateway.detach()
        self.dialer.close()


def tcp_frame(
    data: bytes = b"", port: int = 4000, flags: int = SYN, seq: int = 1, ack: int = 0
) -> bytes:
    segment = Segment(port, 443, seq, ack, flags, 64_240, memoryview(data), 1460, 7)
    return b"".join(TO_HOST.tcp(GUEST.ip, segment))


def question(name: str = "b.example") -> bytes:
    return TO_GATEWAY.udp(GUEST.ip, 5000, 53, dns.message.make_query(name, "A").to_wire())


def arp_for(ip: bytes, mac: bytes = GUEST.mac, own: bytes = GUEST.ip) -> bytes:
    head = frames.BROADCAST + mac + b"\x08\x06" + b"\0\1\x08\0\6\4\0\1"
    return head + mac + own + bytes(6) + ip


SEEDS = (tcp_frame(), question(), arp_for(GATEWAY.ip), tcp_frame(b"x" * 50, flags=ACK, seq=2))


def mended(frame: bytearray) -> bytes:
    """Make the checksums right again, so that a changed frame gets further in."""
    if len(frame) >= 54 and bytes(frame[12:14]) == b"\x08\0":
        frame[24:26] = b"\0\0"
        frame[24:26] = (~frames.words(bytes(frame[14:34])) & 0xFFFF).to_bytes(2, "big")
        place = 50 if frame[23] == frames.TCP else 40
        frame[place : place + 2] = b"\0\0"
        total = int.from_bytes(frame[16:18], "big")
        body = bytes(frame[34 : 14 + total])
        pseudo = bytes(frame[26:34]) + bytes((0, frame[23])) + len(body).to_bytes(2, "big")
        checksum = ~frames.words(pseudo + body) & 0xFFFF
        frame[place : place + 2] = checksum.to_bytes(2, "big")
    return bytes(frame)


Change = tuple[int, list[tuple[int, int]], int]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    changes=st.lists(
        st.tuples(
            st.integers(0, len(SEEDS) - 1),
            st.lists(st.tuples(st.integers(0, 110), st.integers(0, 255)), max_size=4),
            st.integers(0, 120),
        ),
        max_size=12,
    )
)
def test_no_frame_breaks_the_gateway(changes: list[Change]) -> None:
    async def run() -> None:
        bench = Bench(limits=Limits(flows=4))
        batch: list[bytes] = []
        for seed, places, cut in changes:
            frame = bytearray(SEEDS[seed])
            for place, value in places:
                frame[min(place, len(frame) - 1)] = value
            batch.append(mended(frame)[: len(frame) if cut > 100 else cut])
        bench.take(*batch)
        await bench.settle()
        bench.take(*batch)
        assert bench.gateway.open <= 4
        bench.close()

    asyncio.run(run())


async def test_arp_is_answered_for_the_gateway_alone() -> None:
    bench = Bench()
    (answer,) = bench.take(arp_for(GATEWAY.ip))
    assert answer[:14] == GUEST.mac + GATEWAY.mac + b"\x08\x06"
    assert answer[20:32] == b"\0\2" + GATEWAY.mac + GATEWAY.ip
    assert bench.take(arp_for(GUEST.ip), arp_for(HOST)) == []
    assert bench.take(arp_for(GATEWAY.ip, own=GATEWAY.ip), arp_for(GATEWAY.ip, own=HOST)) == []
    assert bench.gateway.counts == Counter({"arp": 2, "spoofed-gateway": 1, "spoofed-address": 1})


async def test_who_is_not_the_guest_is_dropped_and_told_once_in_a_while() -> None:
    bench = Bench()
    other = Wire(Station(bytes(6), GUEST.ip), GATEWAY)
    foreign = other.udp(GUEST.ip, 1, 53, b"x")
    spoofed = TO_GATEWAY.udp(HOST, 1, 53, b"x")
    assert bench.take(*[foreign] * 100, *[spoofed] * 100) == []
    assert bench.gateway.counts == Counter({"spoofed-mac": 100, "spoofed-address": 100})
    assert len(bench.log) == 2 * BURST
    bench.close()
    assert sum(entry.count for entry in bench.log) == 200


async def test_ipv6_and_icmp_go_nowhere_and_say_why() -> None:
    bench = Bench()
    ipv6 = frames.BROADCAST + GUEST.mac + b"\x86\xdd" + b"\x60" + bytes(39)
    ping = bytearray(TO_HOST.udp(GUEST.ip, 8, 0, b"ping" * 5))
    ping[23] = 1
    assert bench.take(ipv6, mended(ping)) == []  # from no address: nobody could be told
    assert bench.gateway.counts == Counter({"ipv6": 1, "icmp": 1})
    assert [(entry.kind, entry.verdict, entry.code) for entry in bench.log] == [
        ("drop", "deny", "ipv6"),
        ("drop", "deny", "icmp"),
    ]
    assert bench.log[1].host == "198.18.0.1"
    assert len({entry.reason for entry in bench.log}) == 2
    bench.close()


async def test_a_segment_of_no_connection_is_reset() -> None:
    bench = Bench()
    (reset,) = bench.take(tcp_frame(b"hello", flags=ACK, ack=77))
    segment = frames.tcp(frames.ipv4(frames.ethernet(memoryview(reset)).payload))
    assert (segment.flags, segment.seq) == (RST, 77)
    (reset,) = bench.take(tcp_frame(b"hello", flags=FIN, seq=10))
    segment = frames.tcp(frames.ipv4(frames.ethernet(memoryview(reset)).payload))
    assert (segment.flags, segment.ack) == (RST | ACK, 16)
    assert bench.take(tcp_frame(flags=RST)) == []


async def test_connections_beyond_the_bound_are_refused_with_a_reason() -> None:
    bench = Bench(limits=Limits(flows=2))
    bench.take(tcp_frame(port=1), tcp_frame(port=2))
    (reset,) = bench.take(tcp_frame(port=3))
    assert reset[47] == RST | ACK
    assert bench.log[-1].code == "too-many-connections"
    bench.close()


async def test_connections_that_are_just_being_made_are_bounded_and_the_next_is_told() -> None:
    bench = Bench(limits=Limits(half_open=2))
    assert bench.take(tcp_frame(port=1), tcp_frame(port=2), tcp_frame(port=3)) == []
    assert (bench.log[-1].code, bench.log[-1].host) == ("half-open", "198.18.0.1")
    assert bench.gateway.open == 2
    bench.close()


async def test_frames_that_are_not_as_they_must_be_are_told_and_merged() -> None:
    bench = Bench()
    fragment = bytearray(TO_HOST.udp(GUEST.ip, 1, 123, b"x"))
    fragment[20] |= 0x20
    bad = [b"", tcp_frame()[:20], mended(fragment), GATEWAY.mac + GUEST.mac + b"\x88\xcc" + b"lldp"]
    codes = ["short-frame", "short-ip", "fragment", "other-protocol"]
    assert bench.take(*bad) == []
    assert [(line.kind, line.verdict, line.code) for line in bench.log] == [
        ("drop", "deny", code) for code in codes
    ]
    assert bench.take(*bad * 1000) == []
    assert len(bench.log) == len(codes) * BURST
    bench.close()
    assert sum(line.count for line in bench.log) == len(codes) * 1001
    assert bench.gateway.counts == Counter(dict.fromkeys(codes, 1001))


async def test_questions_beyond_the_bound_are_refused_with_a_reason() -> None:
    bench = Bench(limits=Limits(held=2))
    bench.judge.verdicts["a.example"] = _ask()
    bench.take(tcp_frame(port=1), tcp_frame(port=2), tcp_frame(port=3))
    assert bench.log[-1].code == "too-many-questions"
    assert bench.gateway.open == 2
    bench.close()


def _ask() -> Verdict:
    return replace(ALLOW, action="ask")


async def test_a_guest_that_starts_anew_on_the_same_ports_replaces_its_question() -> None:
    bench = Bench()
    bench.judge.verdicts["a.example"] = _ask()
    bench.take(tcp_frame(seq=1))
    await bench.settle()
    bench.take(tcp_frame(seq=1))
    bench.take(tcp_frame(seq=9))
    assert [entry.code for entry in bench.log] == ["replaced"]
    assert bench.gateway.open == 1
    bench.close()


async def test_a_failing_dialer_ends_the_flow_and_says_so() -> None:
    bench = Bench()

    async def dial(request: Request, verdict: Verdict) -> Dialled:
        raise ValueError("a fault")

    bench.dialer.dial = dial  # type: ignore[method-assign]  # a dialer with a fault
    bench.take(tcp_frame())
    await bench.settle()
    assert bench.log[-1].code == "gateway-fault"
    assert bench.gateway.open == 0


async def test_a_dns_message_that_is_none_is_dropped() -> None:
    bench = Bench()
    assert bench.take(TO_GATEWAY.udp(GUEST.ip, 1, 53, b"short")) == []
    assert bench.gateway.counts["not-dns"] == 1
    (answer,) = bench.take(question())
    assert answer[34:38] == (53).to_bytes(2, "big") + (5000).to_bytes(2, "big")


async def test_refusals_of_datagrams_are_not_told_without_bound() -> None:
    bench = Bench()
    datagram = TO_HOST.udp(GUEST.ip, 1, 123, b"x")
    assert 100 <= len(bench.take(*[datagram] * 1000)) <= 200
    everybody = Wire(GUEST, Station(frames.BROADCAST, b"\xff" * 4)).udp(GUEST.ip, 68, 67, b"x")
    assert bench.take(everybody) == []
    assert bench.gateway.counts["dhcp"] == 1


# The log.


def entry(host: str, at: float = 0.0, **changes: Any) -> Entry:
    return replace(Entry(at, "drop", host, 53, "deny", code="udp"), **changes)


def test_repeated_lines_are_merged_and_none_is_lost() -> None:
    lines: list[Entry] = []
    merging = Merging(_into(lines))
    for second in range(130):
        merging(entry("a", float(second)))
    merging.flush()
    assert sum(line.count for line in lines) == 130
    assert len(lines) <= 3 * (BURST + 1)


def test_a_flood_of_targets_keeps_a_bounded_memory_and_loses_no_count() -> None:
    lines: list[Entry] = []
    merging = Merging(_into(lines))
    for number in range(MAX_KEYS * 2):
        for _ in range(BURST + 2):
            merging(entry(str(number)))
    merging.flush()
    assert sum(line.count for line in lines) == MAX_KEYS * 2 * (BURST + 2)


def test_connections_that_were_allowed_are_never_merged() -> None:
    lines: list[Entry] = []
    merging = Merging(_into(lines))
    for _ in range(100):
        merging(entry("a", kind="open", verdict="allow"))
        merging(entry("a", kind="close", verdict="allow"))
    assert len(lines) == 200
    for _ in range(100):  # what came to nothing tells no more the hundredth time
        merging(replace(entry("a", kind="open", verdict="allow"), code="no-address"))
    assert len(lines) == 200 + BURST


def _into(lines: list[Entry]) -> Callable[[Entry], None]:
    def keep(entry: Entry) -> None:
        lines.append(entry)

    return keep
