"""Textual's parser with our wrapper: what a terminal without the kitty protocol sends."""

from __future__ import annotations

from typing import Any

import pytest
from textual import constants, events
from textual._xterm_parser import XTermParser

from widgets.terminal_keys import ESCAPE_DELAY, alt_key, mend_parser


class Mended(XTermParser):
    """A parser of this test's own, so that no other test sees it mended."""


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> XTermParser:
    monkeypatch.setattr(constants, "ESCAPE_DELAY", constants.ESCAPE_DELAY)
    mend_parser(Mended)
    mend_parser(Mended)
    return Mended()


def keys(parser: XTermParser, data: str) -> list[tuple[str, str | None]]:
    found = [*parser.feed(data), *parser.feed("")]
    return [(it.key, it.character) for it in found if isinstance(it, events.Key)]


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ("\x1b\r", ["alt+enter"]),
        ("\x1b\x7f", ["alt+backspace"]),
        ("\x1b\x01", ["alt+ctrl+a"]),
        ("\x1b\x18", ["alt+ctrl+x"]),
        ("\x1b\x1a", ["alt+ctrl+z"]),
        ("\x1ba", ["alt+a"]),
        ("\x1b2", ["alt+2"]),
        ("\x1b2ls\r", ["alt+2", "l", "s", "enter"]),
        ("\x1bb\x1bf", ["alt+b", "alt+f"]),
        ("\x1b-\x1b=", ["alt+minus", "alt+equals_sign"]),
        ("\r", ["enter"]),
        ("\x7f", ["backspace"]),
        ("\x01", ["ctrl+a"]),
        ("\x1b[A", ["up"]),
        ("\x1b[1;3A", ["alt+up"]),
        ("\x1bOP", ["f1"]),
        ("\x1b[27;2;13~", []),
        ("\x1b[13;3u", ["alt+enter"]),
        ("ab", ["a", "b"]),
    ],
)
def test_keys_of_plain_terminals(sent: str, wanted: list[str], parser: XTermParser) -> None:
    found = [key for key, _ in keys(parser, sent)]
    assert found == wanted if wanted else found != [""]


def test_alt_keys_carry_no_character(parser: XTermParser) -> None:
    assert keys(parser, "\x1b\r") == [("alt+enter", None)]


def test_the_wait_for_a_lone_escape_is_short(parser: XTermParser) -> None:
    assert constants.ESCAPE_DELAY == ESCAPE_DELAY < 0.03


@pytest.mark.parametrize("other", ["", "\x1b", "\x1b\x1b", "\x1b[", "\x1b\x1bA", "xx", "\x1b\x00"])
def test_what_is_no_alt_key(other: str) -> None:
    assert alt_key(other) is None


def test_the_method_that_is_wrapped_is_still_what_the_parser_calls() -> None:
    parse: Any = getattr(XTermParser, "parse")  # noqa: B009 - its own type is not fully known
    assert "_sequence_to_key_events" in parse.__code__.co_names
