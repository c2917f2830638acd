from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.filter import MAX_STRING, OutputFilter

HARMLESS = (
    b"plain \xc3\xa9 text\r\n",
    b"\x1b[1;31mred\x1b[0m\x1b[2J\x1b[H\x1b[?1049h\x1b[6n",
    b"\x1b]0;title\x07\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\",
    b"\x1b[18t\x1b[22;0t\x1b[23;0t",
)
HARMFUL = (
    b"\x1b]52;c;aGk=\x07",
    b"\x1b]52;c;?\x1b\\",
    b"\x1bPq#0;2;0;0;0\x1b\\",
    b"\x1b_Ga=T;AAAA\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstring\x1b\\",
    b"\x1b]1337;File=inline=1:AAAA\x07",
    b"\x1b]777;notify;a;b\x07",
    b"\x1b[21t",
    b"\x1b[8;10;10t",
)


@pytest.mark.parametrize("data", HARMLESS)
def test_what_a_program_needs_passes(data: bytes) -> None:
    assert OutputFilter().feed(data) == data


@pytest.mark.parametrize("data", HARMFUL)
def test_what_acts_on_the_users_machine_does_not(data: bytes) -> None:
    assert OutputFilter().feed(b"a" + data + b"b") == b"ab"


@given(
    parts=st.lists(st.sampled_from((*HARMLESS, *HARMFUL)), max_size=8),
    step=st.integers(1, 40),
)
def test_the_same_comes_out_however_it_is_cut(parts: list[bytes], step: int) -> None:
    stream = b"".join(parts) + b"."
    whole = OutputFilter()
    pieces = OutputFilter()
    cut = b"".join(pieces.feed(stream[i : i + step]) for i in range(0, len(stream), step))
    assert cut == whole.feed(stream)
    assert cut == b"".join(part for part in parts if part in HARMLESS) + b"."


def test_a_string_without_end_is_dropped_and_not_collected() -> None:
    one = OutputFilter()
    assert one.feed(b"\x1b]52;c;" + b"A" * (MAX_STRING + 1)) == b""
    assert one.feed(b"A" * 100_000) == b""
    assert one.feed(b"A\x1b") == b""
    assert one.feed(b"\\after") == b"after"
