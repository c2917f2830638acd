"""What a guest that tries IPv6 is told, and what of it is no attempt at all."""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.egress import frames, ipv6
from vm.egress.frames import BadFrame
from vm.egress.kinds import GATEWAY, GUEST

OWN = IPv6Address("fd00:c10c:e::2").packed
THERE = IPv6Address("2001:db8::1").packed
ANY = bytes(16)


def packet(protocol: int, body: bytes, source: bytes = OWN, target: bytes = THERE) -> bytes:
    """Return an IPv6 packet."""
    return struct.pack("!IHBB", 6 << 28, len(body), protocol, 64) + source + target + body


def parsed(raw: bytes) -> ipv6.Packet:
    return ipv6.parse(memoryview(raw))


def solicitation(asked: bytes = ipv6.GATEWAY_IP) -> bytes:
    return struct.pack("!BBHI", ipv6.SOLICITATION, 0, 0, 0) + asked + b"\1\1" + GUEST.mac


def message(frame: bytes | None, to: bytes = OWN) -> bytes:
    """Return the ICMPv6 message of a frame, whose every field and checksum must be right."""
    assert frame is not None
    assert frame[:14] == GUEST.mac + GATEWAY.mac + b"\x86\xdd"
    version, length, protocol, hops = struct.unpack("!IHBB", frame[14:22])
    assert (version >> 28, length, protocol, hops) == (6, len(frame) - 54, 58, 255)
    assert frame[22:54] == ipv6.GATEWAY_IP + to
    pseudo = frame[22:54] + struct.pack("!IxxxB", length, 58)
    assert frames.words(pseudo + frame[54:]) == 0  # ones' complement: a right sum is all ones
    return frame[54:]


def test_the_gateway_says_where_it_is_and_nobody_else() -> None:
    said = message(ipv6.neighbour(parsed(packet(58, solicitation()))))
    assert said[:4] == bytes((136, 0)) + said[2:4]
    assert said[4:] == b"\x60\0\0\0" + ipv6.GATEWAY_IP + b"\2\1" + GATEWAY.mac
    for other in (
        packet(58, solicitation(THERE)),
        packet(58, solicitation(), source=ANY),  # the kernel looks for a double of its address
        packet(58, solicitation()[:23]),
        packet(17, solicitation()),
    ):
        assert ipv6.neighbour(parsed(other)) is None


@pytest.mark.parametrize("protocol", [socket.IPPROTO_TCP, socket.IPPROTO_UDP, 58, 44])
def test_each_packet_is_refused_with_its_own_beginning(protocol: int) -> None:
    raw = packet(protocol, struct.pack("!HH", 0x8000, 443) + bytes(200))
    said = message(ipv6.refusal(parsed(raw)))
    assert said[:2] == b"\1\1"
    assert said[4:8] == bytes(4)
    assert said[8:] == raw[: 40 + ipv6.QUOTED]
    port = 443 if protocol in (6, 17) else None
    assert ipv6.port_of(parsed(raw)) == port


def test_nothing_is_said_to_groups_about_errors_or_to_nobody() -> None:
    for raw in (
        packet(17, bytes(8), target=b"\xff\2" + bytes(14)),
        packet(17, bytes(8), source=ANY),
        packet(17, bytes(8), source=b"\xff\2" + bytes(14)),
        packet(58, b"\1\1" + bytes(40)),
        packet(58, b""),
    ):
        assert ipv6.refusal(parsed(raw)) is None


def test_what_a_kernel_says_by_itself_is_no_attempt() -> None:
    group = b"\xff\2" + bytes(13) + b"\x16"
    report = packet(0, bytes((58, 0, 5, 2, 0, 0, 1, 0, 143)) + bytes(27), ANY, group)
    assert ipv6.is_housekeeping(parsed(report))
    assert ipv6.is_housekeeping(parsed(packet(58, bytes((133,)) + bytes(7), ANY, group)))
    for attempt in (
        packet(0, bytes((6, 0)) + bytes(30)),
        packet(0, bytes((58, 0)) + bytes(30)),  # to one machine, behind the same header
        packet(58, bytes((128,)) + bytes(7)),
        packet(58, b""),
        packet(6, bytes(20)),
    ):
        assert not ipv6.is_housekeeping(parsed(attempt))


@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_are_a_packet_or_a_bad_frame(raw: bytes, mended: bool) -> None:
    raw = (
        (b"\x60" + raw[1:4] + bytes((0, max(0, min(len(raw) - 40, 255)))) + raw[6:])
        if (mended and len(raw) > 6)
        else raw
    )
    try:
        found = parsed(raw)
    except BadFrame:
        return
    assert len(found.payload) <= len(raw) - 40
    for answer in (ipv6.neighbour(found), ipv6.refusal(found)):
        if answer is not None:
            message(answer, found.source)
    ipv6.port_of(found)
