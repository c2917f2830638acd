"""Keys as Textual names them, and the bytes that a guest gets in each of its modes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.engines import engine
from vm.terminal.key_names import Key, parse

MODES = {
    "plain": b"",
    "cursor": b"\x1b[?1h",
    "other": b"\x1b[>4;2m",
    "kitty": b"\x1b[>1u",
    "all": b"\x1b[>31u",
}

# key, character, then what is sent in: plain, cursor keys, modifyOtherKeys 2, kitty 1, kitty 31
GOLDEN = [
    ("a", "a", b"a", b"a", b"a", b"a", b"\x1b[97;;97u"),
    ("A", "A", b"A", b"A", b"\x1b[27;2;65~", b"A", b"\x1b[97:65;2;65u"),
    ("é", "é", "é".encode(), "é".encode(), "é".encode(), "é".encode(), b"\x1b[233;;233u"),
    ("ctrl+a", None, b"\x01", b"\x01", b"\x1b[27;5;97~", b"\x1b[97;5u", b"\x1b[97;5u"),
    ("ctrl+a", "\x01", b"\x01", b"\x01", b"\x1b[27;5;97~", b"\x1b[97;5u", b"\x1b[97;5u"),
    ("ctrl+c", "\x03", b"\x03", b"\x03", b"\x1b[27;5;99~", b"\x1b[99;5u", b"\x1b[99;5u"),
    ("ctrl+@", "\x00", b"\0", b"\0", b"\x1b[27;5;32~", b"\x1b[32;5u", b"\x1b[32;5u"),
    ("ctrl+space", None, b"\0", b"\0", b"\x1b[27;5;32~", b"\x1b[32;5u", b"\x1b[32;5u"),
    ("alt+a", None, b"\x1ba", b"\x1ba", b"\x1b[27;3;97~", b"\x1b[97;3u", b"\x1b[97;3u"),
    ("alt+ctrl+a", None, b"\x1b\x01", b"\x1b\x01", b"\x1b[27;7;97~", b"\x1b[97;7u", b"\x1b[97;7u"),
    ("ctrl+shift+a", None, b"\x01", b"\x01", b"\x1b[27;6;65~", b"\x1b[97;6u", b"\x1b[97:65;6u"),
    ("ctrl+left_square_bracket", None, b"\x1b", b"\x1b", b"\x1b[27;5;91~", b"\x1b[91;5u",
     b"\x1b[91;5u"),
    ("ctrl+backslash", "\x1c", b"\x1c", b"\x1c", b"\x1b[27;5;92~", b"\x1b[92;5u", b"\x1b[92;5u"),
    ("ctrl+underscore", "\x1f", b"\x1f", b"\x1f", b"\x1b[27;6;95~", b"\x1b[45;6u",
     b"\x1b[45:95;6u"),
    ("enter", "\r", b"\r", b"\r", b"\r", b"\r", b"\x1b[13u"),
    ("shift+enter", None, b"\r", b"\r", b"\x1b[27;2;13~", b"\x1b[13;2u", b"\x1b[13;2u"),
    ("alt+enter", None, b"\x1b\r", b"\x1b\r", b"\x1b[27;3;13~", b"\x1b[13;3u", b"\x1b[13;3u"),
    ("ctrl+enter", None, b"\r", b"\r", b"\x1b[27;5;13~", b"\x1b[13;5u", b"\x1b[13;5u"),
    ("tab", "\t", b"\t", b"\t", b"\t", b"\t", b"\x1b[9u"),
    ("shift+tab", None, b"\x1b[Z", b"\x1b[Z", b"\x1b[Z", b"\x1b[9;2u", b"\x1b[9;2u"),
    ("escape", "\x1b", b"\x1b", b"\x1b", b"\x1b", b"\x1b[27u", b"\x1b[27u"),
    ("backspace", "\x7f", b"\x7f", b"\x7f", b"\x7f", b"\x7f", b"\x1b[127u"),
    ("alt+backspace", None, b"\x1b\x7f", b"\x1b\x7f", b"\x1b[27;3;127~", b"\x1b[127;3u",
     b"\x1b[127;3u"),
    ("up", None, b"\x1b[A", b"\x1bOA", b"\x1b[A", b"\x1b[A", b"\x1b[1;1:1A"),
    ("shift+up", None, b"\x1b[1;2A", b"\x1b[1;2A", b"\x1b[1;2A", b"\x1b[1;2A", b"\x1b[1;2:1A"),
    ("ctrl+left", None, b"\x1b[1;5D", b"\x1b[1;5D", b"\x1b[1;5D", b"\x1b[1;5D", b"\x1b[1;5:1D"),
    ("home", None, b"\x1b[H", b"\x1bOH", b"\x1b[H", b"\x1b[H", b"\x1b[1;1:1H"),
    ("pageup", None, b"\x1b[5~", b"\x1b[5~", b"\x1b[5~", b"\x1b[5~", b"\x1b[5~"),
    ("delete", None, b"\x1b[3~", b"\x1b[3~", b"\x1b[3~", b"\x1b[3~", b"\x1b[3~"),
    ("f1", None, b"\x1bOP", b"\x1bOP", b"\x1bOP", b"\x1b[P", b"\x1b[1;1:1P"),
    ("f5", None, b"\x1b[15~", b"\x1b[15~", b"\x1b[15~", b"\x1b[15~", b"\x1b[15~"),
    ("space", " ", b" ", b" ", b" ", b" ", b"\x1b[32;;32u"),
    ("question_mark", "?", b"?", b"?", b"?", b"?", b"\x1b[47:63;2;63u"),
    ("plus", "+", b"+", b"+", b"+", b"+", b"\x1b[61:43;2;43u"),
    ("left_curly_bracket", "{", b"{", b"{", b"\x1b[27;2;123~", b"{", b"\x1b[91:123;2;123u"),
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("row", GOLDEN, ids=[f"{row[0]}-{row[1] is not None}" for row in GOLDEN])
def test_keys_in_every_mode(row: tuple[str, str | None, bytes], mode: str) -> None:
    key, character, *wanted = row
    terminal = engine()
    terminal.feed(MODES[mode])
    assert terminal.encode_key(key, character) == wanted[list(MODES).index(mode)]


@pytest.mark.parametrize(
    ("key", "character", "sent"),
    [
        ("grinning_face", "😀", "😀"),
        ("family", "👨\u200d👩", "👨\u200d👩"),
        ("no_such_key", None, ""),
        ("no_such_key", "\x1b[201~", ""),
        ("<ignore>", "\x1b[9999x", ""),
        ("left_shift", None, ""),
        ("", None, ""),
        ("ß", "ß", "ß"),
        ("İ", "İ", "İ"),
        ("日", "日", "日"),
        ("ctrl+semicolon", None, ";"),
        ("x" * 5000, None, ""),
    ],
)
def test_keys_that_are_only_text(key: str, character: str | None, sent: str) -> None:
    assert engine().encode_key(key, character) == sent.encode()


def test_keys_follow_the_guest_out_of_a_mode() -> None:
    terminal = engine()
    terminal.feed(b"\x1b[?1h")
    assert terminal.encode_key("up", None) == b"\x1bOA"
    terminal.feed(b"\x1b[?1l")
    assert terminal.encode_key("up", None) == b"\x1b[A"


def test_the_engines_kitty_flags_are_the_screens_own() -> None:
    terminal = engine()
    terminal.feed(b"\x1b[?1049h\x1b[>1u")
    assert terminal.encode_key("escape", "\x1b") == b"\x1b[27u"
    terminal.feed(b"\x1b[?1049l")
    assert terminal.encode_key("escape", "\x1b") == b"\x1b"


@given(
    st.sampled_from(["", "ctrl+", "alt+", "shift+", "alt+ctrl+", "hyper+"]),
    st.text(max_size=8),
    st.none() | st.text(max_size=4),
)
def test_any_name_is_a_key_or_printable_text(prefix: str, base: str, character: str | None) -> None:
    found = parse(prefix + base, character)
    text = found.text if isinstance(found, Key) else found
    assert len(text) <= 32
    assert not any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 for c in text)


@given(st.text(max_size=12), st.none() | st.text(max_size=4))
def test_any_key_can_be_encoded(key: str, character: str | None) -> None:
    assert isinstance(engine().encode_key(key, character), bytes)
