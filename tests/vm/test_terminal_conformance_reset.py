"""Soft reset (DECSTR) and hard reset (RIS)."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, case, check, screen, table
from tests.doubles.engines import answer, engine, lines
from vm.terminal import soft_reset
from vm.terminal.screen import PLAIN, Mode

SOFT = [
    case("DECSTR leaves the text and the cursor", "ab^[[3;4H^[[!p", ["ab"], "3;4"),
    case("DECSTR shows the cursor", "^[[?25l^[[!p", cursor="1;1"),
    case("DECSTR ends insert mode", "ab^[[4h^[[!p\rX", ["Xb"]),
    case("DECSTR ends origin mode", "^[[2;4r^[[?6h^[[!p^[[Hx", ["x"]),
    case("DECSTR removes the margins", "a^[[2;3r^[[!p^[[6;1H\nb", ["", "", "", "", "", "b"]),
    case("DECSTR removes the sides", "^[[?69h^[[3;6s^[[!p^[[H" + "x" * 9, ["x" * 9]),
    case("DECSTR brings autowrap back", "^[[?7l^[[!p" + "x" * 21, ["x" * 20, "x"]),
    case("DECSTR brings ASCII back", "^[(0^[[!pq", ["q"]),
    case("DECSTR shifts in", "^[)0\x0e^[[!pq", ["q"]),
    case("DECSTR ends protection", '^[[1"q^[[!px^[[?2K', []),
    case("DECSTR forgets the saved cursor", "^[[3;4H^[7^[[!p^[8x", ["x"]),
    case("DECSTR stays on the screen that is shown", "a^[[?1049h^[[Hb^[[!p", ["b"]),
    case("DECSTR brings output back from the status line", "^[[1$}a^[[!pb", ["b"]),
    case("DECSTR answers nothing", "^[[!p", replies=""),
    case("DECSTR ends a string that never ended", "a^[]0;never^[[!pb", ["ab"]),
    case("what looks like it in another sequence", "^[[4hab^[[1!p^[[!q\rX", ["Xab"]),
    case("two of them in one piece", "ab^[[4h^[[!p\rX^[[4h^[[!p\rY", ["Yb"]),
    case("text between two of them", "a^[[!pb^[[!pc", ["abc"], "1;4"),
]  # fmt: skip

HARD = [
    case("RIS clears the page", "abc^[[4;4H^[c", [], "1;1"),
    case("RIS removes the margins", "^[[2;3r^[ca^[[6;1H\nb", ["", "", "", "", "", "b"]),
    case("RIS leaves the alternate screen", "a^[[?1049hb^[cc", ["c"]),
    case("RIS ends origin mode", "^[[2;4r^[[?6h^[cx", ["x"]),
    case("RIS ends insert mode", "^[[4h^[cab\rX", ["Xb"]),
    case("RIS restores the tab stops", "^[[3g^[c\tx", [" " * 8 + "x"]),
    case("RIS brings autowrap back", "^[[?7l^[c" + "x" * 21, ["x" * 20, "x"]),
    case("RIS shows the cursor", "^[[?25l^[c", cursor="1;1"),
    case("RIS forgets the saved cursor", "^[[3;4H^[7^[c^[8x", ["x"]),
    case("RIS ends kitty keys", "^[[>5u^[c^[[?u", replies="^[[?0u"),
    case("RIS removes the sides", "^[[?69h^[[3;6s^[c" + "x" * 9, ["x" * 9]),
]


@table(SOFT, HARD)
def test_resets(it: Case) -> None:
    check(it)


@pytest.mark.parametrize("reset", [b"\x1b[!p", b"\x1bc"])
def test_resets_end_styles_and_application_keys(reset: bytes) -> None:
    terminal = engine(20, 5)
    terminal.feed(b"\x1b[1;31m\x1b[?1h\x1b=" + reset + b"x")
    assert terminal.frame().rows[0].runs[0].style == PLAIN
    assert terminal.encode_key("up", None) == b"\x1b[A"


def test_a_hard_reset_ends_what_the_guest_switched_on() -> None:
    terminal = engine()
    terminal.feed(b"\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[?2026h\x1b[?1049h\x1bc")
    assert terminal.modes() == Mode.ALTERNATE_SCROLL
    assert not terminal.held
    assert terminal.encode_focus(True) == b""
    assert terminal.encode_paste("a") == b"a"


@pytest.mark.parametrize("reset", [b"\x1b[!p", b"\x1bc"])
def test_resets_keep_what_we_set(reset: bytes) -> None:
    terminal = engine()
    terminal.feed(reset)
    assert answer(terminal, b"\x1b[?2027$p") == b"\x1b[?2027;1$y"
    assert answer(terminal, b"\x1b[21t\x1b]52;c;?\x07\x1b_Gi=1,s=1,v=1,a=q;AAAA\x1b\\") == b""
    terminal.feed(("\r" + "👨‍👩‍👧" + "x").encode())
    assert lines(terminal)[0] == "👨x"


def test_soft_resets_are_found_wherever_pieces_end() -> None:
    data = b"a\x1b[4h\x1b[!p\x1b[!\x1b[!pb\x1b\x1b[!p\x1b[!p"
    for size in range(1, len(data) + 1):
        finder = soft_reset.Finder()
        found = [
            start + end
            for start in range(0, len(data), size)
            for end in finder.ends(data[start : start + size])
        ]
        assert found == [9, 16, 22, 26]


def test_many_soft_resets_in_one_piece() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"\x1b[!p" * 50_000 + b"x")
    assert screen(terminal) == ("x",)
