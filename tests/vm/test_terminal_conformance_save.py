"""Saving and restoring the cursor, tabs, repeating, soft and hard reset."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, case, check, table
from tests.doubles.engines import engine
from vm.terminal.screen import PLAIN

PAIRS = (("DECSC", "^[7", "^[8"), ("SCOSC", "^[[s", "^[[u"), ("1048", "^[[?1048h", "^[[?1048l"))

SAVED = [
    it
    for name, save, restore in PAIRS
    for it in (
        case(f"{name} keeps the place", f"^[[3;5H{save}^[[5;9H{restore}x", ["", "", "    x"]),
        case(f"{name} keeps it for more than once",
             f"^[[3;5H{save}^[[5;9H{restore}^[[H{restore}", cursor="3;5"),
        case(f"{name} is where it was saved last", f"{save}^[[2;2H{save}^[[H{restore}",
             cursor="2;2"),
        case(f"{name} keeps the wrap that waits",
             f"^[[1;20Hx{save}^[[3;3H{restore}y", [" " * 19 + "x", "y"]),
        case(f"{name} keeps origin mode",
             f"^[[2;4r^[[?6h{save}^[[?6l{restore}^[[1;1Hx", ["", "x"]),
        case(f"{name} keeps the character set", f"^[(0{save}^[(Bq{restore}q", ["─"]),
        case(f"{name} keeps the shift", f"^[)0\x0e{save}\x0fq{restore}q", ["─"]),
        case(f"{name} is not insert mode", f"ab{save}^[[4h{restore}\rX", ["Xab"]),
        case(f"{name} does not keep the margins", f"{save}^[[2;3r{restore}^[[3;1H\n\n\nx",
             ["", "", "x"]),
        case(f"{name} restores into a smaller place",
             f"^[[6;20H{save}^[[2;3r^[[?6h{restore}", cursor="6;20"),
    )
]  # fmt: skip

UNSAVED = [
    case("DECRC without DECSC goes home", "^[[3;5H^[8", cursor="1;1"),
    case("DECRC without DECSC leaves origin mode", "^[[2;4r^[[?6h^[8^[[1;1Hx", ["x"]),
    case("each screen has its own", "^[[2;2H^[7^[[?47h^[[3;3H^[7^[[?47l^[[H^[8", cursor="2;2"),
]


@table(SAVED, UNSAVED)
def test_saving(it: Case) -> None:
    check(it)


@pytest.mark.parametrize(("save", "restore"), [(b"\x1b7", b"\x1b8"), (b"\x1b[s", b"\x1b[u")])
def test_the_style_is_saved(save: bytes, restore: bytes) -> None:
    terminal = engine(20, 5)
    terminal.feed(b"\x1b[1;31m" + save + b"\x1b[m\x1b[3;1Hx" + restore + b"y")
    rows = terminal.frame().rows
    assert rows[2].runs[0].style == PLAIN
    assert rows[0].runs[0].style != PLAIN


TABS = [
    case("stops are every eight columns", "\ta\tb", [" " * 8 + "a" + " " * 7 + "b"], "1;18"),
    case("a tab from a stop goes to the next", "^[[1;9H\tx", [" " * 16 + "x"]),
    case("after the last stop comes the edge", "^[[1;18H\tx", [" " * 19 + "x"]),
    case("a tab erases nothing", "abcdefghij\r\tX", ["abcdefghXj"]),
    case("HTS sets a stop", "^[[1;4H^[H\r\tx", ["   x"]),
    case("TBC 0 clears the stop at the cursor", "^[[1;9H^[[0g\r\tx", [" " * 16 + "x"]),
    case("TBC 0 elsewhere clears nothing", "^[[1;5H^[[0g\r\tx", [" " * 8 + "x"]),
    case("TBC 3 clears all stops", "^[[3g\r\tx", [" " * 19 + "x"]),
    case("a stop set after TBC 3", "^[[3g^[[1;5H^[H\r\tx", ["    x"]),
    case("DECST8C restores the stops", "^[[3g^[[?5W\r\tx", [" " * 8 + "x"]),
    case("CHT goes to the next stop by default", "^[[Ix", [" " * 8 + "x"]),
    case("CHT goes its number of stops", "^[[2Ix", [" " * 16 + "x"]),
    case("CHT stops at the edge", "^[[99Ix", [" " * 19 + "x"]),
    case("CBT goes back a stop by default", "^[[1;20H^[[Zx", [" " * 16 + "x"]),
    case("CBT goes back its number of stops", "^[[1;20H^[[2Zx", [" " * 8 + "x"]),
    case("CBT stops at the left edge", "^[[1;20H^[[99Zx", ["x"]),
    case("CBT ignores the left margin", "^[[?69h^[[5;18s^[[1;7H^[[2Z", cursor="1;1"),
    case("a tab stops at the right margin", "^[[?69h^[[3;12s^[[1;9H\t", cursor="1;12"),
    case("stops survive the other screen", "^[[1;4H^[H^[[?1049h^[[H\tx", ["   x"]),
]

REPEATS = [
    case("REP repeats the last character", "a^[[3b", ["aaaa"], "1;5"),
    case("REP repeats once by default", "a^[[b", ["aa"]),
    case("REP takes 0 for 1", "a^[[0b", ["aa"]),
    case("REP wraps", "x^[[24b", ["x" * 20, "x" * 5], "2;6"),
    case("REP scrolls", "^[[6;20Hx^[[b", ["", "", "", "", " " * 19 + "x", "x"]),
    case("REP at the right margin", "^[[?69h^[[3;6s^[[1;3Hx^[[5b", ["  xxxx", "  xx"]),
    case("REP within the region", "^[[2;3r^[[3;19Hx^[[3b", ["", " " * 18 + "xx", "xx"]),
    case("REP of a wide character", "漢^[[2b", ["漢 漢 漢"], "1;7"),
    case("REP repeats in the style of now", "a^[[1m^[[2b", ["aaa"]),
    case("REP repeats in insert mode", "bc^[[4h\ra^[[2b", ["aaabc"]),
    case("REP of a drawing character", "^[(0q^[[2b", ["───"]),
    case("REP without a character does nothing", "^[[3bx", ["x"]),
]


@table(TABS, REPEATS)
def test_tabs_and_repeats(it: Case) -> None:
    check(it)
