"""Frames: what is built is read again, and nothing that a guest sends does more than be refused."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.egress import frames
from vm.egress.frames import BadFrame, Segment, Wire
from vm.egress.kinds import GATEWAY, GUEST

WIRE = Wire(GATEWAY, GUEST)
HOST = bytes((198, 18, 0, 1))


def parsed(frame: bytes) -> Segment:
    ether = frames.ethernet(memoryview(frame))
    assert (ether.source, ether.target) == (GATEWAY.mac, GUEST.mac)
    packet = frames.ipv4(ether.payload)
    assert (packet.source, packet.target) == (HOST, GUEST.ip)
    return frames.tcp(packet)


def segment(data: bytes, flags: int = frames.ACK) -> Segment:
    return Segment(80, 40_000, 0xFFFF_FFFF, 7, flags, 512, memoryview(data))


@given(data=st.binary(max_size=3000), flags=st.sampled_from((16, 17, 24, 4)))
def test_a_segment_is_read_as_it_was_built(data: bytes, flags: int) -> None:
    built = segment(data, flags)
    assert parsed(b"".join(WIRE.tcp(HOST, built))) == built


def test_the_largest_segment_is_read_as_it_was_built() -> None:
    built = segment(bytes(range(256)) * 253 + b"odd")
    assert parsed(b"".join(WIRE.tcp(HOST, built))) == built


def test_options_of_a_syn_are_read() -> None:
    built = Segment(1, 2, 3, 4, frames.SYN, 5, memoryview(b""), 64_960, 7)
    assert parsed(b"".join(WIRE.tcp(HOST, built))) == built
    assert parsed(b"".join(WIRE.tcp(HOST, built._replace(scale=-1)))).scale == -1


@given(data=st.binary(max_size=200), place=st.integers(34, 253), change=st.integers(1, 255))
def test_one_changed_byte_is_noticed(data: bytes, place: int, change: int) -> None:
    frame = bytearray(b"".join(WIRE.tcp(HOST, segment(data))))
    place = min(place, len(frame) - 1)
    frame[place] ^= change
    with pytest.raises(BadFrame):
        parsed(bytes(frame))


def test_a_datagram_is_read_as_it_was_built() -> None:
    frame = WIRE.udp(GATEWAY.ip, 53, 4000, b"answer!")
    packet = frames.ipv4(frames.ethernet(memoryview(frame)).payload)
    read = frames.udp(packet)
    assert (read.source_port, read.target_port, bytes(read.data)) == (53, 4000, b"answer!")


def test_an_unreachable_quotes_the_packet() -> None:
    packet = frames.ipv4(frames.ethernet(memoryview(WIRE.udp(HOST, 1, 2, b"x" * 50))).payload)
    error = frames.ipv4(frames.ethernet(memoryview(WIRE.unreachable(HOST, packet, 3))).payload)
    assert bytes(error.payload[:2]) == b"\x03\x03"
    assert bytes(error.payload[8:]) == packet.head
    assert frames.words(error.payload) == 0


def ip(payload: bytes, **changes: int) -> memoryview:
    """A packet of the guest, with parts of its header changed and the checksum right again."""
    values = {"version": 0x45, "total": 20 + len(payload), "fragment": 0, "protocol": 6, **changes}
    head = struct.pack(
        "!BBHHHBBH4s4s",
        *(values["version"], 0, values["total"], 0, values["fragment"], 64, values["protocol"], 0),
        *(GUEST.ip, HOST),
    )
    checksum = ~frames.words(head) & 0xFFFF
    return memoryview(head[:10] + checksum.to_bytes(2) + head[12:] + payload)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"version": 0x46}, "ip-options"),
        ({"version": 0x65}, "ip-version"),
        ({"total": 10}, "ip-length"),
        ({"total": 2000}, "ip-length"),
        ({"fragment": 0x2000}, "fragment"),
        ({"fragment": 5}, "fragment"),
    ],
)
def test_packets_that_are_not_as_they_must_be(changes: dict[str, int], code: str) -> None:
    with pytest.raises(BadFrame, match=code):
        frames.ipv4(ip(bytes(20), **changes))


def test_padding_after_a_packet_is_no_part_of_it() -> None:
    packet = frames.ipv4(memoryview(bytes(ip(b"12345678")) + bytes(18)))
    assert bytes(packet.payload) == b"12345678"


@pytest.mark.parametrize("options", [b"\x02", b"\x02\x00", b"\x02\x05\x01", b"\x08\xff\x00\x00"])
def test_options_that_lie_about_their_length(options: bytes) -> None:
    padded = options.ljust(4, b"\x01") if options[0] == 8 else options.rjust(4, b"\x01")
    bare = struct.pack("!HHIIBBHHH", 1, 2, 3, 4, 6 << 4, frames.SYN, 5, 0, 0) + padded
    pseudo = GUEST.ip + HOST + struct.pack("!HH", 6, len(bare))
    checksum = ~frames.words(pseudo + bare) & 0xFFFF
    payload = bare[:16] + checksum.to_bytes(2) + bare[18:]
    with pytest.raises(BadFrame, match="tcp-options"):
        frames.tcp(frames.ipv4(ip(payload)))


def test_words_are_those_of_rfc_1071() -> None:
    data = bytes((0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7))
    assert frames.words(data) == 0xDDF2  # the example in section 3
    assert frames.words(data + b"\x12") == (0xDDF2 + 0x1200) % 65_535


@given(frame=st.binary(max_size=120))
def test_any_bytes_are_read_or_refused(frame: bytes) -> None:
    with contextlib.suppress(BadFrame):
        frames.arp(frames.ethernet(memoryview(frame)).payload)
    for read in (frames.tcp, frames.udp):
        with contextlib.suppress(BadFrame):
            read(frames.ipv4(ip(frame)))
