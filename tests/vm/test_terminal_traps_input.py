"""Bad input: cuts at every byte, floods, storms of sizes; bounded memory and time, no exception."""

from __future__ import annotations

import random
import time

import pytest

from tests.conformance.guest_noise import recorded, stream
from tests.doubles.engines import engine, lines


@pytest.mark.parametrize("seed", range(12))
def test_noise_may_be_cut_at_every_byte(seed: int) -> None:
    chosen = random.Random(seed)
    data = stream(chosen, 2_500)
    whole, bytewise, pieces = engine(60, 15), engine(60, 15), engine(60, 15)
    whole.feed(data)
    for byte in data:
        bytewise.feed(bytes([byte]))
    at = 0
    while at < len(data):
        step = chosen.randrange(1, 40)
        pieces.feed(data[at : at + step])
        at += step
    frame = whole.frame(full=True)
    assert bytewise.frame(full=True) == frame
    assert pieces.frame(full=True) == frame
    replies = whole.take_replies()
    assert bytewise.take_replies() == pieces.take_replies() == replies


@pytest.mark.parametrize("number", range(len(recorded())))
def test_real_output_may_be_cut_anywhere(number: int) -> None:
    data = recorded()[number][:4_000]
    whole = engine()
    whole.feed(data)
    frame = whole.frame(full=True)
    for step in (1, 3, 17, 1021):
        pieces = engine()
        for at in range(0, len(data), step):
            pieces.feed(data[at : at + step])
        assert pieces.frame(full=True) == frame
        pieces.close()


FLOODS = {
    "no newline": b"y" * 4096,
    "an endless title": b"\x1b]0;" + b"t" * 4092,
    "an endless clipboard": b"\x1b]52;c;" + b"QUFB" * 1022,
    "an endless graphics command": b"\x1b_G" + b"A" * 4093,
    "an endless device string": b"\x1bPq" + b"~" * 4093,
    "endless parameters": b"\x1b[" + b"1;" * 2047,
    "combining marks": "\u0301".encode() * 2048,
    "invalid bytes": b"\xff\xc0\x80\xed" * 1024,
    "links": b"".join(b"\x1b]8;id=%d;http://x/%d\x1b\\l" % (n, n) for n in range(120)),
    "styles": b"".join(b"\x1b[38;2;%d;%d;3mx" % (n, n * 7 % 256) for n in range(200)),
    "titles on a stack": b"\x1b]2;t\x07\x1b[22t" * 300,
    "kitty flags": b"\x1b[>1u" * 800,
}


@pytest.mark.parametrize("name", FLOODS)
def test_ten_megabytes_of_one_kind_stay_bounded(name: str) -> None:
    piece = FLOODS[name] * 16
    endless = name.startswith("an endless") or name == "endless parameters"
    rest = piece.replace(b"\x1b", b"") if endless else piece
    terminal = engine()
    before = memory()
    terminal.feed(piece)
    for _ in range(10_000_000 // len(piece)):
        terminal.feed(rest)
    assert memory() - before < 40 << 20
    terminal.feed(b"\x18\x1b\\\x1bcalive")
    assert lines(terminal)[0] == "alive"
    terminal.close()


def memory() -> int:
    """Resident bytes of this process now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_a_thousand_resizes_take_little_time_and_memory() -> None:
    terminal = engine(120, 40)
    terminal.feed("some 漢字 text with é and 👍 in it\r\n".encode() * 100)
    begin = time.process_time()
    before = memory()
    for step in range(1000):
        terminal.resize(20 + step * 37 % 180, 5 + step * 17 % 60)
    assert time.process_time() - begin < 5  # usually 0.05
    assert memory() - before < 40 << 20
    assert "text with" in terminal.text(scrollback=True)


@pytest.mark.parametrize("size", [(0, 0), (1, 1), (-5, 3), (65_535, 65_535), (20, 5), (1000, 500)])
def test_no_size_ends_the_engine(size: tuple[int, int]) -> None:
    terminal = engine(*size)
    terminal.feed("x漢👍e\u0301\r\n".encode() * 600)
    terminal.resize(80, 24)
    terminal.resize(*size)
    frame = terminal.frame(full=True)
    assert (frame.columns, frame.height) == terminal.size
    assert 20 <= frame.columns <= 1000
    assert 5 <= frame.height <= 500
