"""The state machine of a connection alone: time and segments are made here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vm.egress.frames import ACK, FIN, RST, SYN, Segment
from vm.egress.kinds import Limits
from vm.egress.tcp import Connection, State

if TYPE_CHECKING:
    from collections.abc import Sequence

LIMITS = Limits()
ISN, GUEST_ISN = 0xFFFF_FFF0, 0xFFFF_FF00
"""Just before the sequence numbers begin anew, so that every test passes over that border."""
MASK = 0xFFFF_FFFF
EMPTY = memoryview(b"")


def syn(seq: int = GUEST_ISN, mss: int = 1460, scale: int = 7) -> Segment:
    return Segment(40_000, 443, seq, 0, SYN, 64_240, EMPTY, mss, scale)


class Guest:
    """A guest that keeps count of what it has sent and got."""

    def __init__(self, limits: Limits = LIMITS, mss: int = 1460) -> None:
        self.tcp = Connection(syn(mss=mss), ISN, limits, 0.0)
        self.seq = (GUEST_ISN + 1) & MASK
        self.ack = (ISN + 1) & MASK
        self.window = 1000

    def open(self) -> Guest:
        self.tcp.accept(0.0)
        (answer,) = self.tcp.outgoing()
        assert answer.flags == SYN | ACK
        assert (answer.seq, answer.ack) == (ISN, self.seq)
        self.say()
        assert self.tcp.state is State.OPEN
        return self

    def say(
        self, data: bytes = b"", flags: int = ACK, seq: int | None = None, now: float = 0.0
    ) -> bytes:
        at = self.seq if seq is None else seq
        segment = Segment(40_000, 443, at, self.ack, flags, self.window, memoryview(data))
        return bytes(self.tcp.receive(segment, now))

    def hear(self) -> list[Segment]:
        return self.tcp.outgoing()


def state_of(guest: Guest) -> State:
    """Read it anew; a type checker believes that it stays as it was."""
    return guest.tcp.state


def flags(segments: Sequence[Segment]) -> list[int]:
    return [segment.flags for segment in segments]


def test_a_syn_is_held_until_it_is_accepted() -> None:
    guest = Guest()
    assert guest.hear() == []
    guest.tcp.receive(syn(), 1.0)
    assert guest.hear() == []
    guest.open()


def test_a_held_syn_can_be_refused() -> None:
    guest = Guest()
    guest.tcp.abort()
    (answer,) = guest.hear()
    assert (answer.flags, answer.seq, answer.ack) == (RST | ACK, 0, guest.seq)
    assert state_of(guest) is State.CLOSED


def test_options_are_answered_in_kind() -> None:
    plain = Connection(syn(scale=-1), ISN, LIMITS, 0.0)
    plain.accept(0.0)
    (answer,) = plain.outgoing()
    assert (answer.mss, answer.scale) == (64_960, -1)
    scaled = Connection(syn(), ISN, LIMITS, 0.0)
    scaled.accept(0.0)
    (answer,) = scaled.outgoing()
    assert answer.scale == 7
    assert answer.window == 65_535


def test_data_in_order_is_handed_out_and_acknowledged_once_a_batch() -> None:
    guest = Guest().open()
    assert guest.say(b"abc") == b"abc"
    guest.seq = (guest.seq + 3) & MASK
    assert guest.say(b"def") == b"def"
    (answer,) = guest.hear()
    assert (answer.flags, answer.ack) == (ACK, (guest.seq + 3) & MASK)
    assert guest.hear() == []


def test_repeated_and_overlapping_data_is_handed_out_once() -> None:
    guest = Guest().open()
    assert guest.say(b"abcd") == b"abcd"
    assert guest.say(b"abcd") == b""
    assert guest.say(b"cdef", seq=guest.seq + 2) == b"ef"
    assert guest.tcp.nxt == (guest.seq + 6) & MASK


def test_data_beyond_a_gap_is_dropped_and_the_gap_told() -> None:
    guest = Guest().open()
    guest.hear()
    assert guest.say(b"later", seq=guest.seq + 10) == b""
    assert [answer.ack for answer in guest.hear()] == [guest.seq]


def test_more_than_the_window_is_not_taken() -> None:
    guest = Guest().open()
    data = bytes(70_000)
    assert len(guest.say(data)) == 65_535
    (answer,) = guest.hear()
    assert answer.window == 0
    guest.tcp.taken(65_535)
    (answer,) = guest.hear()
    assert answer.window << 7 == 65_535 >> 7 << 7


@given(
    steps=st.lists(
        st.tuples(
            st.integers(1, 20_000), st.integers(0, 30_000), st.sampled_from((65_535, 1 << 20))
        ),
        max_size=30,
    )
)
def test_the_edge_of_the_window_never_moves_back(steps: list[tuple[int, int, int]]) -> None:
    guest = Guest().open()
    edge = guest.tcp.nxt
    for size, taken, limit in steps:
        guest.tcp.limit = limit
        guest.seq = guest.tcp.nxt
        guest.say(bytes(size))
        guest.tcp.taken(min(taken, guest.tcp.held))
        for answer in guest.hear():
            new = (answer.ack + (answer.window << 7)) & MASK
            assert (new - edge) & MASK < 1 << 31
            edge = new
        assert guest.tcp.held <= (1 << 20) + 128


def test_sending_keeps_to_the_guests_window_and_segment_size() -> None:
    guest = Guest(Limits(floor=1 << 20)).open()
    guest.window = 40  # 128 bytes each, by the scale of 7
    guest.say()
    assert guest.tcp.sender.room() == 40 << 7
    guest.tcp.send(bytes(40 << 7), 0.0)
    assert [len(s.data) for s in guest.hear()] == [1460, 1460, 1460, 740]
    assert guest.tcp.sender.room() == 0


def test_no_splinters_are_sent_into_a_window_that_opens_slowly() -> None:
    guest = Guest().open()
    guest.tcp.send(bytes(guest.tcp.sender.room() - 10), 0.0)
    assert guest.tcp.sender.room() == 0


def test_an_unanswered_segment_is_sent_again_and_ever_more_rarely() -> None:
    guest = Guest().open()
    guest.hear()
    guest.tcp.send(b"hello", 10.0)
    assert len(guest.hear()) == 1
    times: list[float] = []
    now = 10.0
    while guest.tcp.tick(now := guest.tcp.deadline):
        times.append(now)
        assert [bytes(s.data) for s in guest.hear()] == [b"hello"]
    gaps = [b - a for a, b in zip([10.0, *times], times, strict=False)]
    assert gaps == [1, 2, 4, 8, 16, 30, 30, 30]
    assert now > times[-1]


def test_three_repetitions_of_an_acknowledgement_bring_the_lost_segment() -> None:
    guest = Guest().open()
    guest.tcp.send(bytes(1460) + b"b" * 1460 + b"c" * 1460, 0.0)
    guest.hear()
    guest.say()
    guest.say()
    assert guest.hear() == []
    guest.say()
    assert [bytes(s.data) for s in guest.hear()] == [bytes(1460)]
    guest.ack = (guest.ack + 1460) & MASK
    guest.say()
    assert [bytes(s.data) for s in guest.hear()] == [b"b" * 1460]
    guest.ack = (guest.ack + 2920) & MASK
    guest.say()
    assert guest.hear() == []
    assert guest.tcp.sender.all_taken


def test_a_part_of_a_segment_may_be_acknowledged() -> None:
    guest = Guest().open()
    guest.tcp.send(b"abcdef", 0.0)
    guest.hear()
    guest.ack = (guest.ack + 2) & MASK
    guest.say()
    assert guest.tcp.tick(guest.tcp.deadline)
    assert [bytes(s.data) for s in guest.hear()] == [b"cdef"]


def test_an_acknowledgement_of_what_was_never_sent_moves_nothing() -> None:
    guest = Guest().open()
    guest.hear()
    guest.ack = (guest.ack + 5) & MASK
    assert guest.say(b"x") == b""
    assert [s.flags for s in guest.hear()] == [ACK]


def test_a_closed_window_is_asked_about_until_it_opens() -> None:
    guest = Guest().open()
    guest.window = 0
    guest.say()
    assert guest.tcp.sender.room() == 0
    guest.hear()
    for _ in range(30):
        now = guest.tcp.deadline
        assert guest.tcp.tick(now)
        (probe,) = guest.hear()
        assert (probe.seq, len(probe.data)) == ((guest.ack - 1) & MASK, 0)
        guest.say(now=now)
        guest.hear()
    guest.window = 100
    guest.say()
    assert guest.tcp.sender.room() == 12_800


def test_a_guest_that_is_silent_for_too_long_is_given_up() -> None:
    guest = Guest(Limits(keepalive_s=10, keepalives=3)).open()
    guest.hear()
    probes = 0
    while guest.tcp.tick(guest.tcp.deadline):
        probes += len(guest.hear())
    assert probes == 3


def test_an_idle_guest_that_answers_is_kept() -> None:
    guest = Guest(Limits(keepalive_s=10, keepalives=3)).open()
    for _ in range(20):
        now = guest.tcp.deadline
        assert guest.tcp.tick(now)
        guest.say(now=now)
    assert state_of(guest) is State.OPEN


def test_the_guest_ends_first() -> None:
    guest = Guest().open()
    assert guest.say(b"last", FIN | ACK) == b"last"
    assert guest.tcp.finished
    guest.seq = (guest.seq + 5) & MASK
    assert [s.ack for s in guest.hear()] == [guest.seq]
    guest.tcp.send(b"more", 0.0)
    guest.tcp.finish(0.0)
    data, end = guest.hear()
    assert (bytes(data.data), end.flags) == (b"more", FIN | ACK)
    guest.ack = (guest.ack + 5) & MASK
    guest.say()
    assert state_of(guest) is State.CLOSED
    assert not guest.tcp.was_reset


def test_this_end_ends_first_and_lingers() -> None:
    guest = Guest().open()
    guest.tcp.finish(0.0)
    assert flags(guest.hear()) == [FIN | ACK]
    guest.ack = (guest.ack + 1) & MASK
    assert guest.say(b"still here") == b"still here"
    guest.seq = (guest.seq + 10) & MASK
    guest.say(flags=FIN | ACK)
    assert state_of(guest) is State.LINGERS
    guest.hear()
    guest.say(flags=FIN | ACK)
    assert flags(guest.hear()) == [ACK]
    assert guest.tcp.may_follow(syn(seq=guest.seq + 100))
    assert not guest.tcp.may_follow(syn(seq=guest.seq - 100))
    assert guest.tcp.tick(guest.tcp.deadline)
    assert state_of(guest) is State.CLOSED


def test_a_lost_end_is_sent_again() -> None:
    guest = Guest().open()
    guest.tcp.finish(0.0)
    guest.hear()
    assert guest.tcp.tick(guest.tcp.deadline)
    assert flags(guest.hear()) == [FIN | ACK]


def test_a_reset_counts_only_where_the_next_byte_is() -> None:
    guest = Guest().open()
    guest.hear()
    guest.say(flags=RST, seq=guest.seq + 5)
    assert state_of(guest) is State.OPEN
    assert flags(guest.hear()) == [ACK]
    guest.say(flags=RST, seq=guest.seq - 5)
    assert state_of(guest) is State.OPEN
    guest.say(flags=RST)
    assert state_of(guest) is State.CLOSED
    assert guest.tcp.was_reset


def test_a_syn_in_an_open_connection_is_challenged() -> None:
    guest = Guest().open()
    guest.hear()
    guest.tcp.receive(syn(seq=5), 0.0)
    assert flags(guest.hear()) == [ACK]
    assert not guest.tcp.may_follow(syn(seq=5))


def test_a_guest_that_started_anew_replaces_what_was_never_open() -> None:
    guest = Guest()
    assert not guest.tcp.may_follow(syn())
    assert guest.tcp.may_follow(syn(seq=99))


def test_a_handshake_that_is_not_completed_ends() -> None:
    guest = Guest(Limits(handshake_s=5))
    guest.tcp.accept(0.0)
    answers = len(guest.hear())
    while guest.tcp.tick(guest.tcp.deadline):
        answers += len(guest.hear())
    assert answers == 3  # at once, after one second, after two more


def test_a_wrong_answer_to_the_handshake_is_reset() -> None:
    guest = Guest()
    guest.tcp.accept(0.0)
    guest.hear()
    guest.ack = 77
    guest.say()
    (answer,) = guest.hear()
    assert (answer.flags, answer.seq) == (RST, 77)
    assert state_of(guest) is State.ANSWERED


def test_a_program_that_stops_repeating_its_syn_has_given_up() -> None:
    guest = Guest()
    for now in (1.0, 3.0, 7.0, 15.0):
        assert guest.tcp.tick(now)
        guest.tcp.receive(syn(), now)
    assert guest.tcp.tick(31.5)
    assert not guest.tcp.tick(guest.tcp.deadline)
    assert guest.tcp.deadline == pytest.approx(33.0)


Move = tuple[int, int, int, int, int, bytes]


@settings(max_examples=200)
@given(
    moves=st.lists(
        st.tuples(
            st.integers(-70_000, 70_000),
            st.integers(-70_000, 70_000),
            st.integers(0, 63),
            st.integers(0, 65_535),
            st.integers(0, 9),
            st.binary(max_size=40),
        ),
        max_size=25,
    ),
    mss=st.integers(0, 65_535),
)
def test_no_order_of_segments_breaks_a_bound(moves: list[Move], mss: int) -> None:
    guest = Guest(mss=mss)
    guest.tcp.accept(0.0)
    now, handed = 0.0, 0
    for seq, ack, bits, window, what, data in moves:
        now += 0.3
        at = (guest.seq + handed + seq * (what % 2)) & MASK
        acknowledged = (guest.tcp.sender.nxt + ack * (what % 3)) & MASK
        segment = Segment(40_000, 443, at, acknowledged, bits, window, memoryview(data))
        handed += len(guest.tcp.receive(segment, now))
        if room := guest.tcp.sender.room():
            guest.tcp.send(bytes(min(room, 3000)), now)
        if what == 9:
            guest.tcp.finish(now)
        guest.tcp.tick(now)
        assert all(len(answer.data) <= 64_960 for answer in guest.hear())
        assert 0 <= guest.tcp.sender.flying <= 65_535 + 1
        assert guest.tcp.held == handed <= 65_535
