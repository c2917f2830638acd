"""The prefix of `cloche attach` in each form that a terminal may send it in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.attach_keys import PrefixFinder
from app.prefix import prefix_byte, prefix_key

PREFIXES = [
    b"\x07",
    b"\x1b[103;5u",
    b"\x1b[103;5:1u",
    b"\x1b[103:71;69u",
    b"\x1b[103;133u",
    b"\x1b[1087::103;5u",
    b"\x1b[27;5;103~",
]
LETTERS = [b"d", b"D", b"\x1b[100u", b"\x1b[100;;100u", b"\x1b[100:68;2;68u", b"\x1b[1074::100u"]


def done(key: str, *pieces: bytes) -> list[tuple[str, bytes]]:
    finder = PrefixFinder(key, "dt")
    return [(it.do, it.data) for piece in pieces for it in finder.feed(piece)]


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_prefix_and_a_letter_in_any_form(prefix: bytes, letter: bytes) -> None:
    wanted = [("pass", b"ab"), ("d", b""), ("pass", b"c")]
    assert done("ctrl+g", b"ab" + prefix + letter + b"c") == wanted
    assert done("ctrl+g", b"ab", prefix, letter, b"c") == wanted


@pytest.mark.parametrize("prefix", PREFIXES)
def test_twice_it_goes_on_once(prefix: bytes) -> None:
    assert done("ctrl+g", prefix + prefix + b"d") == [("pass", prefix + b"d")]
    assert done("ctrl+g", prefix + b"x") == [("pass", prefix + b"x")]


def test_keys_let_go_in_between_change_nothing() -> None:
    got = done("ctrl+g", b"\x1b[103;5u", b"\x1b[103;5:3u\x1b[57442;1:3u", b"\x1b[100u")
    assert got == [("pass", b"\x1b[103;5:3u\x1b[57442;1:3u"), ("d", b"")]


@pytest.mark.parametrize(
    "data",
    [b"\x1b[103u", b"\x1b[103;3u", b"\x1b[104;5u", b"\x1b[27;5;104~", b"\x1b[103;5", b"\x1b[A",
     b"\x1b[103;7u", b"gd", "ж".encode()],
)  # fmt: skip
def test_what_is_not_the_prefix(data: bytes) -> None:
    assert done("ctrl+g", data + b"d") == [("pass", data + b"d")]


@pytest.mark.parametrize(
    ("written", "sequence"),
    [
        ("ctrl+space", b"\x1b[32;5u"),
        ("ctrl+]", b"\x1b[93;5u"),
        ("ctrl+\\", b"\x1b[92;5u"),
        ("ctrl+^", b"\x1b[54:94;6u"),
        ("ctrl+_", b"\x1b[45;6u"),
        ("ctrl+_", b"\x1b[27;6;95~"),
        ("ctrl+a", b"\x1b[97;5u"),
    ],
)
def test_other_prefixes(written: str, sequence: bytes) -> None:
    key = prefix_key(written)
    for prefix in (sequence, prefix_byte(key)):
        assert done(key, prefix, b"t", b"\x07d") == [("t", b""), ("pass", b"\x07d")]


@given(st.binary(max_size=40))
def test_without_a_prefix_everything_goes_on(data: bytes) -> None:
    data = data.replace(b"\x07", b"")
    assert b"".join(it for _, it in done("ctrl+g", data)) == data
