"""Pastes whole and in pieces: what a guest gets, whatever the pieces."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doubles.engines import engine
from vm.terminal.paste import BEGIN, END, Paste

CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")
PIECES = st.lists(st.text("a漢\r\n\t\x1b[201~\x00\x9b\x7f", max_size=12), min_size=1, max_size=6)


def sent(pieces: list[str], *, bracketed: bool) -> bytes:
    paste, last = Paste(), len(pieces) - 1
    return b"".join(
        paste.piece(text, begin=not at, end=at == last, bracketed=bracketed)
        for at, text in enumerate(pieces)
    )


@given(PIECES, st.booleans())
@settings(max_examples=400, deadline=None)
def test_pieces_are_the_paste_that_they_were_cut_from(pieces: list[str], bracketed: bool) -> None:
    whole = sent(["".join(pieces)], bracketed=bracketed)
    assert sent(pieces, bracketed=bracketed) == whole
    inner = whole.removeprefix(BEGIN).removesuffix(END) if bracketed else whole
    assert not CONTROL.search(inner)
    assert bracketed or b"\n" not in inner
    assert whole == (BEGIN + inner + END if bracketed else inner)


@pytest.mark.parametrize(
    ("text", "plain", "bracketed"),
    [
        ("a", b"a", b"a"),
        ("a\nb\r\nc\rd", b"a\rb\rc\rd", b"a\nb\nc\nd"),
        ("\x1b[201~rm -rf\n", b" [201~rm -rf\r", b" [201~rm -rf\n"),
        ("tab\tbell\x07", b"tab\tbell ", b"tab\tbell "),
        ("\ud800é", b"?\xc3\xa9", b"?\xc3\xa9"),
        ("", b"", b""),
    ],
)
def test_what_a_guest_gets(text: str, plain: bytes, bracketed: bytes) -> None:
    assert sent([text], bracketed=False) == plain
    assert sent([text], bracketed=True) == BEGIN + bracketed + END


def test_a_line_end_that_was_cut_is_one_line_end_and_no_more() -> None:
    assert sent(["a\r", "\n", "\nb"], bracketed=True) == BEGIN + b"a\n\nb" + END
    assert sent(["a\r", "", "\n", "\r", "b"], bracketed=False) == b"a\r\rb"


def test_a_guest_that_changes_its_mind_gets_the_marks_that_it_was_promised() -> None:
    paste = Paste()
    first = paste.piece("a", begin=True, end=False, bracketed=True)
    middle = paste.piece("b", begin=False, end=False, bracketed=False)
    last = paste.piece("c", begin=False, end=True, bracketed=False)
    assert (first, middle, last) == (BEGIN + b"a", b"b", b"c" + END)


def test_pieces_without_their_begin_or_end_are_closed_all_the_same() -> None:
    paste = Paste()
    assert paste.piece("a", begin=False, end=False, bracketed=True) == BEGIN + b"a"
    again = paste.piece("b", begin=True, end=True, bracketed=True)
    assert again == END + BEGIN + b"b" + END
    assert paste.piece("c", begin=False, end=True, bracketed=False) == b"c"


def test_the_engine_asks_its_guests_mode() -> None:
    terminal = engine()
    assert terminal.encode_paste("a\nb") == b"a\rb"
    terminal.feed(b"\x1b[?2004h")
    assert terminal.encode_paste("a\n", end=False) == BEGIN + b"a\n"
    terminal.feed(b"\x1b[?2004l")
    assert terminal.encode_paste("b", begin=False) == b"b" + END
