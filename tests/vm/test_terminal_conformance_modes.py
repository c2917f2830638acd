"""Modes: what setting and resetting does, and what is told of them (DECRQM)."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, case, check, table
from tests.doubles.engines import answer, engine

WRAP = [
    case("text wraps at the right edge", "x" * 20 + "yz", ["x" * 20, "yz"], "2;3"),
    case("the wrap waits for the next letter", "x" * 20, ["x" * 20], "1;20"),
    case("without autowrap the last cell is overwritten", "^[[?7l" + "x" * 20 + "yz",
         ["x" * 19 + "z"], "1;20"),
    case("autowrap again", "^[[?7l^[[?7h" + "x" * 20 + "yz", ["x" * 20, "yz"], "2;3"),
    case("a wrap at the end scrolls", "^[[6;1H" + "x" * 20 + "y",
         ["", "", "", "", "x" * 20, "y"], "6;2"),
    case("a tab does not wrap", "^[[1;19H\t\tx", [" " * 19 + "x"]),
    case("a wide character that does not fit wraps whole", "^[[1;20H漢", ["", "漢"], "2;3"),
    case("without autowrap a wide one at the edge", "^[[?7l^[[1;19H漢", [" " * 18 + "漢"]),
]  # fmt: skip

ORIGIN = [
    case("origin mode homes into the region", "^[[2;4r^[[3;3H^[[?6h", cursor="2;1"),
    case("leaving origin mode homes to the page", "^[[2;4r^[[?6h^[[2;2H^[[?6l", cursor="1;1"),
    case("CPR counts from the region", "^[[3;5r^[[?6h^[[2;4H^[[6n", None, "4;4", "^[[2;4R"),
    case("text stays within the region", "^[[2;3r^[[?6h^[[9;1Hab\r\ncd", ["", "ab", "cd"]),
    case("erasing the page ignores origin mode", "a^[[2;3r^[[?6h^[[2J", []),
]

SCREENS = [
    case("1049 hides the primary screen", "abc^[[?1049h", [], "1;4"),
    case("1049 restores screen and cursor", "abc^[[?1049h^[[4;4Hxyz^[[?1049l", ["abc"], "1;4"),
    case("1049 clears the alternate screen each time",
         "^[[?1049hxyz^[[?1049l^[[?1049h", []),
    case("47 keeps what the alternate screen held", "^[[?47h^[[Hxyz^[[?47l^[[?47h", ["xyz"]),
    case("1047 clears the alternate screen when it is left",
         "^[[?1047h^[[Hxyz^[[?1047l^[[?1047h", []),
    case("1047 does not move the cursor", "ab^[[?1047h", None, "1;3"),
    case("1048 saves the cursor", "^[[3;4H^[[?1048h^[[H^[[?1048l", None, "3;4"),
    case("1049 twice is once", "abc^[[?1049h^[[?1049hxyz^[[?1049l", ["abc"]),
    case("leaving a screen that is not shown does nothing", "abc^[[?1047l", ["abc"]),
    case("margins are the terminal's, not a screen's", "^[[2;3r^[[?1047h^[[3;1H\n\nx",
         ["", "", "x"]),
]  # fmt: skip

SHOWN = [
    case("DECTCEM hides the cursor", "^[[?25l", cursor="hidden"),
    case("DECTCEM shows it again", "^[[?25l^[[?25h", cursor="1;1"),
    case("several modes at once", "^[[?25;7l" + "x" * 25, ["x" * 20], "hidden"),
    case("an unknown mode does nothing", "a^[[?8888hb^[[8888hc", ["abc"]),
    case("an ANSI mode is not a private one", "^[[25l", cursor="1;1"),
    case("the sender's own echo does nothing", "^[[12la^[[12hb", ["ab"]),
]


@table(WRAP, ORIGIN, SCREENS, SHOWN)
def test_modes(it: Case) -> None:
    check(it)


PRIVATE = {
    1: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 1, 9: 2, 12: None, 25: 1, 40: 2, 45: 2, 47: 2, 66: 2, 67: None,
    69: 2, 1000: 2, 1002: 2, 1003: 2, 1004: 2, 1005: 2, 1006: 2, 1007: 1, 1015: 2, 1016: 2, 1035: 1,
    1036: 1, 1039: 2, 1045: 2, 1047: 2, 1048: None, 1049: 2, 2004: 2, 2026: 2, 2027: 1, 2031: 2,
    2048: 2,
}  # fmt: skip
"""Private modes and what DECRQM says of them at first: 1 set, 2 reset, None: not looked at."""

UNSETTABLE = {3, 40}
"""The guest's size is not the guest's to choose."""


@pytest.mark.parametrize("mode", PRIVATE)
def test_private_modes_are_told_as_they_are(mode: int) -> None:
    terminal = engine()
    query = b"\x1b[?%d$p" % mode
    first = answer(terminal, query)
    wanted = PRIVATE[mode]
    if wanted is not None:
        assert first == b"\x1b[?%d;%d$y" % (mode, wanted)
    for final, state in ((b"h", 1), (b"l", 2), (b"h", 1)):
        terminal.feed(b"\x1b[?%d%s" % (mode, final))
        if mode not in UNSETTABLE:
            told = answer(terminal, query)
            assert told == b"\x1b[?%d;%d$y" % (mode, state)


@pytest.mark.parametrize("mode", [2, 4, 12, 20])
def test_ansi_modes_are_told_as_they_are(mode: int) -> None:
    terminal = engine()
    for final, state in ((b"h", 1), (b"l", 2)):
        terminal.feed(b"\x1b[%d%s" % (mode, final))
        assert answer(terminal, b"\x1b[%d$p" % mode) == b"\x1b[%d;%d$y" % (mode, state)


@pytest.mark.parametrize("query", ["?7777", "?0", "777"])
def test_unknown_modes_are_told_as_unknown(query: str) -> None:
    assert answer(engine(), f"\x1b[{query}$p".encode()) == f"\x1b[{query};0$y".encode()


@pytest.mark.parametrize("mode", [1, 7, 25, 69, 1000, 1004, 2004])
def test_private_modes_are_saved_and_restored(mode: int) -> None:
    terminal = engine()
    query = b"\x1b[?%d$p" % mode
    for final, other in ((b"h", b"l"), (b"l", b"h")):
        terminal.feed(b"\x1b[?%d%s\x1b[?%ds" % (mode, final, mode))
        wanted = answer(terminal, query)
        terminal.feed(b"\x1b[?%d%s" % (mode, other))
        assert answer(terminal, query) != wanted
        terminal.feed(b"\x1b[?%dr" % mode)
        assert answer(terminal, query) == wanted
