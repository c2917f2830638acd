"""Inserting and deleting characters, lines and columns, with and without margins."""

from __future__ import annotations

from tests.conformance.cases import Case, case, check, table

ABC = "abcdefghijklmnopqrst"
LINES = "".join(f"^[[{y};1H{letter * 3}" for y, letter in enumerate("abcdef", 1))
SIDES = "^[[?69h^[[5;8s"

CHARACTERS = [
    case("ICH makes room for one by default", ABC + "^[[1;3H^[[@", ["ab cdefghijklmnopqrs"], "1;3"),
    case("ICH takes 0 for 1", ABC + "^[[1;3H^[[0@", ["ab cdefghijklmnopqrs"]),
    case("ICH makes room for its number", ABC + "^[[1;3H^[[3@", ["ab   cdefghijklmnopq"]),
    case("ICH more than fits erases the rest", ABC + "^[[1;3H^[[999@", ["ab"], "1;3"),
    case("ICH at the last column", ABC + "^[[1;20H^[[@", [ABC[:-1]], "1;20"),
    case("ICH stays on its line", ABC + "\r\nxyz^[[1;3H^[[3@", ["ab   cdefghijklmnopq", "xyz"]),
    case("ICH stops at the right margin", ABC + SIDES + "^[[1;6H^[[@", ["abcde fgijklmnopqrst"]),
    case("ICH more than fits within margins", ABC + SIDES + "^[[1;6H^[[99@",
         ["abcde   ijklmnopqrst"]),
    case("ICH outside the margins does nothing", ABC + SIDES + "^[[1;2H^[[@", [ABC], "1;2"),
    case("ICH drops a wide character that no longer fits", "^[[1;19H漢^[[1;1H^[[@", []),
    case("DCH deletes one by default", ABC + "^[[1;3H^[[P", ["abdefghijklmnopqrst"], "1;3"),
    case("DCH deletes its number", ABC + "^[[1;3H^[[4P", ["abghijklmnopqrst"]),
    case("DCH more than there are erases the rest", ABC + "^[[1;3H^[[999P", ["ab"], "1;3"),
    case("DCH stays on its line", ABC + "\r\nxyz^[[1;3H^[[4P", ["abghijklmnopqrst", "xyz"]),
    case("DCH stops at the right margin", ABC + SIDES + "^[[1;6H^[[P", ["abcdegh ijklmnopqrst"]),
    case("DCH more than there are within margins", ABC + SIDES + "^[[1;6H^[[99P",
         ["abcde   ijklmnopqrst"]),
    case("DCH outside the margins does nothing", ABC + SIDES + "^[[1;2H^[[P", [ABC], "1;2"),
    case("DCH of the first half takes the character", "漢字x^[[1;1H^[[P", [" 字 x"]),
    case("insert mode moves what is there", "abc^[[4h^[[1;2HXY", ["aXYbc"], "1;4"),
    case("insert mode loses what leaves the line", ABC + "^[[4h\rX", ["X" + ABC[:-1]], "1;2"),
    case("insert mode within margins", ABC + SIDES + "^[[4h^[[1;6HX", ["abcdeXfgijklmnopqrst"]),
    case("insert mode makes room for a wide character", "abc^[[4h^[[1;2H漢", ["a漢 bc"], "1;4"),
    case("insert mode ends", "abc^[[4h^[[4l\rX", ["Xbc"], "1;2"),
]  # fmt: skip

LINE_CASES = [
    case("IL makes room for one by default", LINES + "^[[3;2H^[[L",
         ["aaa", "bbb", "", "ccc", "ddd", "eee"], "3;1"),
    case("IL makes room for its number", LINES + "^[[3;2H^[[2L",
         ["aaa", "bbb", "", "", "ccc", "ddd"]),
    case("IL more than fits erases the rest", LINES + "^[[3;2H^[[999L", ["aaa", "bbb"]),
    case("IL stops at the bottom margin", LINES + "^[[2;4r^[[3;2H^[[L",
         ["aaa", "bbb", "", "ccc", "eee", "fff"]),
    case("IL above the region does nothing", LINES + "^[[2;4r^[[1;2H^[[L",
         ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]),
    case("IL below the region does nothing", LINES + "^[[2;4r^[[5;2H^[[L",
         ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]),
    case("IL moves only what is between the sides", LINES + "^[[?69h^[[2;3s^[[3;2H^[[L",
         ["aaa", "bbb", "c", "dcc", "edd", "fee"]),
    case("IL outside the sides does nothing", LINES + "^[[?69h^[[5;8s^[[3;2H^[[L",
         ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]),
    case("DL deletes one by default", LINES + "^[[3;2H^[[M", ["aaa", "bbb", "ddd", "eee", "fff"],
         "3;1"),
    case("DL deletes its number", LINES + "^[[3;2H^[[2M", ["aaa", "bbb", "eee", "fff"]),
    case("DL more than there are erases the rest", LINES + "^[[3;2H^[[999M", ["aaa", "bbb"]),
    case("DL stops at the bottom margin", LINES + "^[[2;4r^[[3;2H^[[M",
         ["aaa", "bbb", "ddd", "", "eee", "fff"]),
    case("DL above the region does nothing", LINES + "^[[2;4r^[[1;2H^[[M",
         ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]),
    case("DL below the region does nothing", LINES + "^[[2;4r^[[5;2H^[[M",
         ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]),
    case("DL moves only what is between the sides", LINES + "^[[?69h^[[2;3s^[[3;2H^[[M",
         ["aaa", "bbb", "cdd", "dee", "eff", "f"]),
    case("DL outside the sides does nothing", LINES + "^[[?69h^[[5;8s^[[3;2H^[[M",
         ["aaa", "bbb", "ccc", "ddd", "eee", "fff"]),
    case("IL then DL restores all but the last line", LINES + "^[[3;1H^[[L^[[M",
         ["aaa", "bbb", "ccc", "ddd", "eee"]),
    case("IL goes to the left margin", LINES + "^[[?69h^[[2;9s^[[3;5H^[[L", None, "3;2"),
]  # fmt: skip


@table(CHARACTERS, LINE_CASES)
def test_editing(it: Case) -> None:
    check(it)
