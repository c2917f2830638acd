"""The terminal that PID 1 keeps: what was printed is there later, once; nobody is waited for."""

from __future__ import annotations

import shlex
import struct
import time
from typing import TYPE_CHECKING

import pytest

from tests.vm.guest_host import WAIT_S, Guest, Port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RING = 1 << 20
BEHIND = RING // 2
RUN = 1 << 63 | 7


@pytest.fixture
def guest(program: Path, tmp_path: Path) -> Iterator[Guest]:
    running = Guest(program, tmp_path)
    yield running
    running.close()


class Host:
    """One attachment: the frames of a channel."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self.output = b""
        self.taken = 0
        self.status: int | None = None
        kind, payload = self.frame()
        assert kind == b"B"
        self.run, self.begun, self.waiting = struct.unpack("<QQI", payload)

    def frame(self) -> tuple[bytes, bytes]:
        (length,) = struct.unpack("<I", self.port.take(4))
        assert 1 <= length <= 1 + 32768
        body = self.port.take(length)
        return body[:1], body[1:]

    def hear(self) -> None:
        kind, payload = self.frame()
        if kind == b"O":
            self.output += payload
        elif kind == b"T":
            self.taken += struct.unpack("<I", payload)[0]
        else:
            assert kind == b"X"
            (self.status,) = struct.unpack("<I", payload)

    def until(self, wanted: bytes) -> None:
        while wanted not in self.output:
            self.hear()

    def say(self, kind: bytes, payload: bytes = b"") -> None:
        self.port.send(struct.pack("<I", 1 + len(payload)) + kind + payload)

    def record(self) -> None:
        self.say(b"A", struct.pack("<Q", self.begun + len(self.output)))

    def to_end(self) -> bytes:
        """Take everything and acknowledge it, up to the end."""
        heard = 0
        while self.status is None:
            self.hear()
            if len(self.output) - heard > 100_000:
                heard = len(self.output)
                self.record()
        return self.output


def start(guest: Guest, script: str, run: int = RUN) -> int:
    """Start a program on a terminal; the exit status of `/bin/hold`."""
    guest.control.connect()
    words = ("guest", "hold", "start", str(run), "80", "24", script)
    guest.control.send(f"{shlex.join(words)}\n".encode())
    guest.control.until(b"exit ")
    return int(guest.control.until(b"\n"))


def ask(guest: Guest, since: int = 0, run: int = RUN, size: str = "80 24") -> Port:
    guest.control.connect()
    guest.control.send(f"guest hold attach {run} {since} {size}\n".encode())
    guest.control.until(b"banner\n")
    return guest.control


def attach(guest: Guest, since: int = 0, run: int = RUN, size: str = "80 24") -> Host:
    return Host(ask(guest, since, run, size))


def settled(guest: Guest, name: str) -> None:
    """Wait until a program says by a file how far it is."""
    until = time.monotonic() + WAIT_S
    while not (guest.folder / name).exists():
        assert time.monotonic() < until, guest.console()
        time.sleep(0.01)


def test_what_was_printed_before_anybody_came_is_there(guest: Guest) -> None:
    assert start(guest, "echo first words; touch said; exec cat") == 0
    settled(guest, "said")
    host = attach(guest)
    assert (host.run, host.begun, host.waiting) == (RUN, 0, 0)
    host.until(b"first words\r\n")
    host.say(b"I", b"hello\n")
    host.until(b"hello\r\nhello\r\n")
    assert host.taken == 6


def test_a_host_goes_on_exactly_where_it_stopped(guest: Guest) -> None:
    lines = b"".join(b"line %d\r\n" % number for number in range(20_000))
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; touch said; cat"
    assert start(guest, script) == 0
    first = attach(guest)
    while len(first.output) < 50_000:
        first.hear()
    kept = first.output[:40_001]  # the rest was on its way when the host died
    second = attach(guest, len(kept))
    second.until(b"line 19999\r\n")
    assert second.begun == len(kept)
    assert kept + second.output == lines


def test_the_ring_says_how_much_is_lost(guest: Guest) -> None:
    whole = b"".join(b"%07d\r\n" % number for number in range(200_000))
    assert start(guest, "seq -f %07.0f 0 199999; exit 4") == 0
    host = attach(guest, len(whole))
    while host.begun < len(whole):  # it is still printing
        host = attach(guest, len(whole))
    host = attach(guest, 10)
    assert host.to_end() == whole[-RING:]
    assert (host.begun, host.status) == (len(whole) - RING, 4)


def test_a_program_waits_for_a_host_that_records_nothing(guest: Guest) -> None:
    script = "until [ -e go ]; do sleep 0.05; done; head -c 3000000 /dev/zero; touch said"
    assert start(guest, script) == 0
    host = attach(guest)
    (guest.folder / "go").touch()
    while len(host.output) < BEHIND:
        host.hear()
    assert len(host.output) == BEHIND
    host.say(b"I", b"still heard")
    while host.taken < 11:
        host.hear()
    assert not (guest.folder / "said").exists()
    assert len(host.output) <= BEHIND
    host.record()
    assert host.to_end().replace(b"still heard", b"") == bytes(3_000_000)
    assert host.status == 0


def test_without_a_host_it_waits_for_nobody(guest: Guest) -> None:
    assert start(guest, "head -c 5000000 /dev/zero; touch said; exec sleep 100") == 0
    settled(guest, "said")
    assert attach(guest).begun >= 5_000_000 - RING


LINES = 600
SLOW = f"import time; [(print(i, flush=True), time.sleep(0.0003)) for i in range({LINES})]"
REST_S = 0.003
"""Least time between two hand-overs of a little: REST_MS, counted in whole milliseconds."""


def test_lines_that_come_one_after_another_are_handed_over_together(guest: Guest) -> None:
    """Each alone would cost a switch, a frame and a packet: most of an emulated processor."""
    program = shlex.join(["python3", "-c", SLOW])
    assert start(guest, f"until [ -e go ]; do sleep 0.01; done; exec {program}") == 0
    host = attach(guest)
    (guest.folder / "go").touch()
    begin, frames = time.monotonic(), 0
    while host.status is None:
        host.hear()
        frames += 1
    took = time.monotonic() - begin
    assert host.output.split() == [b"%d" % number for number in range(LINES)]
    # lines of a program that is slow itself, on a busy host, have nothing to gather with
    assert frames < took / REST_S + 10


def test_an_echo_does_not_wait_for_more(guest: Guest) -> None:
    assert start(guest, "echo ready; exec cat") == 0
    host = attach(guest)
    host.until(b"ready")
    took: list[float] = []
    for number in range(30):
        time.sleep(0.01)  # a silence: what follows it comes at once
        begin = time.monotonic()
        host.say(b"I", b"%c" % (97 + number % 26))
        host.until(b"ready\r\n" + bytes(97 + at % 26 for at in range(number + 1)))
        took.append(time.monotonic() - begin)
    assert min(took) < 0.004, "REST_MS"


def test_the_size_follows_and_one_host_has_it(guest: Guest) -> None:
    script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"
    assert start(guest, script) == 0
    host = attach(guest, size="100 30")
    host.until(b"ready")
    host.say(b"W", struct.pack("<HH", 120, 40))
    host.until(b"40 120")
    host = attach(guest, 0, size="90 20")
    host.until(b"20 90")


def test_the_last_words_come_before_the_end(guest: Guest) -> None:
    assert start(guest, "stty raw; head -c 70000 /dev/zero; kill -9 $$") == 0
    host = attach(guest)
    assert host.to_end() == bytes(70_000)
    assert host.status == 137
    again = attach(guest, 69_999)
    assert (again.to_end(), again.status) == (b"\0", 137)


def test_a_child_that_keeps_the_terminal_does_not_keep_us(guest: Guest) -> None:
    script = "setsid sh -c 'trap \"\" HUP; while :; do echo more || exit; done' & exit 3"
    assert start(guest, script) == 0
    host = attach(guest)
    host.to_end()
    assert host.status == 3
    assert len(host.output) < 4 * RING


def test_a_program_that_closes_its_terminal_runs_on(guest: Guest) -> None:
    script = "exec </dev/null >/dev/null 2>&1; touch said; until [ -e go ]; do sleep 0.05; done"
    assert start(guest, script) == 0
    settled(guest, "said")
    host = attach(guest)
    host.say(b"I", b"x" * 30_000)
    while host.taken < 30_000:  # nobody reads it, and it is not kept
        host.hear()
    (guest.folder / "go").touch()
    assert (host.to_end(), host.status) == (b"", 0)


def test_one_program_at_a_time_and_the_next_begins_anew(guest: Guest) -> None:
    assert start(guest, "echo one; until [ -e go ]; do sleep 0.05; done") == 0
    assert start(guest, "echo two", RUN + 1) == 125
    attach(guest).until(b"one")
    (guest.folder / "go").touch()
    host = attach(guest)
    host.to_end()
    assert start(guest, "echo two", RUN + 1) == 0
    host = attach(guest, run=RUN + 1)
    assert (host.to_end(), host.begun, host.status) == (b"two\r\n", 0, 0)


def test_no_such_run(guest: Guest) -> None:
    ask(guest).until(b"exit 3\n")
    assert start(guest, "echo here; exec sleep 100") == 0
    ask(guest, run=RUN + 1).until(b"exit 3\n")
    host = attach(guest, run=0)
    assert host.run == RUN
    host.until(b"here")


def test_a_count_that_lies_ahead_begins_at_the_end(guest: Guest) -> None:
    """A machine that was put back to an earlier moment has printed less than was recorded."""
    assert start(guest, "echo here; touch said; exec cat") == 0
    settled(guest, "said")
    assert attach(guest, 1 << 40).begun <= 6


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        (b"A", struct.pack("<Q", 1 << 40)),
        (b"A", b"short"),
        (b"W", b"long size"),
        (b"?", b""),
        (b"I", b"x" * 32769),
    ],
)
def test_a_host_that_speaks_nonsense_is_let_go(guest: Guest, kind: bytes, payload: bytes) -> None:
    assert start(guest, "echo here; exec cat") == 0
    host = attach(guest)
    host.until(b"here\r\n")
    host.say(kind, payload)
    host.port.until(b"exit 0\n")
    attach(guest).until(b"here\r\n")


def test_input_for_a_program_that_does_not_read_is_bounded(guest: Guest) -> None:
    assert start(guest, "stty raw -echo; touch said; exec sleep 100") == 0
    settled(guest, "said")
    host = attach(guest)
    sent = 0
    while sent < 4 << 20:  # the terminal itself takes some; the rest may not grow without bound
        host.say(b"I", b"x" * 16384)
        sent += 16384
        if sent - host.taken > 48_000:
            host.port.socket.settimeout(0.5)
            try:
                while sent - host.taken > 48_000:
                    host.hear()
            except TimeoutError:
                break
    host.port.socket.settimeout(WAIT_S)
    for _ in range(8):
        host.say(b"I", b"x" * 16384)
    host.port.until(b"exit 0\n")
    assert attach(guest).waiting <= 65536


def test_two_hundred_hosts_that_come_and_go_in_a_flood(guest: Guest) -> None:
    script = "i=0; while :; do echo $i; i=$((i+1)); done"
    assert start(guest, script) == 0
    record, since = b"", 0
    for number in range(200):
        host = attach(guest, since)
        record = record if host.begun == since else b""
        assert host.begun >= since
        while len(host.output) < (number % 7) * 3000:
            host.hear()
        record += host.output
        since = host.begun + len(host.output)
    numbers = [int(word) for word in record.split(b"\r\n")[1:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
