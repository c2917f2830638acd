"""The guest's connections: which there are, which may begin, and what time asks of them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final

from vm.egress import frames
from vm.egress.flow import Flow, Phase
from vm.egress.frames import Segment
from vm.egress.kinds import GATEWAY, Request
from vm.egress.local_end import Names
from vm.egress.stream import Shore, Stream
from vm.egress.table import is_synthetic

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from vm.egress.dns_answers import Responder
    from vm.egress.drops import Drops
    from vm.egress.flow import Doors
    from vm.egress.frames import Wire
    from vm.egress.link import Outlet
    from vm.egress.table import NameTable

DNS: Final = 53
TICK_S: Final = 0.05
"""Timers are no finer than this."""

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


@dataclass(frozen=True, slots=True)
class Around:
    """What connections need of the gateway that they belong to."""

    loop: asyncio.AbstractEventLoop
    wire: Wire
    doors: Doors
    names: Responder
    table: NameTable
    drops: Drops


class Connections:
    """All connections over one link after the other; of none at first (`attach`)."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._limits = around.doors.limits
        self._flows: dict[Key, Flow] = {}
        self._streams: dict[Key, Stream] = {}
        self._leaving: set[Flow] = set()
        self._number = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._opening = Crowd(lambda flow: flow.half_open)
        self._asking = Crowd(lambda flow: flow.phase is Phase.ASKED)

    def attach(self, outlet: Outlet) -> None:
        """Send to this link from now on."""
        self._outlet = outlet
        self._shore = Shore(
            self._around.wire,
            outlet,
            self._limits,
            self._around.loop.time,
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

    def __len__(self) -> int:
        return len(self._streams)

    def tighten(self, tight: bool) -> None:
        """Have each connection hold as little as can be, or as much as it may."""
        self._shore.budget.tight = tight

    def drained(self) -> None:
        """Go on with what waited for room on the link."""
        blocked, self._shore.blocked = self._shore.blocked, set()
        for stream in blocked:
            stream.end.room()
            stream.flush()

    def segment(self, address: bytes, segment: Segment) -> Stream | None:
        """Take a segment of the guest to an address; return the stream that has an answer due."""
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
            self._around.drops.drop("half-open", "tcp", dotted(address), syn.target_port)
        elif address == GATEWAY.ip and syn.target_port == DNS:
            stream = self._stream(key, address, syn)
            around = self._around
            stream.end = Names(
                stream, lambda message: around.names.answer(message, around.loop.time())
            )
            stream.accept()
        else:
            self._begin_flow(key, address, syn)

    def _begin_flow(self, key: Key, address: bytes, syn: Segment) -> None:
        host = self._around.table.name_of(address)
        if address == GATEWAY.ip:
            self._deny("gateway-port", address, syn)
        elif host is None and is_synthetic(address):
            self._deny("unknown-name", address, syn)
        elif self._asking.full(self._limits.held):
            self._deny("too-many-questions", address, syn)
        else:
            request = Request(host or dotted(address), syn.target_port)
            self._number += 1
            stream = self._stream(key, address, syn)
            flow = Flow(self._number, stream, request, self._around.doors, self._ended)
            self._flows[key] = flow
            flow.begin()
            (self._asking if flow.phase is Phase.ASKED else self._opening).flows.append(flow)

    def _stream(self, key: Key, address: bytes, syn: Segment) -> Stream:
        stream = Stream(self._shore, address, syn, secrets.randbits(32))
        self._streams[key] = stream
        self._schedule(stream.tcp.deadline)
        return stream

    def _deny(self, code: str, address: bytes, syn: Segment) -> None:
        self._around.drops.drop(code, "tcp", dotted(address), syn.target_port)
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
        self._outlet.send(*self._around.wire.tcp(address, reset))

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
        at = max(deadline, self._around.loop.time() + TICK_S)
        if self._alarm is None or at < self._alarm.when():
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm = self._around.loop.call_at(at, self._tick)

    def _tick(self) -> None:
        self._alarm = None
        now = self._around.loop.time()
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
        self._around.drops.counts["link-full"] += 1


def dotted(address: bytes) -> str:
    """Write four bytes as people do."""
    return str(IPv4Address(address))
