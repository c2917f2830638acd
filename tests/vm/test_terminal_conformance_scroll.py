"""Line feeds, scrolling, and the regions that bound them."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, case, check, screen, table
from tests.doubles.engines import engine

LINES = "".join(f"^[[{y};1H{letter * 3}" for y, letter in enumerate("abcdef", 1))
ALL = ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]
REGION = LINES + "^[[2;4r"
SIDES = LINES + "^[[?69h^[[2;3s"

FEEDS = [
    *(
        case(f"{name} goes down and keeps the column", f"ab{code}c", ["ab", "  c"], "2;4")
        for name, code in (("LF", "\n"), ("VT", "\v"), ("FF", "\f"), ("IND", "^[D"))
    ),
    *(
        case(f"{name} at the bottom scrolls", f"{LINES}^[[6;2H{code}", [*ALL[1:]], "6;2")
        for name, code in (("LF", "\n"), ("VT", "\v"), ("FF", "\f"), ("IND", "^[D"))
    ),
    *(
        case(f"{name} at the bottom margin scrolls the region", f"{REGION}^[[4;2H{code}",
             ["aaa", "ccc", "ddd", "", "eee", "fff"], "4;2")
        for name, code in (("LF", "\n"), ("VT", "\v"), ("FF", "\f"), ("IND", "^[D"))
    ),
    *(
        case(f"{name} below the region does not scroll", f"{REGION}^[[6;2H{code}", ALL, "6;2")
        for name, code in (("LF", "\n"), ("IND", "^[D"), ("NEL", "\r^[[C\n"))
    ),
    case("LF above the region moves into it", REGION + "^[[1;2H\n", ALL, "2;2"),
    case("NEL starts the next line", "ab^[Ec", ["ab", "c"], "2;2"),
    case("NEL at the bottom scrolls", LINES + "^[[6;2H^[E", ALL[1:], "6;1"),
    case("NEL at the bottom margin", REGION + "^[[4;2H^[E",
         ["aaa", "ccc", "ddd", "", "eee", "fff"], "4;1"),
    case("NEL goes to the left margin", SIDES + "^[[3;3H^[E", ALL, "4;2"),
    case("new line mode makes LF start a line", "^[[20hab\ncd", ["ab", "cd"], "2;3"),
    case("new line mode ends", "^[[20h^[[20lab\ncd", ["ab", "  cd"], "2;5"),
    case("LF in the wait for a wrap goes down only", "^[[1;20Hx\ny",
         [" " * 19 + "x", " " * 19 + "y"]),
    case("RI goes up and keeps the column", "^[[3;4H^[M", cursor="2;4"),
    case("RI at the top scrolls down", LINES + "^[[1;2H^[M", ["", *ALL[:5]], "1;2"),
    case("RI at the top margin scrolls the region", REGION + "^[[2;2H^[M",
         ["aaa", "", "bbb", "ccc", "eee", "fff"], "2;2"),
    case("RI above the region does not scroll", REGION + "^[[1;2H^[M", ALL, "1;2"),
    case("RI below the region moves into it", REGION + "^[[5;2H^[M", ALL, "4;2"),
    case("RI between the sides moves only what is there", SIDES + "^[[1;2H^[M",
         ["a", "baa", "cbb", "dcc", "edd", "fee"]),
    case("RI outside the sides does not scroll", LINES + "^[[?69h^[[5;9s^[[1;2H^[M", ALL),
    case("LF outside the sides does not scroll", LINES + "^[[?69h^[[5;9s^[[6;2H\n", ALL),
    case("LF between the sides moves only what is there", SIDES + "^[[6;2H\n",
         ["abb", "bcc", "cdd", "dee", "eff", "f"]),
]  # fmt: skip

PANS = [
    case("SU scrolls one by default", LINES + "^[[3;2H^[[S", ALL[1:], "3;2"),
    case("SU scrolls its number", LINES + "^[[2S", ALL[2:]),
    case("SU more than there are clears", LINES + "^[[99S", []),
    case("SU scrolls the region", REGION + "^[[S", ["aaa", "ccc", "ddd", "", "eee", "fff"]),
    case("SU from outside scrolls the region", REGION + "^[[6;2H^[[S",
         ["aaa", "ccc", "ddd", "", "eee", "fff"], "6;2"),
    case("SU more than the region clears it", REGION + "^[[99S",
         ["aaa", "", "", "", "eee", "fff"]),
    case("SU between the sides", SIDES + "^[[S", ["abb", "bcc", "cdd", "dee", "eff", "f"]),
    case("SU between all four margins", SIDES + "^[[2;4r^[[S",
         ["aaa", "bcc", "cdd", "d", "eee", "fff"]),
    case("SD scrolls one by default", LINES + "^[[3;2H^[[T", ["", *ALL[:5]], "3;2"),
    case("SD scrolls its number", LINES + "^[[2T", ["", "", *ALL[:4]]),
    case("SD more than there are clears", LINES + "^[[99T", []),
    case("SD scrolls the region", REGION + "^[[T", ["aaa", "", "bbb", "ccc", "eee", "fff"]),
    case("SD more than the region clears it", REGION + "^[[99T",
         ["aaa", "", "", "", "eee", "fff"]),
    case("SD between the sides", SIDES + "^[[T", ["a", "baa", "cbb", "dcc", "edd", "fee"]),
    case("SD between all four margins", SIDES + "^[[2;4r^[[T",
         ["aaa", "b", "cbb", "dcc", "eee", "fff"]),
]  # fmt: skip

MARGINS = [
    case("DECSTBM homes the cursor", "^[[4;4H^[[2;4r", cursor="1;1"),
    case("DECSTBM homes within the region in origin mode", "^[[?6h^[[2;4r", cursor="2;1"),
    case("DECSTBM without numbers is the whole page", REGION + "^[[r^[[6;1H\n", ALL[1:]),
    case("DECSTBM without a bottom goes to the last line", LINES + "^[[3r^[[6;1H\n",
         ["aaa", "bbb", "ddd", "eee", "fff"]),
    case("DECSTBM without a top starts at the first", LINES + "^[[;3r^[[3;1H\n",
         ["bbb", "ccc", "", "ddd", "eee", "fff"]),
    case("DECSTBM takes 0 for the edges", LINES + "^[[0;0r^[[6;1H\n", ALL[1:]),
    case("DECSTBM beyond the page stops at its end", LINES + "^[[3;99r^[[6;1H\n",
         ["aaa", "bbb", "ddd", "eee", "fff"]),
    case("a region of one line is none", LINES + "^[[3;3r^[[4;4H", ALL, "4;4"),
    case("a region upside down is none", REGION + "^[[4;4H^[[5;2r", ALL, "4;4"),
    case("text at the bottom margin wraps and scrolls", REGION + "^[[4;18Hwxyz",
         ["aaa", "ccc", "ddd" + " " * 14 + "wxy", "z", "eee", "fff"]),
    case("text below the region overwrites the last line", REGION + "^[[6;19Hwxyz",
         [*ALL[:5], "yzf" + " " * 15 + "wx"], "6;3"),
    case("DECSLRM homes the cursor", "^[[?69h^[[4;4H^[[5;9s", cursor="1;1"),
    case("text wraps at the right margin", "^[[?69h^[[3;6s^[[1;3Habcdef", ["  abcd", "  ef"]),
    case("text left of the margin wraps at the right one", "^[[?69h^[[3;6s^[[1;1Habcdefgh",
         ["abcdef", "  gh"]),
    case("text right of the margins wraps at the edge", "^[[?69h^[[3;6s^[[1;18Habcd",
         [" " * 17 + "abc", "  d"]),
    case("side margins without their mode are a saved cursor", "^[[3;4H^[[s^[[H^[[u",
         cursor="3;4"),
    case("leaving the mode removes side margins", "^[[?69h^[[3;6s^[[?69l" + "x" * 9, ["x" * 9]),
]  # fmt: skip


@table(FEEDS, PANS, MARGINS)
def test_scrolling(it: Case) -> None:
    check(it)


@pytest.mark.parametrize(
    ("name", "prepare", "kept"),
    [
        ("the whole page", b"", True),
        ("a region from the top", b"\x1b[1;4r\x1b[4;1H", True),
        ("a region below the top", b"\x1b[2;4r\x1b[4;1H", False),
        ("the alternate screen", b"\x1b[?1049h\x1b[6;1H", False),
        ("between sides", b"\x1b[?69h\x1b[2;9s\x1b[6;3H", False),
    ],
)
def test_which_lines_go_to_the_scrollback(name: str, prepare: bytes, kept: bool) -> None:
    terminal = engine(20, 6)
    terminal.feed(b"first\r\nsecond\r\nthird\r\nfourth\r\nfifth\r\nsixth" + prepare + b"\n" * 9)
    assert ("first" in terminal.text(scrollback=True)) is (kept or name == "a region below the top")
    assert (terminal.scrollback().total > 6) is kept


def test_the_last_line_scrolls_with_its_style_and_the_new_one_has_none() -> None:
    terminal = engine(20, 6)
    terminal.feed(b"\x1b[31m" + b"red\r\n" * 6 + b"\x1b[m")
    rows = terminal.frame().rows
    assert rows[4].runs[0].cells == 3
    assert len(rows[5].runs) == 1
    assert screen(terminal) == ("red",) * 5
