"""The guest's IPv6: none of it goes anywhere, and whoever tries it is told at once.

The guest has an IPv6 address and a way out for this alone: a kernel without them fails by itself,
and then nothing would stand in the log. Answered are the question for the gateway's hardware
address, and each packet with "administratively prohibited"; what the guest's kernel says by itself
on a link is left alone. Pure; strict as `frames`.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from vm.egress.frames import IPV6, TCP, UDP, BadFrame, words
from vm.egress.kinds import GATEWAY, GUEST

GATEWAY_IP: Final = bytes.fromhex("fe80" + "00" * 13 + "01")
"""The guest's only way out (see `vm/guest/net.c`)."""
HOP_BY_HOP, ICMPV6 = 0, 58
SOLICITATION, ADVERTISEMENT = 135, 136
"""Neighbour discovery (RFC 4861, 4.3 and 4.4)."""
HOUSEKEEPING: Final = frozenset((130, 131, 132, 133, 134, 135, 136, 137, 143))
"""ICMPv6 of a kernel on its link: listeners of groups, routers, neighbours."""
QUOTED: Final = 64
"""Bytes of a packet's payload that its refusal quotes; a kernel looks at the first eight."""

_ETHERNET = struct.pack("!6s6sH", GUEST.mac, GATEWAY.mac, IPV6)
_HEAD = struct.Struct("!IHBB16s16s")
_VERSION: Final = 6 << 28
_SOLICITED: Final = 0x6000_0000
"""Flags of an answer: it was asked for, and it replaces what was known."""


class Packet(NamedTuple):
    """An IPv6 packet; its first extension header counts as its protocol."""

    source: bytes
    target: bytes
    protocol: int
    payload: memoryview
    head: bytes
    """Its header and the beginning of its payload."""


def parse(raw: memoryview) -> Packet:
    """Read an IPv6 header. Raises BadFrame."""
    if len(raw) < _HEAD.size:
        raise BadFrame("short-ip")
    first, length, protocol, _, source, target = _HEAD.unpack_from(raw)
    if first >> 28 != 6:
        raise BadFrame("ip-version")
    if _HEAD.size + length > len(raw):
        raise BadFrame("ip-length")
    payload = raw[_HEAD.size : _HEAD.size + length]
    head = bytes(raw[: _HEAD.size + min(length, QUOTED)])
    return Packet(source, target, protocol, payload, head)


def port_of(packet: Packet) -> int | None:
    """Return the port that a packet is for, None where it names none."""
    if packet.protocol not in (TCP, UDP) or len(packet.payload) < 4:
        return None
    return int.from_bytes(packet.payload[2:4], "big")


def is_housekeeping(packet: Packet) -> bool:
    """Tell whether a kernel said this by itself. Group reports stand behind a hop-by-hop header."""
    first = packet.payload[0] if packet.payload else -1
    if packet.protocol == HOP_BY_HOP:
        return packet.target[0] == 0xFF and first == ICMPV6
    return packet.protocol == ICMPV6 and first in HOUSEKEEPING


def neighbour(packet: Packet) -> bytes | None:
    """Return the answer to a question for the gateway's hardware address, None for all else."""
    asked = bytes(packet.payload[:24])
    if packet.protocol != ICMPV6 or len(asked) < 24 or asked[0] != SOLICITATION:
        return None
    if asked[8:] != GATEWAY_IP or not _is_one(packet.source):
        return None
    body = struct.pack("!BBHI", ADVERTISEMENT, 0, 0, _SOLICITED) + GATEWAY_IP
    return _frame(packet.source, body + bytes((2, 1)) + GATEWAY.mac)


def refusal(packet: Packet) -> bytes | None:
    """Return "administratively prohibited" (RFC 4443, 3.1), None for what has no answer (2.4e)."""
    error = packet.protocol == ICMPV6 and (not packet.payload or packet.payload[0] < 128)
    if error or packet.target[0] == 0xFF or not _is_one(packet.source):
        return None
    return _frame(packet.source, struct.pack("!BBHI", 1, 1, 0, 0) + packet.head)


def _is_one(address: bytes) -> bool:
    """Tell whether an address is a single machine's."""
    return address[0] != 0xFF and any(address)


def _frame(target: bytes, body: bytes) -> bytes:
    """Return a frame with an ICMPv6 message from the gateway; `body` has a checksum of zero."""
    pseudo = words(GATEWAY_IP) + words(target) + len(body) + ICMPV6
    checksum = ~((pseudo + words(body)) % 65_535) & 0xFFFF
    body = body[:2] + checksum.to_bytes(2, "big") + body[4:]
    head = _HEAD.pack(_VERSION, len(body), ICMPV6, 255, GATEWAY_IP, target)
    return _ETHERNET + head + body
