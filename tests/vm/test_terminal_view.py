"""Copy mode of the real engine, and the frozen copy that it works on."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.doubles.engines import engine, ghostty, lines
from tests.doubles.noise import noise
from tests.doubles.pages import filled, found, marks
from vm.terminal import ghostty_clone
from vm.terminal.ghostty import EngineFailed
from vm.terminal.ghostty_rows import RowReader
from vm.terminal.palette import TerminalPalette, all_colors
from vm.terminal.screen import CursorShape, MarkKind, Motion, Shape, Unit, ViewState

if TYPE_CHECKING:
    from vm.terminal.ghostty_terminal import Terminal
    from vm.terminal.screen import Row

SELECTION = MarkKind.SELECTION


def test_the_page_stands_still_and_the_guest_goes_on() -> None:
    terminal = filled()
    before = lines(terminal)
    terminal.copy_mode(True)
    terminal.feed(b"\r\nmore\x1b[6n\x1b]0;title\x07" + b"\r\nand more" * 50)
    assert terminal.take_replies() == b"\x1b[10;5R"
    assert terminal.take_happenings().title == "title"
    assert terminal.frame().rows == {}
    assert lines(terminal) == before
    terminal.copy_mode(False)
    assert lines(terminal)[-1] == "and more"


def test_leaving_brings_back_every_row_though_no_output_came() -> None:
    terminal = filled()
    before = lines(terminal)
    terminal.copy_mode(True)
    terminal.copy_move(Motion.TOP)
    assert lines(terminal)[0] == "row 0 of it"
    terminal.frame()
    terminal.copy_mode(False)
    rows = terminal.frame().rows
    assert [rows[y].text.rstrip() for y in sorted(rows)] == before


def test_a_page_that_was_scrolled_back_is_frozen_there() -> None:
    terminal = filled()
    terminal.scroll(-30)
    before = lines(terminal)
    terminal.copy_mode(True)
    assert lines(terminal) == before
    frame = terminal.frame()
    assert frame.cursor is not None
    assert frame.cursor.y == 9
    terminal.copy_mode(False)
    assert lines(terminal) == before


def test_the_copy_cursor_is_a_block_that_covers_its_character() -> None:
    terminal = engine(20, 5)
    terminal.feed("ab漢".encode() + b"\x1b[?25l")
    assert terminal.frame().cursor is None
    terminal.copy_mode(True)
    cursor = terminal.frame().cursor
    assert cursor == (2, 0, CursorShape.BLOCK, False, True)
    terminal.copy_move(Motion.LEFT)
    assert terminal.frame().cursor == (1, 0, CursorShape.BLOCK, False, False)


def test_selecting_by_keys() -> None:
    terminal = filled()
    terminal.copy_mode(True)
    terminal.copy_move(Motion.TOP)
    terminal.copy_mark(Shape.CELLS)
    terminal.copy_move(Motion.WORD_END)
    assert terminal.selected_text() == "row"
    terminal.copy_move(Motion.DOWN)
    assert terminal.selected_text() == "row 0 of it\nrow"
    terminal.copy_mark(Shape.BLOCK)
    assert terminal.selected_text() == "row\nrow"
    assert marks(terminal) == {0: [(0, 3, SELECTION)], 1: [(0, 3, SELECTION)]}
    terminal.copy_mark(Shape.LINES)
    assert terminal.selected_text() == "row 0 of it\nrow 1 of it"
    terminal.copy_mark(Shape.SWAP)
    cursor = terminal.frame().cursor
    assert cursor is not None
    assert (cursor.x, cursor.y) == (0, 0)
    terminal.copy_mark(Shape.NONE)
    assert terminal.frame().view == ViewState(copying=True)


def test_selecting_by_mouse_in_copy_mode_moves_the_cursor() -> None:
    terminal = filled()
    terminal.copy_mode(True)
    terminal.select(5, 2, Unit.WORD)
    assert terminal.selected_text() == "93"
    terminal.select_to(20, 3)  # behind the end of the line
    assert terminal.selected_text() == "93 of it\nrow 94 of it"
    terminal.select(4, 1, Unit.CELL)
    assert not terminal.view.selected
    terminal.select_to(4, -1)
    assert terminal.selected_text() == "90 of it\nrow 91 of it\nrow 9"
    terminal.copy_move(Motion.UP)
    assert terminal.selected_text().startswith("89 of it")


def test_copy_mode_follows_another_size_and_stays_on_its_text() -> None:
    terminal = engine(20, 6)
    terminal.feed(b"".join(b"%d " % i + b"x" * 30 + b" end\r\n" for i in range(30)))
    terminal.copy_mode(True)
    assert found(terminal, "17 x", backwards=True).matches == 1
    terminal.copy_mark(Shape.CELLS)
    terminal.copy_move(Motion.LINE_END)
    before = terminal.selected_text()
    assert before == "17 " + "x" * 30 + " end"
    for size in ((60, 9), (25, 5), (200, 50), (20, 6)):
        terminal.resize(*size)
        while terminal.work(1):
            pass
        frame = terminal.frame(full=True)
        assert len(frame.rows) == size[1]
        assert terminal.selected_text() == before
        assert frame.view.matches == 1


def test_the_wheel_and_the_end_move_the_frozen_page() -> None:
    terminal = filled()
    terminal.copy_mode(True)
    terminal.scroll(-5)
    assert terminal.scrollback() == (101, 86, False)
    terminal.scroll_to_end()
    assert terminal.scrollback() == (101, 91, True)


def test_prompts_that_the_shell_marks_are_found() -> None:
    terminal = engine(40, 10)
    for i in range(30):
        terminal.feed(b"\x1b]133;A\x07$ \x1b]133;B\x07run %d\r\n\x1b]133;C\x07out\r\n" % i)
    terminal.copy_mode(True)
    terminal.copy_move(Motion.PROMPT_BACK, 3)
    terminal.copy_mark(Shape.LINES)
    assert terminal.selected_text() == "$ run 27"
    terminal.copy_move(Motion.PROMPT_NEXT)
    assert terminal.selected_text().endswith("$ run 28")


def test_another_palette_changes_only_what_the_guest_did_not_choose() -> None:
    terminal = filled()
    terminal.feed(b"\x1b]4;1;#010203\x07")
    rows = terminal.frame(full=True).rows
    terminal.copy_mode(True)
    terminal.set_palette(TerminalPalette(foreground=(1, 2, 3)))
    assert terminal.frame(full=True).rows == rows
    terminal.copy_mode(False)
    assert terminal.frame(full=True).rows == rows


def test_motions_and_marks_outside_copy_mode_do_nothing() -> None:
    terminal = filled()
    terminal.copy_move(Motion.UP)
    terminal.copy_mark(Shape.CELLS)
    terminal.find()
    terminal.search("")
    terminal.copy_mode(False)
    assert not terminal.work(1)
    assert terminal.view == ViewState()


def test_closing_in_copy_mode_frees_everything() -> None:
    terminal = filled()
    found(terminal, "row")
    terminal.close()
    terminal = filled()
    terminal.select(1, 1, Unit.WORD)
    terminal.close()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_the_memory_of_a_frozen_copy_is_given_back() -> None:
    terminal = engine(120, 40)
    for i in range(90):
        terminal.feed((b"\x1b[3%dmrow \x1b[m" % (i % 8) + "漢字".encode() * 40 + b"\r\n") * 100)
    sizes: list[int] = []
    for _ in range(5):
        terminal.copy_mode(True)
        found(terminal, "ROW")
        terminal.copy_move(Motion.PROMPT_BACK)  # reads every row
        sizes.append(resident())
        terminal.copy_mode(False)
    assert sizes[-1] - sizes[1] < 10 << 20  # one copy alone takes more


# -- the frozen copy -------------------------------------------------------------------------


def page(terminal: Terminal) -> dict[int, Row]:
    reader = RowReader(ghostty(), terminal)
    default = TerminalPalette()
    reader.styles.set_defaults(default.foreground, default.background, all_colors(default))
    rows = reader.changed(full=True)
    reader.close()
    return rows


RICH = (
    "\x1b[1;31mred\x1b[m \x1b[4:3;58;5;9mcurly\x1b[m 漢字 e\u0301 "
    "\U0001f1fa\U0001f1f8 \x1b[44m \x1b[K\x1b[m\r\n"
    "\x1b]4;1;#123456\x07\x1b]8;;https://example.org\x07link\x1b]8;;\x07\x1b[38;2;9;8;7mx\x1b[m\r\n"
)


@pytest.mark.parametrize("rest", ["", "\x1b[38;5", "\x1b]0;title", "\x1bP$q", "\x1b[?1049hother"])
def test_a_copy_is_the_same_page_in_the_middle_of_anything(rest: str) -> None:
    terminal = engine(40, 6)
    terminal.feed((RICH * 10 + rest).encode())
    live = terminal._terminal  # pyright: ignore[reportPrivateUsage]
    copy = ghostty_clone.clone(live)
    assert page(copy) == page(live)
    assert copy.scrollbar() == live.scrollbar()
    copy.close()


@pytest.mark.parametrize("rest", ["", "\r\n\r\n", "\x1b[2J", "\x1b[2J\x1b[Htop"])
def test_a_copy_without_a_snapshot_shows_the_same_rows(rest: str) -> None:
    terminal = engine(40, 6)
    terminal.feed(("\r\n" + RICH * 10 + "w" * 90 + rest).encode())
    terminal.feed(b"\x1b]0;" + b"t" * (ghostty_clone.CONTINUATION_BYTES + 1))
    assert terminal.snapshot() is None
    before = terminal.frame(full=True).rows
    terminal.copy_mode(True)
    assert terminal.view.copying
    rows = terminal.frame(full=True).rows
    assert [row.text for row in rows.values()] == [row.text for row in before.values()]
    assert [row.runs for row in rows.values()] == [row.runs for row in before.values()]
    terminal.copy_move(Motion.TOP)
    terminal.copy_move(Motion.DOWN)
    terminal.copy_mark(Shape.CELLS)
    terminal.copy_move(Motion.WORD_END)
    assert terminal.selected_text() == "red"


def test_an_engine_that_cannot_copy_leaves_the_page_live(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Terminal:
        raise EngineFailed("a copy", -1)

    monkeypatch.setattr("vm.terminal.ghostty_copy.clone", fail)
    terminal = filled()
    terminal.copy_mode(True)
    assert not terminal.view.copying
    terminal.search("row")
    assert lines(terminal)[-1] == "$ prompt"


def test_noise_does_not_break_copying_selecting_or_searching() -> None:
    for seed in range(6):  # the fuzzer plays many more
        it = random.Random(seed)
        terminal = engine(it.randrange(20, 90), it.randrange(5, 30))
        for _ in range(12):
            terminal.feed(noise(it))
            terminal.select(it.randrange(90), it.randrange(30), it.choice(list(Unit)))
            terminal.select_to(it.randrange(-1, 90), it.randrange(-1, 31))
            terminal.frame()
            terminal.selected_text()
            terminal.copy_mode(True)
            found(terminal, it.choice(["a", "A", "漢", "[", "0 "]), backwards=it.random() < 0.5)
            for _ in range(6):
                terminal.copy_move(it.choice(list(Motion)), it.choice([None, 1, 30]))
                terminal.copy_mark(it.choice(list(Shape)))
                terminal.find(backwards=it.random() < 0.5)
                terminal.frame()
                terminal.selected_text()
            if it.random() < 0.5:
                terminal.resize(it.randrange(20, 90), it.randrange(5, 30))
            terminal.feed(noise(it))
            terminal.frame()
            terminal.copy_mode(it.random() < 0.3)
        terminal.close()
