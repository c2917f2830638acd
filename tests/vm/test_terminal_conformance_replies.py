"""What a guest is answered, and that nothing of its own comes back."""

from __future__ import annotations

import random
import re

import pytest

from tests.conformance.cases import Case, case, check, table
from tests.conformance.guest_noise import stream
from tests.doubles.engines import answer, engine

REPORTS = [
    case("DSR says that all is well", "^[[5n", replies="^[[0n"),
    case("CPR says where the cursor is", "^[[4;7H^[[6n", replies="^[[4;7R"),
    case("CPR in the wait for a wrap", "x" * 20 + "^[[6n", replies="^[[1;20R"),
    case("CPR within margins counts from the page", "^[[2;4r^[[3;3H^[[6n", replies="^[[3;3R"),
    case("CPR after each piece of text", "a^[[6nb^[[6n", replies="^[[1;2R^[[1;3R"),
    case("primary attributes", "^[[c", replies="^[[?62;22c"),
    case("primary attributes with a zero", "^[[0c", replies="^[[?62;22c"),
    case("DECID asks for the same", "^[Z", replies="^[[?62;22c"),
    case("secondary attributes", "^[[>c", replies="^[[>1;0;0c"),
    case("tertiary attributes", "^[[=c", replies="^[P!|00000000^[\\"),
    case("the version names the engine alone", "^[[>q", replies="^[P>|libghostty^[\\"),
    case("the size in cells", "^[[18t", replies="^[[8;6;20t"),
    case("the size in pixels", "^[[14t", replies="^[[4;96;160t"),
    case("the size of a cell", "^[[16t", replies="^[[6;16;8t"),
    case("size reports are switched on", "^[[?2048h", replies="^[[48;6;20;96;160t"),
    case("kitty flags are none at first", "^[[?u", replies="^[[?0u"),
    case("kitty flags pushed and popped", "^[[>5u^[[?u^[[<u^[[?u", replies="^[[?5u^[[?0u"),
    case("kitty flags of each screen", "^[[>5u^[[?1049h^[[?u^[[?1049l^[[?u",
         replies="^[[?0u^[[?5u"),
    case("kitty flags set, added and removed", "^[[=1;1u^[[?u^[[=4;2u^[[?u^[[=1;3u^[[?u",
         replies="^[[?1u^[[?5u^[[?4u"),
    case("popping more flags than there are", "^[[<99u^[[?u", replies="^[[?0u"),
    case("an answer to an answer does not exist", "^[[0n^[[1;1R^[[?62;22c", replies=""),
]  # fmt: skip

SETTINGS = [
    case("DECRQSS tells the margins", "^[[2;4r^[P$qr^[\\", replies="^[P1$r2;4r^[\\"),
    case("DECRQSS tells the side margins", "^[[?69h^[[3;9s^[P$qs^[\\", replies="^[P1$r3;9s^[\\"),
    case("DECRQSS tells a plain style", "^[P$qm^[\\", replies="^[P1$r0m^[\\"),
    case("DECRQSS tells bold and underlined", "^[[1;4m^[P$qm^[\\", replies="^[P1$r0;1;4m^[\\"),
    case("DECRQSS tells a truecolor", "^[[38;2;1;2;3m^[P$qm^[\\",
         replies="^[P1$r0;38:2::1:2:3m^[\\"),
    case("DECRQSS tells the cursor's shape", "^[[4 q^[P$q q^[\\", replies="^[P1$r4 q^[\\"),
    case("DECRQSS of what there is not", "^[P$q\"p^[\\", replies="^[P0$r^[\\"),
    case("XTGETTCAP tells the number of colours", "^[P+q436F^[\\", replies="^[P1+r436F=323536^[\\"),
]  # fmt: skip

SILENT = [
    case(f"{name} is not answered", sequence, replies="")
    for name, sequence in (
        ("the window's title", "^[]2;evil\a^[[21t"), ("the icon's title", "^[]1;evil\a^[[20t"),
        ("the window's place", "^[[13t"), ("the window's state", "^[[11t"),
        ("the screen's size", "^[[19t"), ("a printer", "^[[?15n"), ("user keys", "^[[?25n"),
        ("the keyboard's language", "^[[?26n"), ("a checksum of the page", "^[[1;1;1;1;5;5*y"),
        ("the selection", "^[]52;s;?\a"), ("the primary selection", "^[]52;p;?\a"),
        ("the cut buffer", "^[]52;0;?^[\\"), ("an unknown capability", "^[P+q5858^[\\"),
        ("an unknown setting", "^[P$qevil^[\\"), ("terminal parameters", "^[[x"),
        ("who is there (ENQ)", "\x05"), ("a sixel geometry", "^[[?2;1;0S"),
        ("a macro space", "^[[?62n"), ("a locator", "^[[?55n"), ("a file name", "^[]6;?\a"),
        ("iTerm's cell size", "^[]1337;ReportCellSize\a"), ("a font", "^[]50;?\a"),
        ("an X property", "^[]3;?WM_NAME\a"), ("modifyOtherKeys", "^[[?4m"),
    )
]  # fmt: skip


@table(REPORTS, SETTINGS, SILENT)
def test_reports(it: Case) -> None:
    check(it)


ANSWER = re.compile(
    rb"(?:"
    rb"\x1b\[[?>]?[0-9;]*[cnRtu]|\x1b\[\??[0-9;]+\$y"  # reports and modes
    rb"|\x1bP[01][$+]r[0-9A-F=:; \"a-z]*\x1b\\|\x1bP!\|0{8}\x1b\\|\x1bP>\|libghostty\x1b\\"
    rb"|\x1b\](?:4;[0-9]+|1[0-9]);rgb:[0-9a-f/]+(?:\x07|\x1b\\)"  # colours
    rb"|\x1b\]21;[a-z_0-9=:/;]*(?:\x07|\x1b\\)|\x1b\]5522;[a-z=:A-Z]*(?:\x07|\x1b\\)"
    rb")*"
)
"""The shape of every answer: nothing in it can be a line that a shell would run."""

TRICKS = [
    "^[P$q\r\nevil\r\n^[\\", "^[P+q6576696c0d0a^[\\", "^[P+qevil;rm^[\\", "^[]4;0;evil\r\n?\a",
    "^[]10;evil\a^[]10;?\a", "^[]2;evil\r\n\a^[[21t", "^[]52;c;ZXZpbA==\a^[]52;c;?\a",
    "^[[>qevil", "^[_Ga=q,i=31;evil\r\n^[\\", "^[]1337;evil?\a", "^[]21;evil=?\a",
    "^[]22;?evil\a", "^[]99;i=evil:p=?;\a", "^[]5522;type=read;evil\a", "^[[?1;2;3;evil$p",
    "^[P$qm\r\nevil^[\\", "^[]4;9999;?\a", "^[]12;rgb:ev/il/00\a^[]12;?\a",
]  # fmt: skip


@pytest.mark.parametrize("trick", TRICKS)
def test_no_answer_holds_what_the_guest_sent(trick: str) -> None:
    terminal = engine()
    got = answer(terminal, trick.replace("^[", "\x1b").encode())
    assert b"evil" not in got
    assert b"6576696c" not in got.lower()
    assert ANSWER.fullmatch(got)


@pytest.mark.parametrize("seed", range(20))
def test_the_answers_to_noise_have_the_shape_of_answers(seed: int) -> None:
    chosen = random.Random(seed)
    terminal = engine()
    for _ in range(50):
        data = stream(chosen, 400)
        got = answer(terminal, data)
        assert ANSWER.fullmatch(got), (data, got)
