"""Ethernet, ARP, IPv4, TCP, UDP and ICMP as the guest's link carries them.

Pure. Parsing is strict: what is not exactly as it must be raises BadFrame with a stable code, and
no length in a frame is believed before it was compared with the bytes that are there. Payloads are
views of the frame, valid as long as its buffer.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from vm.egress.kinds import Station

ARP, IPV4, IPV6 = 0x0806, 0x0800, 0x86DD
"""EtherTypes (IEEE 802 numbers)."""
ICMP, TCP, UDP = 1, 6, 17
"""IP protocol numbers."""
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

BROADCAST = b"\xff" * 6

_ETHERNET = struct.Struct("!6s6sH")
_ARP = struct.Struct("!HHBBH6s4s6s4s")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_TCP = struct.Struct("!HHIIBBHHH")
_UDP = struct.Struct("!HHHH")
_ARP_IPV4 = (1, IPV4, 6, 4)
"""Hardware Ethernet, protocol IPv4, their address lengths (RFC 826)."""


class BadFrame(Exception):
    """A frame that is not as it must be; `code` says how, as a stable word with dashes."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Ethernet(NamedTuple):
    """A frame's addresses, EtherType and what follows them."""

    target: bytes
    source: bytes
    kind: int
    payload: memoryview


class Arp(NamedTuple):
    """A question or answer about who has an IPv4 address."""

    operation: int
    source_mac: bytes
    source_ip: bytes
    target_ip: bytes


class Packet(NamedTuple):
    """An IPv4 packet without options, in one piece."""

    source: bytes
    target: bytes
    protocol: int
    payload: memoryview
    head: bytes
    """Its header and first eight bytes of payload: what an ICMP error quotes."""


class Segment(NamedTuple):
    """A TCP segment. `mss` and `scale` are its options, 0 and -1 where it has none."""

    source_port: int
    target_port: int
    seq: int
    ack: int
    flags: int
    window: int
    data: memoryview
    mss: int = 0
    scale: int = -1


class Datagram(NamedTuple):
    """A UDP datagram."""

    source_port: int
    target_port: int
    data: memoryview


def words(data: bytes | memoryview) -> int:
    """Return the sum of the 16-bit words modulo 65,535, an odd last byte padded with zero.

    As 65,536 is 1 modulo 65,535, that is the number that the bytes spell, modulo 65,535.
    """
    total = int.from_bytes(data, "big")
    return (total << 8 if len(data) & 1 else total) % 65_535


def _sum_with_pseudo_header(packet: Packet) -> int:
    pseudo = words(packet.source) + words(packet.target) + packet.protocol + len(packet.payload)
    return (pseudo + words(packet.payload)) % 65_535


def ethernet(frame: memoryview) -> Ethernet:
    """Read the Ethernet header."""
    if len(frame) < _ETHERNET.size:
        raise BadFrame("short-frame")
    target, source, kind = _ETHERNET.unpack_from(frame)
    return Ethernet(target, source, kind, frame[_ETHERNET.size :])


def arp(payload: memoryview) -> Arp:
    """Read an ARP message for IPv4 over Ethernet."""
    if len(payload) < _ARP.size:
        raise BadFrame("short-arp")
    *kinds, operation, mac, ip, _, wanted = _ARP.unpack_from(payload)
    if tuple(kinds) != _ARP_IPV4:
        raise BadFrame("strange-arp")
    return Arp(operation, mac, ip, wanted)


def ipv4(payload: memoryview) -> Packet:
    """Read an IPv4 header. Options and fragments are refused: nothing on this link needs them."""
    if len(payload) < _IPV4.size:
        raise BadFrame("short-ip")
    version, _, total, _, fragment, _, protocol, _, source, target = _IPV4.unpack_from(payload)
    if version != 0x45:
        raise BadFrame("ip-options" if version >> 4 == 4 else "ip-version")
    if not _IPV4.size <= total <= len(payload):
        raise BadFrame("ip-length")
    if fragment & 0x3FFF:
        raise BadFrame("fragment")
    if words(payload[: _IPV4.size]):
        raise BadFrame("ip-checksum")
    data = payload[_IPV4.size : total]
    return Packet(source, target, protocol, data, bytes(payload[: min(total, _IPV4.size + 8)]))


def tcp(packet: Packet) -> Segment:
    """Read a TCP segment."""
    view = packet.payload
    if len(view) < _TCP.size:
        raise BadFrame("short-tcp")
    source, target, seq, ack, offset, flags, window, _, _ = _TCP.unpack_from(view)
    start = (offset >> 4) * 4
    if not _TCP.size <= start <= len(view):
        raise BadFrame("tcp-length")
    if _sum_with_pseudo_header(packet):
        raise BadFrame("tcp-checksum")
    flags &= 0x3F
    mss, scale = _options(bytes(view[_TCP.size : start])) if flags & SYN else (0, -1)
    return Segment(source, target, seq, ack, flags, window, view[start:], mss, scale)


def _options(options: bytes) -> tuple[int, int]:
    """Return the maximum segment size and window scale of a SYN's options (RFC 9293, 3.1)."""
    mss, scale, at = 0, -1, 0
    while at < len(options) and options[at] != 0:
        if options[at] == 1:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            raise BadFrame("tcp-options")
        if (options[at], length) == (2, 4):
            mss = int.from_bytes(options[at + 2 : at + 4], "big")
        elif (options[at], length) == (3, 3):
            scale = min(options[at + 2], 14)
        at += length
    return mss, scale


def udp(packet: Packet) -> Datagram:
    """Read a UDP datagram; a checksum of zero means that it has none."""
    if len(packet.payload) < _UDP.size:
        raise BadFrame("short-udp")
    source, target, length, checksum = _UDP.unpack_from(packet.payload)
    if length != len(packet.payload):
        raise BadFrame("udp-length")
    if checksum and _sum_with_pseudo_header(packet):
        raise BadFrame("udp-checksum")
    return Datagram(source, target, packet.payload[_UDP.size :])


def _syn_options(segment: Segment) -> bytes:
    options = struct.pack("!BBH", 2, 4, segment.mss)
    return options if segment.scale < 0 else options + bytes((1, 3, 3, segment.scale))


def arp_answer(question: Arp, own: Station) -> bytes:
    """Answer that `own` has the address asked for."""
    to = question.source_mac
    body = _ARP.pack(*_ARP_IPV4, 2, own.mac, own.ip, to, question.source_ip)
    return _ETHERNET.pack(to, own.mac, ARP) + body


class Wire:
    """Builds the frames from the gateway to the guest."""

    __slots__ = ("_ethernet", "_guest_ip", "_guest_sum")

    def __init__(self, own: Station, guest: Station) -> None:
        self._ethernet = _ETHERNET.pack(guest.mac, own.mac, IPV4)
        self._guest_ip = guest.ip
        self._guest_sum = words(guest.ip)

    def _ip(self, source: bytes, protocol: int, length: int) -> bytes:
        """Return the Ethernet and IP headers of a packet with `length` bytes of payload."""
        fixed = (0x45, 0, _IPV4.size + length, 0, 0x4000, 64, protocol)
        total = 0x4500 + _IPV4.size + length + 0x4000 + (64 << 8) + protocol
        checksum = ~((total + words(source) + self._guest_sum) % 65_535) & 0xFFFF
        return self._ethernet + _IPV4.pack(*fixed, checksum, source, self._guest_ip)

    def _sum(self, source: bytes, protocol: int, *parts: bytes | memoryview) -> int:
        """Return the checksum of a payload; every part but the last has an even length."""
        pseudo = words(source) + self._guest_sum + protocol + sum(map(len, parts))
        return ~((pseudo + sum(map(words, parts))) % 65_535) & 0xFFFF

    def tcp(self, source: bytes, segment: Segment) -> tuple[bytes, memoryview]:
        """Return headers and data of a segment, from the address that the guest talks to."""
        options = _syn_options(segment) if segment.flags & SYN else b""
        length = _TCP.size + len(options)
        fixed = (segment.source_port, segment.target_port, segment.seq, segment.ack)
        rest = (length << 2, segment.flags, segment.window)
        bare = _TCP.pack(*fixed, *rest, 0, 0) + options
        checksum = self._sum(source, TCP, bare, segment.data)
        header = _TCP.pack(*fixed, *rest, checksum, 0) + options
        return self._ip(source, TCP, length + len(segment.data)) + header, segment.data

    def udp(self, source: bytes, source_port: int, target_port: int, data: bytes) -> bytes:
        """Return a datagram."""
        bare = _UDP.pack(source_port, target_port, _UDP.size + len(data), 0)
        checksum = self._sum(source, UDP, bare, data) or 0xFFFF
        return self._ip(source, UDP, len(bare) + len(data)) + bare[:6] + checksum.to_bytes(2) + data

    def unreachable(self, source: bytes, packet: Packet, code: int) -> bytes:
        """Return "destination unreachable" about a packet (RFC 792; codes in RFC 1812, 5.2.7.1)."""
        body = struct.pack("!BBHI", 3, code, 0, 0) + packet.head
        checksum = ~words(body) & 0xFFFF
        body = body[:2] + checksum.to_bytes(2) + body[4:]
        return self._ip(source, ICMP, len(body)) + body
