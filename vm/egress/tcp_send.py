"""The sending half of a TCP connection: what is on its way, and when it is sent again.

Pure: time is passed in, segments are left in a list. There is no congestion control, for the link
is one wire to one machine; but the guest's kernel may drop what it has no memory for.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from vm.egress.frames import ACK, FIN, PSH, SYN

if TYPE_CHECKING:
    from vm.egress.kinds import Limits

MASK = 0xFFFF_FFFF
EMPTY = memoryview(b"")
NEVER = float("inf")
DUPLICATES = 3
"""Acknowledgements of the same byte that mean a lost segment (RFC 5681, 3.2)."""


def after(a: int, b: int) -> int:
    """Return how far sequence number `a` lies after `b`; negative: before it (RFC 9293, 3.4)."""
    return ((a - b + 0x8000_0000) & MASK) - 0x8000_0000


class Sent(NamedTuple):
    """A segment as it goes out; the connection adds acknowledgement and window."""

    flags: int
    seq: int
    data: memoryview


class Sender:
    """Sequence numbers, the window that the guest gives, and unacknowledged segments."""

    __slots__ = (
        "_duplicates", "_limits", "_queue", "_recover", "_rto", "_widest", "deadline", "finished",
        "limit", "mss", "nxt", "out", "retries", "scale", "una", "window",
    )  # fmt: skip

    def __init__(self, isn: int, mss: int, scale: int, limits: Limits) -> None:
        self.una = self.nxt = isn
        self.mss = mss
        self.scale = scale
        """By how many bits the guest's windows are shifted."""
        self.window = self._widest = 0
        self.limit = limits.floor
        """What may be unacknowledged, whatever the guest allows."""
        self.finished = False
        """FIN was sent; nothing follows it."""
        self.out: list[Sent] = []
        self.deadline = NEVER
        """When to call `late`."""
        self.retries = 0
        """Repetitions since the guest was last heard."""
        self._limits = limits
        self._queue: deque[Sent] = deque()
        self._rto = limits.rto_s
        self._duplicates = 0
        self._recover: int | None = None

    @property
    def flying(self) -> int:
        """How many bytes the guest has not acknowledged."""
        return (self.nxt - self.una) & MASK

    @property
    def all_taken(self) -> bool:
        """Whether the guest has acknowledged everything, FIN included."""
        return self.una == self.nxt

    def room(self) -> int:
        """Return how many bytes may be sent now; 0 where it would be a splinter of the window.

        Without this a window that opens a little at a time is filled with small segments
        (RFC 9293, 3.8.6.2.1).
        """
        flying = self.flying
        room = min(self.window, self.limit) - flying
        if self.finished or room <= 0:
            return 0
        return room if not flying or room >= min(self.mss, self._widest // 2) else 0

    def send(self, data: bytes, now: float) -> None:
        """Send bytes, at most `room()` of them."""
        view, last = memoryview(data), len(data) - 1
        for start in range(0, len(data), self.mss):
            piece = view[start : start + self.mss]
            self._put(ACK | PSH if start + self.mss > last else ACK, piece, len(piece), now)

    def synchronise(self, now: float) -> None:
        """Send SYN in answer to the guest's."""
        self._put(SYN | ACK, EMPTY, 1, now)

    def finish(self, now: float) -> None:
        """Send FIN: nothing more comes."""
        if not self.finished:
            self.finished = True
            self._put(FIN | ACK, EMPTY, 1, now)

    def _put(self, flags: int, data: memoryview, length: int, now: float) -> None:
        segment = Sent(flags, self.nxt, data)
        self._queue.append(segment)
        self.out.append(segment)
        self.nxt = (self.nxt + length) & MASK
        if self.deadline == NEVER or len(self._queue) == 1:
            self.deadline = now + self._rto

    def acknowledged(self, ack: int, window: int, bare: bool, now: float) -> bool:
        """Take an acknowledgement; `bare`: without data or FIN. False: of what was never sent."""
        news = (ack - self.una) & MASK
        if news > self.flying:
            return after(ack, self.una) <= 0
        self.retries = 0
        repeated = bare and not news and window == self.window and bool(self._queue)
        self.window = window
        self._widest = max(self._widest, window)
        if news:
            self._advance(ack, now)
        elif repeated:
            self._repeated()
        self._rearm(now, bool(news))
        return True

    def _advance(self, ack: int, now: float) -> None:
        self.una = ack
        self._duplicates = 0
        self._rto = self._limits.rto_s
        queue = self._queue
        while queue and after(_end(queue[0]), ack) <= 0:
            queue.popleft()
        if queue and after(ack, queue[0].seq) > 0:
            head = queue[0]
            queue[0] = Sent(head.flags, ack, head.data[after(ack, head.seq) :])
        if self._recover is not None:
            self._continue_recovery()

    def _continue_recovery(self) -> None:
        """After a loss the rest is lost too, as a rule: send the next at once (RFC 6582)."""
        if self._recover is not None and after(self._recover, self.una) > 0:
            self.again()
        else:
            self._recover = None

    def _repeated(self) -> None:
        self._duplicates += 1
        if self._duplicates == DUPLICATES and self._recover is None:
            self._recover = self.nxt
            self.again()

    def _rearm(self, now: float, news: bool) -> None:
        if self._queue:
            if news:
                self.deadline = now + self._rto
        elif self.window == 0 and not self.finished:
            if self.deadline == NEVER or news:
                self.deadline = now + self._rto
        else:
            self._rto = self._limits.rto_s
            self.deadline = NEVER

    def late(self, now: float) -> None:
        """Send the oldest segment again, or ask about a window that stays closed."""
        self.retries += 1
        self._rto = min(self._rto * 2, self._limits.rto_max_s)
        self.deadline = now + self._rto
        if self._queue:
            self._recover = self.nxt
            self.again()
        else:
            self.probe()

    def again(self) -> None:
        """Send the oldest segment that is not acknowledged once more."""
        if self._queue:
            self.out.append(self._queue[0])

    def probe(self) -> None:
        """Make the guest answer with what it has and takes, by an old sequence number."""
        self.out.append(Sent(ACK, (self.una - 1) & MASK, EMPTY))

    def forget(self) -> None:
        """Let go of everything."""
        self._queue.clear()
        self.una = self.nxt
        self.deadline = NEVER
        self.finished = True


def _end(segment: Sent) -> int:
    """Return the sequence number after a segment."""
    return (segment.seq + len(segment.data) + (1 if segment.flags & (SYN | FIN) else 0)) & MASK
