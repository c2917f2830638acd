"""The parser of the user's own terminal: each kind of terminal, pastes, cuts anywhere."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import select
import sys
import termios
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events, messages
from textual.drivers import linux_driver

from tests.vm.key_tables import outer
from widgets import terminal_keys
from widgets.terminal_keys import ESCAPE_DELAY, MAX_PART, OuterParser, mend_parser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.message import Message

ROWS = [row for table in (outer.OLD, outer.OTHER, outer.KITTY) for row in outer.rows(table)]


class Patient(OuterParser):
    """A parser to which more always comes."""

    def _more(self, part: str) -> bool:
        return True


class Hasty(OuterParser):
    """A parser to which nothing comes any more."""

    def _more(self, part: str) -> bool:
        return False


def told(parser: OuterParser, *pieces: str) -> list[Message]:
    return [event for piece in pieces for event in parser.feed(piece)]


def names(found: list[Message]) -> list[str]:
    return [it.key if isinstance(it, events.Key) else type(it).__name__ for it in found]


@pytest.mark.parametrize("row", ROWS, ids=[repr(row[0]) for row in ROWS])
def test_each_sequence_is_its_key(row: tuple[str, str, str]) -> None:
    sent, key, _ = row
    assert names(told(Hasty(), sent)) == ([key] if key else [])


@pytest.mark.parametrize("row", ROWS, ids=[repr(row[0]) for row in ROWS])
def test_a_sequence_may_come_byte_by_byte(row: tuple[str, str, str]) -> None:
    sent, key, _ = row
    parser = Patient()
    found = told(parser, *sent)
    if not names(found):
        found += told(parser, "")  # Alt with the begin of a sequence, an Escape: the end tells
    assert names(found) == ([key] if key else [])


def test_keys_in_one_read_stay_apart() -> None:
    sent = "".join(row[0] for row in ROWS if row[0][0] != "\x1b" or len(row[0]) > 2)
    wanted = [row[1] for row in ROWS if row[1] and (row[0][0] != "\x1b" or len(row[0]) > 2)]
    assert names(told(Hasty(), sent)) == wanted


@pytest.mark.parametrize("sent", outer.ANSWERS.strip().splitlines())
def test_answers_type_nothing(sent: str) -> None:
    found = told(Hasty(), outer.meant(sent))
    assert not [it for it in found if isinstance(it, events.Key | events.Paste)]
    assert names(told(Hasty(), outer.meant(sent) + "x"))[-1] == "x"


def test_a_report_that_textual_waits_for_arrives() -> None:
    found = told(Hasty(), "\x1b[?2026;1$y\x1b[48;24;80;480;800t\x1b[5;7R")
    assert isinstance(found[0], messages.TerminalSupportsSynchronizedOutput)
    assert names(found[1:]) == ["Resize", "CursorPosition"]


def test_the_mouse_and_the_focus_arrive() -> None:
    found = told(Hasty(), "\x1b[<0;5;7M\x1b[<0;5;7m\x1b[<64;5;7M\x1b[O\x1b[I\x1b[<35;-1;7M")
    assert names(found) == ["MouseDown", "MouseUp", "MouseScrollUp", "AppBlur", "AppFocus"]


# -- Escape ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        (["\x1b"], ["escape"]),
        (["\x1b\x1b"], ["escape", "escape"]),
        (["\x1b", "\x1b"], ["escape", "escape"]),
        (["\x1b\x1b\x1b"], ["escape", "escape", "escape"]),
        (["\x1b", "a"], ["escape", "a"]),
        (["\x1ba"], ["alt+a"]),
        (["\x1b\x1ba"], ["escape", "alt+a"]),
        (["\x1b", "[A"], ["escape", "left_square_bracket", "A"]),
        (["\x1b\x1b", "[A"], ["escape", "escape", "left_square_bracket", "A"]),
        (["\x1b[A\x1b"], ["up", "escape"]),
        (["\x1b\x1b["], ["escape", "alt+left_square_bracket"]),
        (["j\x1bk"], ["j", "alt+k"]),
        (["\x1b[\x1b["], ["alt+left_square_bracket"] * 2),
        (["\x1bOK"], ["alt+shift+o", "K"]),
        (["\x1bPhi"], ["alt+shift+p", "h", "i"]),
        (["\x1bP1"], ["alt+shift+p", "1"]),
        (["\x1b]1"], ["alt+right_square_bracket", "1"]),
        (["\x1bO1"], ["alt+shift+o", "1"]),
    ],
)
def test_escape_is_escape_unless_something_comes_with_it(
    pieces: list[str], wanted: list[str]
) -> None:
    assert names(told(Hasty(), *pieces)) == wanted


def test_a_sequence_cut_in_two_is_one_when_the_rest_comes() -> None:
    parser = Patient()
    assert names(
        told(parser, "\x1b", "[A", "\x1b\x1b", "[B", "\x1b[1", ";5", "C", "\x1b", "a")
    ) == [
        "up",
        "alt+down",
        "ctrl+right",
        "alt+a",
    ]


def test_an_answer_without_an_end_types_nothing() -> None:
    assert names(told(Hasty(), "\x1b]11;rgb:")) == []
    parser = Patient()
    assert names(told(parser, "\x1b]11;" + "x" * MAX_PART, "y")) == ["y"]


# -- pastes ----------------------------------------------------------------------------------

BEGIN, END = "\x1b[200~", "\x1b[201~"


def pasted(found: list[Message]) -> list[str]:
    assert all(isinstance(it, events.Paste) for it in found)
    return [it.text for it in found if isinstance(it, events.Paste)]


@pytest.mark.parametrize(
    "text",
    ["", "a", "a\nb\r\nc", "\x1b", "\x1b[A", "x\x1b" + "y" * 50, "\x1b[20", "\x9b31m", "é漢😀",
     "\x1b[200~", "\x1b\x1b[201", "\x1b]52;c;x\x07", "\t\x07\x03"],
)  # fmt: skip
def test_a_paste_is_whole_however_it_is_cut(text: str) -> None:
    sent = f"a{BEGIN}{text}{END}b"
    for cut in range(len(sent)):
        found = told(Patient(), sent[:cut], sent[cut:])[1:-1]
        assert pasted(found) == [text]
    assert pasted(told(Patient(), *sent)[1:-1]) == [text]


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")), st.data())
def test_any_paste_comes_as_it_was(text: str, data: st.DataObject) -> None:
    sent = f"{BEGIN}{text.replace(END, '')}{END}"
    at = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=5)))
    pieces = [sent[i:j] for i, j in zip([0, *at], [*at, len(sent)], strict=True)]
    found = told(Patient(), *(piece for piece in pieces if piece))
    assert pasted(found) == [text.replace(END, "")]


def test_a_paste_is_not_ended_by_waiting() -> None:
    assert pasted(told(Hasty(), BEGIN + "a\x1b", "[201", "~")) == ["a"]
    assert pasted(told(Hasty(), BEGIN + "a\x1b", "b", END)) == ["a\x1bb"]


def test_what_no_text_is_becomes_a_sign_in_a_paste_and_nothing_when_typed() -> None:
    decoder = terminal_keys._lenient_decoder("utf-8")()  # pyright: ignore[reportPrivateUsage]
    text = decoder.decode(b"\x1b[200~a\xff\xfeb\xc3\x1b[201~\xffc\xe9")
    found = told(Hasty(), text)
    assert names(found) == ["Paste", "c"]
    assert pasted(found[:1]) == ["a\ufffd\ufffdb\ufffd"]


def test_a_paste_beyond_all_measure_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_keys, "MAX_PASTE", 10)
    assert pasted(told(Patient(), BEGIN, "12345678", "9012", "90", END)) == ["1234567890"]


def test_five_megabytes_in_the_drivers_pieces_take_no_time() -> None:
    text = "0123456789abcde\n" * (5 * 65536)
    sent = BEGIN + text + END
    parser = Patient()
    begin = time.process_time()
    found = told(parser, *(sent[at : at + 4096] for at in range(0, len(sent), 4096)))
    assert time.process_time() - begin < 1  # about 0.04 s; Textual's parser takes 2 s
    assert pasted(found) == [text]


# -- any input -------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [*"\x1b[O:uA~M<xé\x00\x9b\x07\\", "1;", "27;", "200~", "201~", "$y", "]11;", "P>|", "9" * 8]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=20))
def test_no_input_raises_or_hangs_the_parser(pieces: list[str]) -> None:
    for parser in (Hasty(), Patient()):
        found = told(parser, *(piece for piece in pieces if piece))
        found += told(parser, END, "z")
        assert names(found)[-1:] == ["z"] or parser.__class__ is Patient
        for it in found:
            assert not isinstance(it, events.Key) or it.key != "<ignore>"


@given(st.lists(PIECES, min_size=1, max_size=12))
def test_a_cut_changes_nothing_while_more_comes(pieces: list[str]) -> None:
    sent = "".join(pieces)
    assert names(told(Patient(), *sent)) == names(told(Patient(), sent))


# -- in Textual's driver ---------------------------------------------------------------------


@pytest.fixture
def unmended(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XTermParser", "KITTY_REPORT_ASSOCIATED_TEXT", "getincrementaldecoder"):
        monkeypatch.setattr(linux_driver, name, getattr(linux_driver, name))
    monkeypatch.setattr(OuterParser, "erase", "\x7f")


@pytest.mark.usefixtures("unmended")
def test_the_driver_looks_up_what_we_replace() -> None:
    mend_parser()
    mend_parser()
    used = {*linux_driver.LinuxDriver.run_input_thread.__code__.co_names}
    assert {"XTermParser", "getincrementaldecoder"} <= used
    start = linux_driver.LinuxDriver.start_application_mode.__code__.co_names
    assert "KITTY_REPORT_ASSOCIATED_TEXT" in start
    replaced = vars(linux_driver)
    assert replaced["XTermParser"] is OuterParser
    assert replaced["KITTY_REPORT_ASSOCIATED_TEXT"] == 20


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of a terminal that is our standard input."""
    ours, its = pty.openpty()
    with io.TextIOWrapper(io.FileIO(its), encoding="utf-8") as file:
        monkeypatch.setattr(sys, "__stdin__", file)
        yield ours
    os.close(ours)


@pytest.mark.usefixtures("unmended")
def test_backspace_is_what_the_terminal_says(terminal: int) -> None:
    assert sys.__stdin__ is not None
    modes = termios.tcgetattr(sys.__stdin__)
    modes[6][termios.VERASE] = b"\b"
    termios.tcsetattr(sys.__stdin__, termios.TCSANOW, modes)
    mend_parser()
    found = told(Hasty(), "\b\x7f\x1b\b")
    assert names(found) == ["backspace", "ctrl+backspace", "alt+backspace"]
    assert isinstance(found[0], events.Key)
    assert found[0].character == "\x7f"


def test_an_escape_waits_for_the_terminal_and_no_longer(
    terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    wait = select.select

    def note(*asked: Any) -> object:
        waits.append(asked[3])
        return wait(*asked)

    monkeypatch.setattr(select, "select", note)
    parser = OuterParser()
    assert names(told(parser, "\x1b")) == ["escape"]
    assert waits == [ESCAPE_DELAY]
    assert ESCAPE_DELAY <= 0.02
    os.write(terminal, b"[A\n")
    assert names(told(parser, "\x1b")) == []
    assert names(told(parser, "[A")) == ["up"]


async def test_what_is_in_flight_is_waited_for(terminal: int) -> None:
    parser = OuterParser()
    waiting = asyncio.to_thread(told, parser, "\x1b[1;")
    asyncio.get_running_loop().call_later(0.03, os.write, terminal, b"5A\n")
    assert names(await waiting) == []
    assert names(told(parser, "5A")) == ["ctrl+up"]


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "screen-256color"}, True),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(390)"}, True),
        ({"TERM": "xterm-kitty"}, False),
    ],
)
def test_who_is_asked_for_longer_keys(environment: dict[str, str], asked: bool) -> None:
    assert terminal_keys.knows_other_keys(environment) is asked
