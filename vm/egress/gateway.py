"""The far end of the guest's network link: every frame of the guest is answered or refused here.

The guest has one address and one hardware address, which it was given; whatever claims another is
dropped. It can reach a name server, and by TCP what the judge allows. All else is counted, told to
the log and refused at once, so that nothing in the guest hangs.
"""

from __future__ import annotations

import asyncio
import time
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final

from vm.egress import frames, ipv6
from vm.egress.connections import DNS, Around, Connections, dotted
from vm.egress.dns_answers import NoAnswer, Responder
from vm.egress.drops import UDP_CODES, Bucket, Drops
from vm.egress.entries import Merging
from vm.egress.flow import Doors
from vm.egress.frames import BadFrame, Packet, Wire
from vm.egress.kinds import GATEWAY, GUEST, Limits
from vm.egress.link import connect
from vm.egress.pace import TYPING_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from vm.egress.kinds import Dialer, Judge, Log
    from vm.egress.link import Outlet
    from vm.egress.stream import Stream
    from vm.egress.table import NameTable

PORT_UNREACHABLE, PROHIBITED = 3, 13
ICMP_PER_SECOND: Final = 100
"""Refusals of datagrams that are told to the guest; further ones are only counted."""


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
        limits = limits or Limits()
        self._log = Merging(log)
        self._drops = Drops(self._log, wall)
        self.counts = self._drops.counts
        self._loop = asyncio.get_running_loop()
        self._names = Responder(judge, table, self._log, wall)
        self._wire = Wire(GATEWAY, GUEST)
        dials = asyncio.Semaphore(limits.dials)
        doors = Doors(judge, dialer, self._log, limits, wall, dials)
        self._connections = Connections(
            Around(self._loop, self._wire, doors, self._names, table, self._drops)
        )
        self._icmp = Bucket(ICMP_PER_SECOND)
        self._typing: asyncio.TimerHandle | None = None

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
        self._connections.attach(outlet)

    def detach(self) -> None:
        """End all connections, as the link did."""
        self._connections.detach()
        self._log.flush()
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None

    def typed(self) -> None:
        """Note that somebody types into the machine: for some time that comes before the network.

        Only with a link.
        """
        if self._typing is None:
            self._make_room(True)
        else:
            self._typing.cancel()
        self._typing = self._loop.call_later(TYPING_S, self._typed_out)

    def _typed_out(self) -> None:
        self._typing = None
        self._make_room(False)

    def _make_room(self, wanted: bool) -> None:
        self._connections.tighten(wanted)
        self._outlet.keep_pace(wanted)

    @property
    def open(self) -> int:
        """How many connections the guest has, those that end included."""
        return len(self._connections)

    def drained(self) -> None:
        """Go on with what waited for room on the link."""
        self._connections.drained()

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
                self._drops.drop("spoofed-address", "other", dotted(message.source_ip))
        else:
            self.counts["arp"] += 1

    def _packet(self, packet: Packet) -> Stream | None:
        if packet.source != GUEST.ip:
            self._drops.drop("spoofed-address", "other", dotted(packet.source))
        elif packet.protocol == frames.TCP:
            return self._connections.segment(packet.target, frames.tcp(packet))
        elif packet.protocol == frames.UDP:
            self._datagram(packet, frames.udp(packet))
        elif packet.protocol == frames.ICMP:
            self._drops.drop("icmp", "icmp", dotted(packet.target))
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
        self._drops.drop(code, "udp", dotted(packet.target), datagram.target_port)
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
