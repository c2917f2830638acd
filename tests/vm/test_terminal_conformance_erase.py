"""Erasing: ECMA-48 8.3.38-41, DEC STD 070 for protected cells, and the colour that is left."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, case, check, table
from tests.doubles.engines import engine
from vm.terminal.screen import COLOR_PALETTE, STYLE

FULL = "".join(f"^[[{y};1H" + letter * 20 for y, letter in enumerate("abcdef", 1))
AT = FULL + "^[[3;5H"
A, B, C, D, E, F = (letter * 20 for letter in "abcdef")

DISPLAY = [
    case("ED erases from the cursor by default", AT + "^[[J", [A, B, "cccc"], "3;5"),
    case("ED 0 erases from the cursor", AT + "^[[0J", [A, B, "cccc"], "3;5"),
    case("ED 1 erases to the cursor", AT + "^[[1J", ["", "", " " * 5 + "c" * 15, D, E, F], "3;5"),
    case("ED 2 erases everything", AT + "^[[2J", [], "3;5"),
    case("ED 3 leaves the page", AT + "^[[3J", [A, B, C, D, E, F], "3;5"),
    case("ED with an unknown number does nothing", AT + "^[[9J", [A, B, C, D, E, F], "3;5"),
    case("ED ignores the margins", "^[[2;4r" + AT + "^[[2J", []),
    case("ED 0 at home erases everything", FULL + "^[[H^[[J", [], "1;1"),
    case("ED 1 at the end erases everything", FULL + "^[[6;20H^[[1J", [], "6;20"),
    case("ED 0 keeps the wrap's letter", FULL + "^[[3;1H" + "x" * 20 + "^[[J",
         [A, B, "x" * 19], None),
    case("ED blanks a wide character that it cuts", "漢字漢字^[[1;4H^[[J", ["漢"], "1;4"),
    case("ED 1 blanks a wide character that it cuts", "漢字漢字^[[1;3H^[[1J", ["    漢 字"], "1;3"),
]  # fmt: skip

LINE = [
    case("EL erases to the right by default", AT + "^[[K", [A, B, "cccc", D, E, F], "3;5"),
    case("EL 0 erases to the right", AT + "^[[0K", [A, B, "cccc", D, E, F], "3;5"),
    case("EL 1 erases to the left", AT + "^[[1K", [A, B, " " * 5 + "c" * 15, D, E, F], "3;5"),
    case("EL 2 erases the line", AT + "^[[2K", [A, B, "", D, E, F], "3;5"),
    case("EL with an unknown number does nothing", AT + "^[[7K", [A, B, C, D, E, F], "3;5"),
    case("EL ignores the margins", FULL + "^[[?69h^[[4;9s^[[3;5H^[[K", [A, B, "cccc", D, E, F]),
    case("EL blanks a wide character that it cuts", "漢字^[[1;4H^[[K", ["漢"], "1;4"),
    case("EL 1 blanks a wide character that it cuts", "漢字漢^[[1;3H^[[1K", ["    漢"], "1;3"),
    case("ECH erases one by default", AT + "^[[X", [A, B, "cccc" + " " + "c" * 15, D, E, F], "3;5"),
    case("ECH takes 0 for 1", AT + "^[[0X", [A, B, "cccc" + " " + "c" * 15, D, E, F], "3;5"),
    case("ECH erases its number", AT + "^[[4X", [A, B, "cccc" + " " * 4 + "c" * 12, D, E, F]),
    case("ECH stops at the edge", AT + "^[[999X", [A, B, "cccc", D, E, F], "3;5"),
    case("ECH ignores the margins", FULL + "^[[?69h^[[4;7s^[[3;5H^[[9X",
         [A, B, "cccc" + " " * 9 + "c" * 7, D, E, F]),
    case("ECH blanks both wide characters that it cuts", "漢字漢^[[1;2H^[[2X", ["    漢"], "1;2"),
    case("erasing does not move what follows", "abcdef^[[1;3H^[[2X", ["ab  ef"], "1;3"),
]  # fmt: skip

MARKED = '^[[1"qPP^[[0"qnn^[[1"qPP^[[0"qnn'
PROTECTED = [
    case("DECSEL keeps protected cells", MARKED + "^[[?2K", ["PP  PP"]),
    case("DECSEL 0 keeps them to the right", MARKED + "^[[1;2H^[[?K", ["PP  PP"]),
    case("DECSEL 1 keeps them to the left", MARKED + "^[[1;7H^[[?1K", ["PP  PP n"]),
    case("DECSED keeps protected cells", MARKED + "^[[?2J", ["PP  PP"]),
    case("DECSED 0 keeps them below", "nn\r\n" + MARKED + "^[[1;2H^[[?J", ["n", "PP  PP"]),
    case("DECSED 1 keeps them above", MARKED + "\r\nnn^[[2;1H^[[?1J", ["PP  PP", " n"]),
    case("plain EL erases protected cells", MARKED + "^[[2K", []),
    case("plain ED erases protected cells", MARKED + "^[[2J", []),
    case("DECSCA 2 takes protection off", '^[[1"qP^[[2"qn^[[?2K', ["P"]),
    case("protection follows the letters, not the place", '^[[1"qP\rn^[[0"qm\rn^[[?2J', []),
]

ALIGN = [
    case("DECALN fills the page", "^[#8", ["E" * 20] * 6, "1;1"),
    case("DECALN clears margins", "^[[2;3r^[#8^[[6;1H\n", ["E" * 20] * 5, "6;1"),
    case("DECALN homes the cursor", "^[[4;4H^[#8x", ["x" + "E" * 19] + ["E" * 20] * 5, "1;2"),
]


@table(DISPLAY, LINE, PROTECTED, ALIGN)
def test_erasing(it: Case) -> None:
    check(it)


@pytest.mark.parametrize(
    ("what", "where"),
    [
        ("2J", [(y, x) for y in range(5) for x in range(20)]),
        ("J", [(2, x) for x in range(4, 20)] + [(3, 0), (4, 19)]),
        ("1J", [(0, 0), (1, 19)] + [(2, x) for x in range(5)]),
        ("K", [(2, x) for x in range(4, 20)]),
        ("1K", [(2, x) for x in range(5)]),
        ("2K", [(2, x) for x in range(20)]),
        ("3X", [(2, 4), (2, 5), (2, 6)]),
        ("3P", [(2, 17), (2, 18), (2, 19)]),
        ("3@", [(2, 4), (2, 5), (2, 6)]),
        ("2L", [(y, x) for y in (2, 3) for x in range(20)]),
        ("2M", [(y, x) for y in (3, 4) for x in range(20)]),
        ("2S", [(y, x) for y in (3, 4) for x in range(20)]),
        ("2T", [(y, x) for y in (0, 1) for x in range(20)]),
    ],
)
def test_what_is_erased_takes_the_background(what: str, where: list[tuple[int, int]]) -> None:
    terminal = engine(20, 5)
    terminal.feed(b"x" * 100 + b"\x1b[3;5H\x1b[1;4;32;44m\x1b[" + what.encode())
    rows = terminal.frame().rows
    for y, x in where:
        styles = [run.style for run in rows[y].runs for _ in range(run.cells)]
        attributes, _, background, _ = STYLE.unpack(styles[x])
        assert (attributes, background) == (0, COLOR_PALETTE | 4)
    filled = sum(
        run.cells
        for row in rows.values()
        for run in row.runs
        if STYLE.unpack(run.style)[2] == COLOR_PALETTE | 4
    )
    assert filled >= len(where)


def test_erasing_the_scrollback_leaves_the_page() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"".join(b"%d\r\n" % number for number in range(50)))
    assert terminal.scrollback().total > 40
    terminal.feed(b"\x1b[3J")
    assert terminal.scrollback().total == 5
    assert terminal.text().split() == ["46", "47", "48", "49"]
