from __future__ import annotations

import re

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
    b"\x1b[>2t",
    b"\x1b[5i",
    b"\x1b[?5i",
    b"\x1b%@",
    b"\x1b]52;c;aGk=\x18",
)
DISGUISED = {
    "a string cut short by another": (b"\x1b]0;x\x1b]52;c;aGk=\x07", b""),
    "a question within a string": (b"\x1b]8;;x\x1b[21t\x07", b"\x07"),
    "a device string within a string": (b"\x1b]2;x\x1bP$qr\x1b\\", b""),
    "a control after the escape": (b"\x1b\r]52;c;aGk=\x07", b"\r"),
    "a control in a sequence": (b"\x1b[2\n1t", b"\n"),
    "a delete in a sequence": (b"\x1b\x7f[2\x7f1t", b""),
    "a string of eight bits": ("\x9d52;c;aGk=\x9c".encode(), b"52;c;aGk="),
    "raw eight bits": (b"\x9d52;c;aGk=\x9c", "\ufffd52;c;aGk=\ufffd".encode()),
    "eight bits within a sequence": ("\x1b[1\u011d52;c;aGk=\x07".encode(), b"\x1b[152;c;aGk=\x07"),
    "other encodings": (b"\x1b%@\xc4\x9d52;c;aGk=\x07", "\u011d52;c;aGk=\x07".encode()),
    "a file": (b"\x1b]8;;file:///etc/passwd\x07x", b"\x1b]8;;\x1b\\x"),
    "a program": (b"\x1b]8;id=1;ssh://-oProxyCommand=x\x07x", b"\x1b]8;;\x1b\\x"),
}


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


@pytest.mark.parametrize("name", DISGUISED)
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_no_disguise_passes(name: str, step: int) -> None:
    data, passed = DISGUISED[name]
    one = OutputFilter()
    assert b"".join(one.feed(data[i : i + step]) for i in range(0, len(data), step)) == passed


FRAGMENTS = (
    *(b"\x1b", b"[", b"]", b"]0;", b"]8;;", b"]52;c;", b"P", b"_G", b"21t", b"?", b"1", b";"),
    *(b"\x07", b"\\", b"\x18", b"\0", b"\n", b"\x7f", b"\x9b", b"\x9d", b"\xc2", b"\xc4", b"m"),
    *(b"http://x", b"file:///", b"text", b"%", b"@", b"i", b"t"),
)
GOOD = re.compile(
    rb"\x1b\](?:0;[^\x18\x1a\x1b\x07]*|8;(?:[^;\x1b\x07]*;(?:http://[!-~]+)?)?|[08])(?:\x07|\x1b\\)"
)
BAD = re.compile(
    rb"\x1b[\x00-\x17\x19\x1c-\x1f\x7f]*(?:[\]PX^_]|%[0-~]|\[[ -?\x00-\x17\x19\x1c-\x1f\x7f]*[ti])"
)


@given(parts=st.lists(st.sampled_from(FRAGMENTS), max_size=40), step=st.integers(1, 9))
def test_whatever_comes_what_passes_reads_the_same_everywhere(
    parts: list[bytes], step: int
) -> None:
    data = b"".join(parts)
    one, whole = OutputFilter(), OutputFilter()
    passed = b"".join(one.feed(data[i : i + step]) for i in range(0, len(data), step))
    passed += one.feed(b"\x18\x1b\\\x18")
    assert passed == whole.feed(data) + whole.feed(b"\x18\x1b\\\x18")
    assert BAD.search(GOOD.sub(b"", passed)) is None
    assert not any(0x80 <= ord(character) < 0xA0 for character in passed.decode())


def test_it_knows_when_colours_have_to_be_given_back() -> None:
    one = OutputFilter()
    one.feed(b"\x1b]11;?\x07\x1b]0;t\x07")
    assert not one.colored
    one.feed(b"\x1b]11;red\x07")
    assert one.colored


def test_a_string_without_end_is_dropped_and_not_collected() -> None:
    one = OutputFilter()
    assert one.feed(b"\x1b]52;c;" + b"A" * (MAX_STRING + 1)) == b""
    assert one.feed(b"A" * 100_000) == b""
    assert one.feed(b"A\x1b") == b""
    assert one.feed(b"\\after") == b"after"
