"""One TCP connection that the guest opened, as its far end: a pure state machine (RFC 9293).

Time is passed in and segments are left to be sent, so that every order of events can be tested.
The guest opens, this end answers when it is told to: a SYN is held until somebody has decided. What
arrives out of order is dropped and asked for again: on a link of one wire that is only what was
refused for want of room.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from vm.egress.frames import ACK, FIN, RST, SYN, Segment
from vm.egress.kinds import MTU
from vm.egress.tcp_send import EMPTY, MASK, NEVER, Sender, after

if TYPE_CHECKING:
    from vm.egress.kinds import Limits

SCALE = 7
"""Our windows count in 128 bytes: 65,535 of them are more than any limit here."""
DEFAULT_MSS = 536
"""What a SYN without the option means (RFC 9293, 3.7.1)."""
MSS = MTU - 40
SLACK_S = 2.0
"""A repeated SYN may be this late before the guest's program counts as gone."""
FIRST_GAP_S = 3.0
"""The longest that systems wait before they repeat a SYN for the first time (RFC 6298, 2.1)."""


class State(enum.Enum):
    """Where a connection stands."""

    HELD = enum.auto()
    """SYN came and is not answered."""
    ANSWERED = enum.auto()
    OPEN = enum.auto()
    LINGERS = enum.auto()
    """Both directions are over, this end was first: a repeated FIN is still answered."""
    CLOSED = enum.auto()


class Connection:
    """The far end of one connection."""

    __slots__ = (
        "_ack_due", "_edge", "_first", "_gap", "_heard", "_limits", "_opened", "_out", "_probes",
        "_scale", "_syn_at", "_until", "finished", "held", "limit", "nxt", "sender", "source_port",
        "state", "target_port", "was_reset",
    )  # fmt: skip

    def __init__(self, syn: Segment, isn: int, limits: Limits, now: float) -> None:
        """Begin with the guest's SYN; `isn` is this end's, and must be unpredictable."""
        self.source_port, self.target_port = syn.source_port, syn.target_port
        self.state = State.HELD
        self.nxt = (syn.seq + 1) & MASK
        """The next byte that the guest has to send."""
        self.held = 0
        """Bytes that were handed out and not yet `taken`."""
        self.limit = limits.floor
        """What `held` may become."""
        self.finished = False
        """The guest's FIN came."""
        self.was_reset = False
        mss = min(syn.mss or DEFAULT_MSS, MSS)
        self.sender = Sender(isn, max(mss, 64), max(syn.scale, 0), limits)
        self._scale = SCALE if syn.scale >= 0 else 0
        self._edge = self.nxt
        self._limits = limits
        self._ack_due = False
        self._out: list[Segment] = []
        self._opened = self._heard = self._syn_at = now
        self._gap = 0.0
        self._probes = 0
        self._until = NEVER
        self._first = False

    # What the owner says.

    def accept(self, now: float) -> None:
        """Answer the held SYN."""
        self.state = State.ANSWERED
        self._opened = now
        self.sender.synchronise(now)

    def abort(self) -> None:
        """Refuse or end the connection with a reset."""
        if self.state not in (State.CLOSED, State.LINGERS):
            seq = 0 if self.state is State.HELD else self.sender.nxt
            self._out.append(self._segment(RST | ACK, seq, EMPTY))
        self._close()

    def send(self, data: bytes, now: float) -> None:
        """Send bytes to the guest, at most `sender.room()`."""
        self.sender.send(data, now)

    def finish(self, now: float) -> None:
        """Say that nothing more comes from this side."""
        if self.state is State.OPEN and not self.sender.finished:
            self._first = not self.finished
            self.sender.finish(now)

    def taken(self, count: int) -> None:
        """Note that so many handed out bytes have left; tells the guest when that makes room."""
        self.held -= count
        if self.finished or self.state is not State.OPEN:
            return
        offered = after(self._edge, self.nxt)
        if self._window() - offered >= min(self.sender.mss * 2, self.limit // 2):
            self._ack_due = True

    def outgoing(self) -> list[Segment]:
        """Return what is to be sent now, the acknowledgement that is due included."""
        result, self._out = self._out, []
        for sent in self.sender.out:
            result.append(self._segment(*sent))
        self.sender.out.clear()
        if self._ack_due:
            result.append(self._segment(ACK, self.sender.nxt, EMPTY))
            self._ack_due = False
        return result

    def _segment(self, flags: int, seq: int, data: memoryview) -> Segment:
        window = self._offer(flags)
        self._ack_due = False
        ports = (self.target_port, self.source_port)
        if flags & SYN:
            scale = self._scale if self._scale else -1
            return Segment(*ports, seq, self.nxt, flags, window, data, MSS, scale)
        return Segment(*ports, seq, self.nxt, flags, window, data)

    def _window(self) -> int:
        return max(self.limit - self.held, 0)

    def _offer(self, flags: int) -> int:
        """Return the window field. The edge once offered never moves back (RFC 9293, 3.8.6)."""
        scale = 0 if flags & SYN else self._scale
        least = max(after(self._edge, self.nxt), 0)
        field = max(self._window() >> scale, -(-least >> scale))
        field = min(field, 65_535)
        edge = (self.nxt + (field << scale)) & MASK
        if after(edge, self._edge) > 0:
            self._edge = edge
        return field

    # What the guest says.

    def receive(self, segment: Segment, now: float) -> memoryview:
        """Take a segment; return the bytes of it that come next, a view of its frame."""
        if self.state is State.CLOSED:
            return EMPTY
        if self.state is State.HELD:
            self._while_held(segment, now)
            return EMPTY
        if segment.flags & RST:
            self._reset_by_guest(segment)
            return EMPTY
        if segment.flags & SYN:
            self._synchronised_again(segment)
            return EMPTY
        if not segment.flags & ACK or not self._acknowledge(segment, now):
            return EMPTY
        self._heard, self._probes = now, 0
        data = self._in_order(segment)
        self._maybe_over(now)
        return data

    def _while_held(self, segment: Segment, now: float) -> None:
        if segment.flags & RST:
            if segment.seq == self.nxt:
                self.was_reset = True
                self._close()
        elif segment.flags & SYN:
            self._gap = max(now - self._syn_at, self._gap)
            self._syn_at = now

    def is_repeated(self, syn: Segment) -> bool:
        """Tell whether a SYN is this connection's own, sent again."""
        return (syn.seq + 1) & MASK == self.nxt and self.state in (State.HELD, State.ANSWERED)

    def may_follow(self, syn: Segment) -> bool:
        """Tell whether a SYN on the same ports is a new connection, and this one history.

        One that was never open is replaced by any: its guest has started anew. One that lingers, by
        a later sequence number (RFC 9293, 3.6.1).
        """
        if self.state in (State.HELD, State.ANSWERED, State.CLOSED):
            return not self.is_repeated(syn)
        return self.state is State.LINGERS and after(syn.seq, self.nxt) > 0

    def _reset_by_guest(self, segment: Segment) -> None:
        offset = after(segment.seq, self.nxt)
        if offset == 0:
            self.was_reset = self.state is not State.LINGERS
            self._close()
        elif 0 < offset < after(self._edge, self.nxt):
            self._ack_due = (
                True  # a guess by somebody else: the true end repeats it (RFC 5961, 3.2)
            )

    def _synchronised_again(self, segment: Segment) -> None:
        if self.state is State.ANSWERED and self.is_repeated(segment):
            self.sender.again()
        else:
            self._ack_due = True  # a guest that started anew answers with a reset (RFC 5961, 4.2)

    def _acknowledge(self, segment: Segment, now: float) -> bool:
        bare = not segment.data and not segment.flags & FIN
        window = segment.window << self.sender.scale
        if self.state is State.ANSWERED:
            if segment.ack != self.sender.nxt:
                seq = segment.ack
                self._out.append(self._segment(RST, seq, EMPTY))
                return False
            self.state = State.OPEN
        if self.sender.acknowledged(segment.ack, window, bare, now):
            return True
        self._ack_due = True
        return False

    def _in_order(self, segment: Segment) -> memoryview:
        """Return what of a segment's data comes next, and count it as come."""
        data, offset = segment.data, after(segment.seq, self.nxt)
        wants_answer = bool(data) or bool(segment.flags & FIN) or offset != 0
        self._ack_due = self._ack_due or wants_answer
        if offset > 0 or self.finished:
            return EMPTY
        data = data[-offset:] if offset else data
        room = max(after(self._edge, self.nxt), 0)
        whole = len(data) <= room and -offset <= len(segment.data)
        data = data[:room]
        self.nxt = (self.nxt + len(data)) & MASK
        self.held += len(data)
        if segment.flags & FIN and whole:
            self.nxt = (self.nxt + 1) & MASK
            self.finished = True
        return data

    def _maybe_over(self, now: float) -> None:
        """Once both sides have finished and know it, linger if this one was the first."""
        if not (self.finished and self.sender.finished and self.sender.all_taken):
            return
        if not self._first:
            self._close()
        elif self.state is State.OPEN:
            self.state = State.LINGERS
            self._until = now + self._limits.time_wait_s

    def _close(self) -> None:
        self.state = State.CLOSED
        self.sender.forget()

    # Time.

    @property
    def deadline(self) -> float:
        """When `tick` has something to do."""
        if self.state is State.HELD:
            return self._patience()
        if self.state is State.ANSWERED:
            return min(self.sender.deadline, self._opened + self._limits.handshake_s)
        if self.state is State.OPEN:
            if not self.sender.all_taken:
                return self.sender.deadline
            quiet = self._heard + self._limits.keepalive_s * (self._probes + 1)
            return min(self.sender.deadline, quiet)
        return self._until if self.state is State.LINGERS else NEVER

    def _patience(self) -> float:
        """Return until when the next SYN must have come, if the guest's program still waits."""
        return self._syn_at + max(FIRST_GAP_S, self._gap * 2) + SLACK_S

    def tick(self, now: float) -> bool:
        """Do what is due; False where the guest has been silent for too long or gave up."""
        if now < self.deadline:
            return True
        if self.state is State.LINGERS:
            self._close()
        elif self.state is State.HELD or self._unanswered(now):
            return False
        elif now >= self.sender.deadline:
            if self.sender.retries >= self._limits.retries:
                return False
            self.sender.late(now)
        elif self.state is State.OPEN:
            return self._keep_alive()
        return True

    def _unanswered(self, now: float) -> bool:
        return self.state is State.ANSWERED and now >= self._opened + self._limits.handshake_s

    def _keep_alive(self) -> bool:
        if self._probes >= self._limits.keepalives:
            return False
        self._probes += 1
        self.sender.probe()
        return True
