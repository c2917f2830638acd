"""A connection's guest side: its state machine, its frames, its share of memory.

What lies at the other end is an `End`: nothing yet, a host's socket, or a small service here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from vm.egress.tcp import Connection, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.egress.frames import Segment, Wire
    from vm.egress.kinds import Limits
    from vm.egress.link import Outlet


class End(Protocol):
    """The other end of a guest's connection."""

    def data(self, view: memoryview) -> None:
        """Take bytes from the guest, a view that is valid during the call.

        Whoever has passed them on says so by `Stream.taken`.
        """
        ...

    def finished(self) -> None:
        """Hear that the guest sends nothing more."""
        ...

    def room(self) -> None:
        """Hear that more may be sent to the guest."""
        ...

    def gone(self, reset: bool) -> None:
        """Hear that the guest's side is over; `reset`: it did not end in order."""
        ...


class Nothing:
    """An end that takes everything and does nothing: before there is another, and after it."""

    def data(self, view: memoryview) -> None:
        """Ignore what comes."""

    def finished(self) -> None:
        """Ignore it."""

    def room(self) -> None:
        """Ignore it."""

    def gone(self, reset: bool) -> None:
        """Ignore it."""


@dataclass(slots=True)
class Budget:
    """What all connections together hold, so that many slow ones cannot take the host's memory."""

    limits: Limits
    used: int = 0
    tight: bool = False
    """Each holds the least: what is on its way delays whatever else the guest does."""

    def share(self) -> int:
        """Return how much one connection may hold in each direction."""
        scarce = self.tight or self.used >= self.limits.buffered
        return self.limits.floor if scarce else self.limits.window


@dataclass(slots=True)
class Shore:
    """What all streams of a gateway share."""

    wire: Wire
    outlet: Outlet
    limits: Limits
    clock: Callable[[], float]
    """Monotonic seconds."""
    schedule: Callable[[float], None]
    """Have `tick` called no later than at this time."""
    lost: Callable[[], None]
    """Count a frame that the link had no room for."""
    over: Callable[[Stream], None]
    """Hear of a stream of which nothing is left."""
    blocked: set[Stream] = field(default_factory=lambda: set[Stream]())
    """Streams that would send, had the link room."""
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = Budget(self.limits)


class Stream:
    """One connection as the gateway sees it. `address`: whom the guest talks to, four bytes."""

    __slots__ = ("_charged", "_heard_end", "_shore", "_told", "active", "address", "end", "tcp")

    def __init__(self, shore: Shore, address: bytes, syn: Segment, isn: int) -> None:
        now = shore.clock()
        self.tcp = Connection(syn, isn, shore.limits, now)
        self.address = address
        self.end: End = Nothing()
        self.active = now
        """When bytes last went either way."""
        self._shore = shore
        self._charged = 0
        self._heard_end = self._told = False

    def segment(self, segment: Segment) -> None:
        """Take a segment from the guest. The answer waits for `flush`."""
        now = self._shore.clock()
        self.tcp.limit = self.tcp.sender.limit = self._shore.budget.share()
        data = self.tcp.receive(segment, now)
        if data:
            self.active = now
            self.end.data(data)
        if self.tcp.finished and not self._heard_end:
            self._heard_end = True
            self.end.finished()
        if self.tcp.state in (State.LINGERS, State.CLOSED):
            self.tell_gone()
        else:
            self.end.room()

    def tell_gone(self) -> None:
        """Tell the other end that the guest's side is over, once."""
        if not self._told:
            self._told = True
            self.end.gone(self.tcp.was_reset)

    def room(self) -> int:
        """Return how many bytes may be sent to the guest now."""
        if self.tcp.state is not State.OPEN:
            return 0
        if self._shore.outlet.congested:
            self._shore.blocked.add(self)
            return 0
        return self.tcp.sender.room()

    def send(self, data: bytes) -> None:
        """Send bytes to the guest, at most `room()`."""
        self.active = self._shore.clock()
        self.tcp.send(data, self.active)

    def accept(self) -> None:
        """Answer the held SYN."""
        self.tcp.accept(self._shore.clock())
        self.flush()

    def finish(self) -> None:
        """Say to the guest that nothing more comes."""
        self.tcp.finish(self._shore.clock())

    def taken(self, count: int) -> None:
        """Note that the other end has passed on so many bytes."""
        self.tcp.taken(count)

    def abort(self) -> None:
        """End the connection with a reset."""
        self.tcp.was_reset = True
        self.tcp.abort()
        self.flush()
        self.tell_gone()

    def tick(self) -> bool:
        """Do what time asks for; False where the guest is gone or has been silent for too long."""
        alive = self.tcp.tick(self._shore.clock())
        self.flush()
        return alive

    def release(self) -> None:
        """Note that the other end let go of all that it held."""
        self.tcp.held = 0
        self._charge()

    def flush(self) -> None:
        """Send what is due, and account for what is held."""
        for segment in self.tcp.outgoing():
            if not self._shore.outlet.send(*self._shore.wire.tcp(self.address, segment)):
                self._shore.lost()
        self._shore.outlet.flush()
        self._charge()
        if self.tcp.state is State.CLOSED:
            self._shore.over(self)
        else:
            self._shore.schedule(self.tcp.deadline)

    def _charge(self) -> None:
        held = self.tcp.held + self.tcp.sender.flying
        self._shore.budget.used += held - self._charged
        self._charged = held
