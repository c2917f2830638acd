"""The far end of the guest's network link: every frame of the guest is answered or refused here.

The guest has one address and one hardware address, which it was given; whatever claims another is
dropped. It can reach a name server, and by TCP what the judge allows. All else is counted, told to
the log and refused at once, so that nothing in the guest hangs.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final

from vm.egress import frames, ipv6
from vm.egress.dns_answers import NoAnswer, Responder
from vm.egress.drops import UDP_CODES, Bucket, Drops
from vm.egress.entries import Merging
from vm.egress.flow import Doors, Flow, Phase
from vm.egress.frames import BadFrame, Packet, Segment, Wire
from vm.egress.kinds import GATEWAY, GUEST, Limits, Request
from vm.egress.link import connect
from vm.egress.local_end import Names
from vm.egress.stream import Shore, Stream
from vm.egress.table import NameTable, is_synthetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from vm.egress.kinds import Dialer, Judge, Log
    from vm.egress.link import Outlet

DNS: Final = 53
TICK_S: Final = 0.05
"""Timers are no finer than this."""
PORT_UNREACHABLE, PROHIBITED = 3, 13
ICMP_PER_SECOND: Final = 100
"""Refusals of datagrams that are told to the guest; further ones are only counted."""

Key = tuple[int, bytes, int]
"""The guest's port, the address it talks to, and the port there."""


@dataclass(slots=True)
class Crowd:
    """Flows that are in one state, or were: counted again only when there are too many."""

    belongs: Callable[[Flow], bool]
    flows: list[Flow] = field(default_factory=lambda: list[Flow]())

    def full(self, limit: int) -> bool:
        """Tell whether as many flows as allowed are in that state."""
        if len(self.flows) >= limit:
            self.flows = [flow for flow in self.flows if self.belongs(flow)]
        return len(self.flows) >= limit


class Gateway:
    """Serves one guest over one link; runs in an asyncio loop, and only there.

    `counts` says how often something was dropped, by code.
    """

    def __init__(
        self,
        judge: Judge,
        dialer: Dialer,
        log: Log,
        table: NameTable,
        limits: Limits | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._limits = limits or Limits()
        self._table = table
        self._log = Merging(log)
        self._drops = Drops(self._log, wall)
        self.counts = self._drops.counts
        self._loop = asyncio.get_running_loop()
        dials = asyncio.Semaphore(self._limits.dials)
        self._doors = Doors(judge, dialer, self._log, self._limits, wall, dials)
        self._names = Responder(judge, table, self._log, wall)
        self._wire = Wire(GATEWAY, GUEST)
        self._flows: dict[Key, Flow] = {}
        self._streams: dict[Key, Stream] = {}
        self._leaving: set[Flow] = set()
        self._number = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._icmp = Bucket(ICMP_PER_SECOND)
        self._opening = Crowd(lambda flow: flow.half_open)
        self._asking = Crowd(lambda flow: flow.phase is Phase.ASKED)

    async def serve(self, path: Path) -> str:
        """Connect to the machine's network socket and serve it until it ends; return why it did.

        Raises OSError where nobody listens.
        """
        link = await connect(path, self._loop)
        self.attach(link)
        link.start(self.take, self.drained)
        try:
            return await link.closed
        finally:
            link.close()
            self.detach()

    def attach(self, outlet: Outlet) -> None:
        """Serve a link. Connections of an earlier one are over."""
        self.detach()
        self._outlet = outlet
        self._shore = Shore(
            self._wire,
            outlet,
            self._limits,
            self._loop.time,
            self._schedule,
            self._lost,
            self._over,
        )

    def detach(self) -> None:
        """End all connections, as the link did."""
        for flow in [*self._flows.values(), *self._leaving]:
            flow.stop("link-ended")
        for stream in list(self._streams.values()):
            stream.abort()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._log.flush()

    @property
    def open(self) -> int:
        """How many connections the guest has, those that end included."""
        return len(self._streams)

    def drained(self) -> None:
        """Go on with what waited for room on the link."""
        blocked, self._shore.blocked = self._shore.blocked, set()
        for stream in blocked:
            stream.end.room()
            stream.flush()

    # Frames.

    def take(self, batch: Iterable[memoryview]) -> None:
        """Take frames of the guest, and answer those of one connection at once."""
        touched: dict[Stream, None] = {}
        for frame in batch:
            try:
                stream = self._frame(frame)
            except BadFrame as bad:
                self._drops.malformed(bad.code)
                continue
            if stream is not None:
                touched[stream] = None
        for stream in touched:
            stream.flush()
        self._outlet.flush()

    def _frame(self, frame: memoryview) -> Stream | None:
        ether = frames.ethernet(frame)
        if ether.source != GUEST.mac:
            self._drops.drop("spoofed-mac", "other", ether.source.hex(":"))
        elif ether.kind == frames.ARP:
            self._arp(frames.arp(ether.payload))
        elif ether.kind == frames.IPV4:
            return self._packet(frames.ipv4(ether.payload))
        elif ether.kind == frames.IPV6:
            self._ipv6(ipv6.parse(ether.payload))
        else:
            raise BadFrame("other-protocol")
        return None

    def _arp(self, message: frames.Arp) -> None:
        if message.source_ip == GATEWAY.ip:
            self._drops.drop("spoofed-gateway", "other")
        elif message.operation == 1 and message.target_ip == GATEWAY.ip:
            if message.source_ip == GUEST.ip and message.source_mac == GUEST.mac:
                self._outlet.send(frames.arp_answer(message, GATEWAY))
            else:
                self._drops.drop("spoofed-address", "other", _dotted(message.source_ip))
        else:
            self.counts["arp"] += 1

    def _packet(self, packet: Packet) -> Stream | None:
        if packet.source != GUEST.ip:
            self._drops.drop("spoofed-address", "other", _dotted(packet.source))
        elif packet.protocol == frames.TCP:
            return self._segment(packet.target, frames.tcp(packet))
        elif packet.protocol == frames.UDP:
            self._datagram(packet, frames.udp(packet))
        elif packet.protocol == frames.ICMP:
            self._drops.drop("icmp", "icmp", _dotted(packet.target))
            self._unreachable(packet, PROHIBITED)
        else:
            raise BadFrame("other-protocol")
        return None

    def _ipv6(self, packet: ipv6.Packet) -> None:
        answer = ipv6.neighbour(packet)
        if answer is None:
            if ipv6.is_housekeeping(packet):
                self.counts["ipv6-housekeeping"] += 1
                return
            address = str(IPv6Address(packet.target))
            self._drops.drop("ipv6", "ipv6", address, ipv6.port_of(packet))
            answer = ipv6.refusal(packet)
        if answer is not None and self._icmp.take(self._loop.time()):
            self._outlet.send(answer)

    def _datagram(self, packet: Packet, datagram: frames.Datagram) -> None:
        if packet.target == GATEWAY.ip and datagram.target_port == DNS:
            try:
                answer = self._names.answer(bytes(datagram.data), self._loop.time())
            except NoAnswer:
                raise BadFrame("not-dns") from None
            reply = self._wire.udp(GATEWAY.ip, DNS, datagram.source_port, answer)
            self._outlet.send(reply)
            return
        code = UDP_CODES.get(datagram.target_port, "udp")
        self._drops.drop(code, "udp", _dotted(packet.target), datagram.target_port)
        self._unreachable(packet, PORT_UNREACHABLE)

    def _unreachable(self, packet: Packet, code: int) -> None:
        """Tell the guest at once that a packet leads nowhere, unless it was for everybody.

        Nothing is said about ICMP errors (RFC 1122, 3.2.2): only echo requests have an answer.
        """
        if packet.target[0] >= 224 or (
            packet.protocol == frames.ICMP and packet.head[20:21] != b"\x08"
        ):
            return
        if self._icmp.take(self._loop.time()):
            source = GATEWAY.ip if code == PROHIBITED else packet.target
            self._outlet.send(self._wire.unreachable(source, packet, code))

    # Connections.

    def _segment(self, address: bytes, segment: Segment) -> Stream | None:
        key = (segment.source_port, address, segment.target_port)
        stream = self._streams.get(key)
        first = segment.flags & (frames.SYN | frames.ACK | frames.RST) == frames.SYN
        if stream is not None and first and stream.tcp.may_follow(segment):
            self._replace(key)
            stream = None
        if stream is not None:
            stream.segment(segment)
        elif first:
            self._begin(key, address, segment)
        elif not segment.flags & frames.RST:
            self._reset(address, segment)
        return stream

    def _replace(self, key: Key) -> None:
        flow = self._flows.get(key)
        if flow is not None and flow.phase is not Phase.ENDED:
            flow.stop("replaced")
        stream = self._streams.get(key)
        if stream is not None:
            stream.abort()
            self._over(stream)

    def _begin(self, key: Key, address: bytes, syn: Segment) -> None:
        """Take a new connection on, or refuse it."""
        if len(self._streams) + len(self._leaving) >= self._limits.flows:
            self._deny("too-many-connections", address, syn)
        elif self._opening.full(self._limits.half_open):
            self._drops.drop("half-open", "tcp", _dotted(address), syn.target_port)
        elif address == GATEWAY.ip and syn.target_port == DNS:
            stream = self._stream(key, address, syn)
            stream.end = Names(
                stream, lambda message: self._names.answer(message, self._loop.time())
            )
            stream.accept()
        else:
            self._begin_flow(key, address, syn)

    def _begin_flow(self, key: Key, address: bytes, syn: Segment) -> None:
        host = self._table.name_of(address)
        if address == GATEWAY.ip:
            self._deny("gateway-port", address, syn)
        elif host is None and is_synthetic(address):
            self._deny("unknown-name", address, syn)
        elif self._asking.full(self._limits.held):
            self._deny("too-many-questions", address, syn)
        else:
            request = Request(host or _dotted(address), syn.target_port)
            self._number += 1
            stream = self._stream(key, address, syn)
            flow = Flow(self._number, stream, request, self._doors, self._ended)
            self._flows[key] = flow
            flow.begin()
            (self._asking if flow.phase is Phase.ASKED else self._opening).flows.append(flow)

    def _stream(self, key: Key, address: bytes, syn: Segment) -> Stream:
        stream = Stream(self._shore, address, syn, secrets.randbits(32))
        self._streams[key] = stream
        self._schedule(stream.tcp.deadline)
        return stream

    def _deny(self, code: str, address: bytes, syn: Segment) -> None:
        self._drops.drop(code, "tcp", _dotted(address), syn.target_port)
        self._reset(address, syn)

    def _reset(self, address: bytes, segment: Segment) -> None:
        """Refuse a segment that belongs to no connection (RFC 9293, 3.10.7.1)."""
        ports = (segment.target_port, segment.source_port)
        if segment.flags & frames.ACK:
            reset = Segment(*ports, segment.ack, 0, frames.RST, 0, segment.data[:0])
        else:
            length = len(segment.data) + bool(segment.flags & frames.SYN)
            length += bool(segment.flags & frames.FIN)
            ack = (segment.seq + length) & 0xFFFF_FFFF
            reset = Segment(*ports, 0, ack, frames.RST | frames.ACK, 0, segment.data[:0])
        self._outlet.send(*self._wire.tcp(address, reset))

    def _over(self, stream: Stream) -> None:
        """Forget a stream of which nothing is left."""
        key = (stream.tcp.source_port, stream.address, stream.tcp.target_port)
        if self._streams.get(key) is not stream:
            return
        del self._streams[key]
        flow = self._flows.pop(key, None)
        if flow is not None and flow.phase is not Phase.ENDED:
            self._leaving.add(flow)
            flow.vanished()

    def _ended(self, flow: Flow) -> None:
        self._leaving.discard(flow)

    # Time.

    def _schedule(self, deadline: float) -> None:
        """Have `_tick` called at a time, or soon after."""
        if deadline == float("inf"):
            return
        at = max(deadline, self._loop.time() + TICK_S)
        if self._alarm is None or at < self._alarm.when():
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = self._loop.call_at(at, self._tick)

    def _tick(self) -> None:
        self._alarm = None
        now = self._loop.time()
        for key, stream in list(self._streams.items()):
            if now >= stream.tcp.deadline and not stream.tick():
                self._end_silent(key, stream)
            elif now - stream.active >= self._limits.idle_s:
                self._stop(key, stream, "idle")
        nearest = min((s.tcp.deadline for s in self._streams.values()), default=float("inf"))
        self._schedule(nearest)
        self._outlet.flush()

    def _end_silent(self, key: Key, stream: Stream) -> None:
        flow = self._flows.get(key)
        held = flow is not None and flow.phase in (Phase.ASKED, Phase.DIALLED)
        self._stop(key, stream, "gave-up" if held else "guest-silent")

    def _stop(self, key: Key, stream: Stream, code: str) -> None:
        flow = self._flows.get(key)
        if flow is not None and flow.phase is not Phase.ENDED:
            flow.stop(code)
        else:
            stream.abort()

    def _lost(self) -> None:
        self.counts["link-full"] += 1


def _dotted(address: bytes) -> str:
    return str(IPv4Address(address))
