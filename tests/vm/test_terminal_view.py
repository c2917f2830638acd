"""Selection, copy mode, search and links of the real engine."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.doubles.engines import engine, ghostty, lines
from tests.doubles.noise import noise
from vm.terminal import ghostty_clone, ghostty_links, ghostty_search
from vm.terminal.ghostty import EngineFailed
from vm.terminal.ghostty_rows import RowReader
from vm.terminal.palette import TerminalPalette, all_colors
from vm.terminal.screen import (
    MAX_CLUSTER_TEXT,
    MAX_LINK,
    CursorShape,
    Link,
    MarkKind,
    Modifier,
    Motion,
    MouseAction,
    MouseEvent,
    Shape,
    Unit,
    ViewState,
)

if TYPE_CHECKING:
    from vm.terminal.ghostty_engine import GhosttyEngine
    from vm.terminal.ghostty_terminal import Terminal
    from vm.terminal.screen import Row

SELECTION, MATCH, CURRENT = MarkKind


def marks(terminal: GhosttyEngine) -> dict[int, list[tuple[int, int, int]]]:
    return {y: [tuple(m) for m in row] for y, row in terminal.frame().marks.items()}  # type: ignore[misc]


def found(terminal: GhosttyEngine, needle: str, *, backwards: bool = False) -> ViewState:
    terminal.search(needle, backwards=backwards)
    while terminal.work(1):
        pass
    return terminal.view


# -- selecting on the live page --------------------------------------------------------------


def test_a_click_selects_nothing_and_a_drag_selects_whole_characters() -> None:
    terminal = engine(20, 5)
    terminal.feed("ab漢字cd".encode())
    terminal.select(3, 0, Unit.CELL)  # the second half of a character
    assert not terminal.view.selected
    assert terminal.selected_text() == ""
    terminal.select_to(4, 0)  # the first half of another
    assert terminal.view.selected
    assert terminal.selected_text() == "漢字"
    assert marks(terminal) == {0: [(2, 6, SELECTION)]}
    terminal.select_to(0, 0)  # and back over the beginning
    assert terminal.selected_text() == "ab漢"
    terminal.select_none()
    assert terminal.frame().view == ViewState()


def test_words_and_lines_grow_by_words_and_lines() -> None:
    terminal = engine(20, 6)
    terminal.feed(b"see /usr/lib/x.so ok" + b"and so on\r\nnext one here")
    terminal.select(8, 0, Unit.WORD)
    assert terminal.selected_text() == "/usr/lib/x.so"
    terminal.select_to(6, 2)
    assert terminal.selected_text() == "/usr/lib/x.so okand so on\nnext one"
    terminal.select_to(1, 0)
    assert terminal.selected_text() == "see /usr/lib/x.so"
    terminal.select(3, 0, Unit.LINE)
    assert terminal.selected_text() == "see /usr/lib/x.so okand so on"
    terminal.select_to(0, 2)
    assert terminal.selected_text() == "see /usr/lib/x.so okand so on\nnext one here"


def test_a_block_selection() -> None:
    terminal = engine(20, 6)
    terminal.feed(b"one   1\r\ntwo   2\r\nthree 3")
    terminal.select(6, 0, Unit.CELL, block=True)
    terminal.select_to(4, 2)
    assert marks(terminal) == {y: [(4, 7, SELECTION)] for y in range(3)}
    assert terminal.selected_text() == "  1\n  2\ne 3"


def test_soft_wraps_are_joined_and_blanks_dropped() -> None:
    terminal = engine(20, 6)
    terminal.feed(b"w" * 30 + b"   \r\n  second   \r\n")
    terminal.select(0, 0, Unit.CELL)
    terminal.select_to(19, 3)
    assert terminal.selected_text() == "w" * 30 + "\n  second"


def test_a_selection_stays_on_its_text_while_output_moves_it() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"1\r\n2\r\nmine\r\n4\r\n")
    terminal.select(0, 2, Unit.WORD)
    terminal.feed(b"5\r\n6\r\n")
    assert marks(terminal) == {0: [(0, 4, SELECTION)]}
    terminal.feed(b"more\r\n" * 9)
    assert terminal.frame().marks == {}
    assert terminal.view.selected
    assert terminal.selected_text() == "mine"
    terminal.scroll(-9)
    assert marks(terminal) == {0: [(0, 4, SELECTION)]}
    terminal.resize(40, 8)
    assert terminal.selected_text() == "mine"
    assert terminal.frame().view.selected


@pytest.mark.parametrize(
    "output",
    [b"\x1b[3;2Hx", b"\x1b[2J", b"\x1b[3;1H\x1b[K", b"\x1b[H\x1b[M", b"\x1bc", b"\x1b[?1049h",
     b"\x1b[3;1H\x1b[1P", b"\x1b[H" + b"line\r\n" * 4],
)  # fmt: skip
def test_a_selection_ends_when_the_guest_changes_its_text(output: bytes) -> None:
    terminal = engine(20, 5)
    terminal.feed(b"1\r\n2\r\nmine here\r\n4")
    terminal.select(0, 2, Unit.CELL)
    terminal.select_to(6, 2)
    assert terminal.frame().view.selected
    terminal.feed(b"\x1b[5;1Hother text\x1b[2;1H!\x1b[3;8H!\x1b[3;2Hine")
    assert terminal.frame().view.selected
    terminal.feed(output)
    assert not terminal.frame().view.selected
    assert terminal.selected_text() == ""


def test_a_selection_ends_with_its_screen_though_the_other_shows_the_same() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"same text")
    terminal.select(0, 0, Unit.WORD)
    terminal.feed(b"\x1b[?1049h\x1b[Hsame text")
    assert not terminal.frame().view.selected


def test_a_selection_of_a_wrapped_line_outlives_another_width() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"a" * 15 + b" " + b"b" * 15 + b"\r\nnext")
    terminal.select(0, 0, Unit.LINE)
    for columns in (25, 60, 20):
        terminal.resize(columns, 6)
        assert terminal.frame().view.selected
        assert terminal.selected_text() == "a" * 15 + " " + "b" * 15


def test_a_block_ends_only_when_the_guest_writes_into_it() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"abcdef\r\nabcdef\r\nabcdef")
    terminal.select(1, 0, Unit.CELL, block=True)
    terminal.select_to(2, 2)
    terminal.feed(b"\x1b[2;5HX")
    assert terminal.frame().view.selected
    terminal.feed(b"\x1b[2;3HX")
    assert not terminal.frame().view.selected


def test_dragging_beyond_the_page_scrolls_it() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"".join(b"row %d\r\n" % i for i in range(20)) + b"end")
    terminal.select(3, 2, Unit.CELL)
    terminal.select_to(0, -1)
    terminal.select_to(0, -1)
    assert terminal.scrollback() == (21, 14, False)
    assert terminal.selected_text() == "row 14\nrow 15\nrow 16\nrow 17\nrow"
    terminal.select_to(0, 5)
    assert terminal.scrollback() == (21, 15, False)


def test_places_off_the_page_are_its_edges() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"only")
    terminal.select(-9, -9, Unit.CELL)
    terminal.select_to(999, 3)
    assert terminal.selected_text() == "only"
    assert marks(terminal)[3] == [(0, 20, SELECTION)]


# -- copy mode -------------------------------------------------------------------------------


def filled(rows: int = 100) -> GhosttyEngine:
    terminal = engine(40, 10)
    terminal.feed(b"".join(b"\x1b[3%dmrow %d\x1b[m of it\r\n" % (i % 8, i) for i in range(rows)))
    terminal.feed(b"$ prompt")
    return terminal


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
    for _ in range(12):
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
    for seed in range(40):
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


# -- searching -------------------------------------------------------------------------------


def test_matches_are_marked_and_the_cursor_goes_from_one_to_the_next() -> None:
    terminal = filled()
    assert found(terminal, "row 9", backwards=True) == ViewState(True, False, 11, 11, False)
    assert marks(terminal)[8] == [(0, 5, CURRENT)]
    assert marks(terminal)[7] == [(0, 5, MATCH)]
    terminal.find()
    assert terminal.view.match == 10
    terminal.find(backwards=True)
    terminal.find(backwards=True)
    assert terminal.view.match == 1  # round the end
    assert lines(terminal)[5] == "row 9 of it"  # in the middle of the page
    terminal.copy_move(Motion.DOWN)
    assert terminal.view.match == 0
    assert found(terminal, "", backwards=True) == ViewState(copying=True)


def test_forwards_from_where_the_cursor_is() -> None:
    terminal = filled()
    terminal.copy_mode(True)
    terminal.copy_move(Motion.TOP, 21)
    assert found(terminal, "row").match == 22
    terminal.find()
    assert terminal.view.match == 23
    terminal.copy_move(Motion.BOTTOM)
    terminal.find()
    assert terminal.view.match == 1


def test_a_search_that_is_being_typed_begins_where_the_first_letter_did() -> None:
    terminal = filled()
    terminal.copy_mode(True)
    for typed in ("r", "ro", "row", "row 3", "row 33", "row 3", "row 95"):
        view = found(terminal, typed, backwards=True)
        assert view.match
    assert terminal.view.match == 1
    found(terminal, "row", backwards=True)
    assert terminal.view.match == 100


def test_upper_case_in_the_needle_tells_cases_apart() -> None:
    terminal = engine(40, 6)
    terminal.feed(b"error Error ERROR\r\n" * 3 + b"w" * 37 + b"Error")
    assert found(terminal, "error").matches == 10
    assert found(terminal, "Error").matches == 4
    assert found(terminal, "ERROR").matches == 3
    assert found(terminal, "ErrOR").matches == 0


def test_matches_over_a_soft_wrap_and_in_wide_text() -> None:
    terminal = engine(20, 6)
    terminal.feed(("x" * 17 + "needle\r\nab漢字cd").encode())
    found(terminal, "needle")
    assert marks(terminal) == {0: [(17, 20, CURRENT)], 1: [(0, 3, CURRENT)]}
    found(terminal, "漢字")
    assert marks(terminal) == {2: [(2, 6, CURRENT)]}


def test_what_is_not_there_is_not_found() -> None:
    terminal = filled()
    before = lines(terminal)
    assert found(terminal, "nowhere") == ViewState(True, False, 0, 0, False)
    assert found(terminal, "x" * 5000).matches == 0
    assert found(terminal, "\ud800").matches == 0
    terminal.find()
    assert lines(terminal) == before


def test_a_search_of_a_full_scrollback_is_done_in_slices_and_its_matches_are_bounded() -> None:
    terminal = engine(120, 40)
    terminal.feed(b"e" * 119 + b"\r\n")
    for _ in range(120):
        terminal.feed((b"e" * 119 + b"\r\n") * 100)
    for needle in ("e", "E", "zz"):
        terminal.search(needle)
        longest, more = 0.0, True
        while more:
            begin = time.process_time()
            more = terminal.work(0.008)
            longest = max(longest, time.process_time() - begin)
        assert longest < 0.1
        assert terminal.view.matches <= ghostty_search.MAX_MATCHES
        assert not terminal.view.searching


# -- links -----------------------------------------------------------------------------------


def links(terminal: GhosttyEngine, y: int = 0) -> tuple[Link, ...]:
    return terminal.frame(full=True).rows[y].links


def osc8(uri: str, text: str) -> bytes:
    return f"\x1b]8;;{uri}\x1b\\{text}\x1b]8;;\x1b\\".encode()


def test_cells_with_a_link_lead_to_its_address() -> None:
    terminal = engine(40, 6)
    terminal.feed(b"see " + osc8("https://a.example/", "here") + osc8("http://b.example", "漢x"))
    assert links(terminal) == (
        Link(4, 8, "https://a.example/"),
        Link(8, 11, "http://b.example"),
    )
    assert links(terminal, 1) == ()


@pytest.mark.parametrize(
    "uri",
    ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "ssh://x", "https:",
     "HTTPS//x", "http://é", "http://" + "x" * MAX_LINK, "x-cloche://y", "mailto:a@b"],
)  # fmt: skip
def test_other_addresses_are_no_links(uri: str) -> None:
    terminal = engine(40, 6)
    terminal.feed(osc8(uri, "click me"))
    assert lines(terminal)[0] == "click me"
    assert links(terminal) == ()


def test_links_are_told_when_only_they_change_and_in_copy_mode_too() -> None:
    terminal = engine(40, 6)
    terminal.feed(osc8("http://a", "text"))
    terminal.frame()
    terminal.feed(b"\r" + osc8("http://b", "text"))
    assert terminal.frame().rows[0].links == (Link(0, 4, "http://b"),)
    terminal.copy_mode(True)
    terminal.feed(b"\x1bc")
    assert links(terminal) == (Link(0, 4, "http://b"),)


def test_asking_for_addresses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ghostty_links, "CELLS_A_FRAME", 50)
    terminal = engine(40, 6)
    terminal.feed(b"".join(osc8("http://a", "x" * 39) + b"\r\n" for _ in range(5)))
    found_links = [row.links for row in terminal.frame(full=True).rows.values()]
    assert sum(link.end - link.start for row in found_links for link in row) == 50


def test_a_pile_of_marks_on_one_letter_is_cut() -> None:
    terminal = engine(40, 6)
    terminal.feed(("e" + "\u0301" * 60).encode())
    row = terminal.frame(full=True).rows[0]
    assert row.text.rstrip() == "e" + "\u0301" * (MAX_CLUSTER_TEXT - 1)


def test_the_wheel_of_a_guest_that_tracks_the_mouse_is_the_guests() -> None:
    terminal = engine(40, 6)
    terminal.feed(b"\x1b[?1000h\x1b[?1006h")
    event = MouseEvent(MouseAction.SCROLL_UP, 1, 1, 0, Modifier(0))
    assert terminal.encode_wheel(event) == b"\x1b[<64;2;2M"
