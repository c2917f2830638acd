"""The engine's settings and every trap that was found in it, each as a test."""

from __future__ import annotations

import struct

import pytest

from tests.doubles.engines import answer, engine, lines
from vm.terminal.ghostty_clone import CONTINUATION_BYTES
from vm.terminal.ghostty_engine import MAX_REPLY, MAX_TITLE
from vm.terminal.palette import ANSI_DEFAULT, TerminalPalette
from vm.terminal.screen import (
    COLOR_PALETTE,
    COLOR_RGB,
    MAX_COLUMNS,
    MAX_ROWS,
    PLAIN,
    STYLE,
    Attribute,
    CursorShape,
    Mode,
    Modifier,
    MouseAction,
    MouseEvent,
)


@pytest.mark.parametrize(
    ("asked", "got"),
    [
        ((0, 0), (20, 5)),
        ((1, 1), (20, 5)),
        ((19, 4), (20, 5)),
        ((20, 5), (20, 5)),
        ((-3, 7), (20, 7)),
        ((9999, 9999), (MAX_COLUMNS, MAX_ROWS)),
    ],
)
def test_sizes_are_clamped(asked: tuple[int, int], got: tuple[int, int]) -> None:
    terminal = engine(*asked)
    assert terminal.size == got
    terminal.resize(100, 30)
    terminal.resize(*asked)
    frame = terminal.frame()
    assert terminal.size == (frame.columns, frame.height) == got
    assert len(frame.rows) == got[1]


def test_a_guest_cannot_switch_to_132_columns() -> None:
    terminal = engine()
    terminal.feed(b"\x1b[?40h\x1b[?3h")
    assert terminal.size == (80, 24)
    frame = terminal.frame(full=True)
    assert frame.columns == 80
    assert len(frame.rows[0].text) == 80


def test_the_alternate_screen_restores_the_primary() -> None:
    terminal = engine()
    terminal.feed(b"before\x1b[?1049h\x1b[2J\x1b[Hinside")
    assert lines(terminal)[0] == "inside"
    assert terminal.modes() & Mode.ALTERNATE
    terminal.feed(b"\x1b[?1049l")
    assert lines(terminal)[0] == "before"
    assert not terminal.modes() & Mode.ALTERNATE


def test_scrollback_is_bounded_in_bytes_and_not_in_lines() -> None:
    terminal = engine(120, 40)
    row = b"x" * 119 + b"\r\n"
    for _ in range(20):
        terminal.feed(row * 1000)
    total = terminal.scrollback().total
    # the limit is on bytes: thousands of rows stay, and twenty thousand do not
    assert 5_000 < total < 19_000


def test_scrolling_back_freezes_the_page_until_the_end_is_asked_for() -> None:
    terminal = engine()
    terminal.feed(b"".join(b"line %d\r\n" % i for i in range(100)))
    assert terminal.scrollback().at_end
    terminal.scroll(-30)
    shown = lines(terminal)
    assert not terminal.scrollback().at_end
    terminal.feed(b"more\r\n" * 50)
    assert lines(terminal) == shown
    assert terminal.frame().cursor is None
    terminal.scroll_to_end()
    assert terminal.scrollback().at_end
    assert lines(terminal)[-2] == "more"


def test_text_reflows_on_resize() -> None:
    terminal = engine(80, 24)
    terminal.feed(b"abcdefghij" * 6)
    terminal.resize(30, 24)
    assert lines(terminal)[:2] == ["abcdefghij" * 3, "abcdefghij" * 3]
    terminal.resize(80, 24)
    assert lines(terminal)[0] == "abcdefghij" * 6


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        (b"\x1b[c", b"\x1b[?62;22c"),
        (b"\x1b[5n", b"\x1b[0n"),
        (b"\x1b[3;7H\x1b[6n", b"\x1b[3;7R"),
        (b"\x1b[18t", b"\x1b[8;24;80t"),
        (b"\x1b[?u", b"\x1b[?0u"),
        (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
        (b"\x1b[?2027$p", b"\x1b[?2027;1$y"),
        (b"\x1b]10;?\x07", b"\x1b]10;rgb:0101/0202/0303\x07"),
        (b"\x1b]11;?\x07", b"\x1b]11;rgb:0404/0505/0606\x07"),
        (b"\x1b]12;?\x07", b"\x1b]12;rgb:0707/0808/0909\x07"),
        (b"\x1b]4;3;?\x07", b"\x1b]4;3;rgb:0d0d/0d0d/0d0d\x07"),
        (b"\x1b]4;16;?\x07", b"\x1b]4;16;rgb:0000/0000/0000\x07"),
        (b"\x1b]4;231;?\x07", b"\x1b]4;231;rgb:ffff/ffff/ffff\x07"),
        (b"\x1b]4;232;?\x07", b"\x1b]4;232;rgb:0808/0808/0808\x07"),
        (b"\x1b[?996n", b"\x1b[?997;2n"),
    ],
)
def test_queries_are_answered_from_the_palette_given(query: bytes, wanted: bytes) -> None:
    ansi = tuple((10 + i, 10 + i, 10 + i) for i in range(16))
    palette = TerminalPalette((1, 2, 3), (4, 5, 6), (7, 8, 9), ansi)
    assert answer(engine(palette=palette), query) == wanted


def test_a_new_palette_answers_at_once() -> None:
    terminal = engine()
    terminal.set_palette(TerminalPalette(background=(250, 250, 250), foreground=(0, 0, 0)))
    assert answer(terminal, b"\x1b]11;?\x07") == b"\x1b]11;rgb:fafa/fafa/fafa\x07"
    assert answer(terminal, b"\x1b[?996n") == b"\x1b[?997;2n"


@pytest.mark.parametrize(
    "query",
    [
        b"\x1b]2;rm -rf\x07\x1b[21t",  # a title report would type the title into a shell
        b"\x1b]1;icon\x07\x1b[20t",
        b"\x1b]52;c;?\x07",  # reading the clipboard
        b"\x1b]52;p;?\x1b\\",
        b"\x1b_Gi=1,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",  # graphics
        b"\x1bP+q544e\x1b\\",
        b"\x05",
    ],
)
def test_what_a_guest_must_not_learn_is_not_answered(query: bytes) -> None:
    assert answer(engine(), query) == b""


def test_a_clipboard_write_is_only_told() -> None:
    terminal = engine()
    terminal.feed(b"\x1b]52;c;aGVsbG8=\x07")
    assert terminal.take_replies() == b""
    assert terminal.take_happenings().clipboard == "hello"
    assert terminal.take_happenings().clipboard is None


def test_a_second_clipboard_protocol_cannot_read_either() -> None:
    assert answer(engine(), b"\x1b]5522;type=read\x07") == b"\x1b]5522;type=read:status=EPERM\x07"


def test_titles_bells_notifications_and_progress_are_told_once() -> None:
    terminal = engine()
    terminal.feed(b"\x1b]0;a title\x07\x07\x1b]777;notify;head;body\x07\x1b]9;4;1;42\x07")
    terminal.feed(b"\x1b]7;file://host/tmp\x07")
    told = terminal.take_happenings()
    assert (told.title, told.bell, told.progress) == ("a title", True, (1, 42))
    assert told.notification == ("head", "body")
    assert told.folder == "file://host/tmp"
    assert not terminal.take_happenings()


def test_long_titles_are_cut() -> None:
    terminal = engine()
    terminal.feed(b"\x1b]0;" + b"t" * 100_000 + b"\x07")
    assert len(terminal.take_happenings().title or "") <= MAX_TITLE


def test_answers_that_nobody_takes_are_bounded() -> None:
    terminal = engine()
    terminal.feed(b"\x1b[c" * 100_000)
    assert 0 < len(terminal.take_replies()) <= MAX_REPLY


def test_synchronised_output_is_reported_as_held() -> None:
    terminal = engine()
    terminal.feed(b"\x1b[?2026h")
    assert terminal.held
    terminal.feed(b"half")
    assert terminal.held
    terminal.feed(b"\x1b[?2026l")
    assert not terminal.held


def test_a_frame_holds_only_rows_that_look_different() -> None:
    terminal = engine()
    terminal.feed(b"one\r\ntwo\r\nthree")
    assert len(terminal.frame().rows) == 24
    assert terminal.frame().rows == {}
    terminal.feed(b"\x1b[1;1Hone\x1b[2;1Htwo\x1b[3;1Htree ")
    assert set(terminal.frame().rows) == {2}
    assert set(terminal.frame(full=True).rows) == set(range(24))


def test_the_cursor_is_where_and_what_the_guest_says() -> None:
    terminal = engine()
    terminal.feed(b"\x1b[5 q\x1b[4;6H")
    cursor = terminal.frame().cursor
    assert cursor is not None
    assert (cursor.x, cursor.y, cursor.shape, cursor.blinking) == (5, 3, CursorShape.BAR, True)
    terminal.feed(b"\x1b[2 q\x1b[?25l")
    assert terminal.frame().cursor is None


def style_of(data: bytes) -> tuple[int, ...]:
    terminal = engine()
    terminal.feed(data + b"X")
    return STYLE.unpack(terminal.frame().rows[0].runs[0].style)


@pytest.mark.parametrize(
    ("sgr", "bits"),
    [
        (b"1", Attribute.BOLD),
        (b"2", Attribute.FAINT),
        (b"3", Attribute.ITALIC),
        (b"5", Attribute.BLINK),
        (b"7", Attribute.INVERSE),
        (b"8", Attribute.INVISIBLE),
        (b"9", Attribute.STRIKE),
        (b"53", Attribute.OVERLINE),
        (b"4", 1 << 8),
        (b"21", 2 << 8),
        (b"4:3", 3 << 8),
        (b"1;3;4:5", Attribute.BOLD | Attribute.ITALIC | 5 << 8),
    ],
)
def test_attributes(sgr: bytes, bits: int) -> None:
    assert style_of(b"\x1b[" + sgr + b"m")[0] == bits


@pytest.mark.parametrize(
    ("sgr", "foreground", "background"),
    [
        (b"31", COLOR_PALETTE | 1, 0),
        (b"97", COLOR_PALETTE | 15, 0),
        (b"38;5;200", COLOR_PALETTE | 200, 0),
        (b"48:5:17", 0, COLOR_PALETTE | 17),
        (b"38;2;1;2;3", COLOR_RGB | 0x010203, 0),
        (b"38:2::1:2:3;48:2:4:5:6", COLOR_RGB | 0x010203, COLOR_RGB | 0x040506),
        (b"0", 0, 0),
    ],
)
def test_colors(sgr: bytes, foreground: int, background: int) -> None:
    assert style_of(b"\x1b[" + sgr + b"m")[1:3] == (foreground, background)


def test_cells_with_a_colour_only() -> None:
    terminal = engine()
    terminal.feed(b"ab\x1b[41m\x1b[K\r\n\x1b[48;2;9;8;7m\x1b[K")
    rows = terminal.frame().rows
    assert [(run.cells, STYLE.unpack(run.style)[2]) for run in rows[0].runs] == [
        (2, 0),
        (78, COLOR_PALETTE | 1),
    ]
    assert STYLE.unpack(rows[1].runs[0].style)[2] == COLOR_RGB | 0x090807


def test_colors_that_the_guest_changes_are_sent_as_colors() -> None:
    terminal = engine()
    terminal.feed(b"\x1b[31mred\x1b[m plain")
    before = terminal.frame().rows[0]
    assert STYLE.unpack(before.runs[0].style)[1] == COLOR_PALETTE | 1
    terminal.feed(b"\x1b]4;1;rgb:12/34/56\x07\x1b]11;rgb:aa/bb/cc\x07")
    after = terminal.frame().rows[0]
    assert STYLE.unpack(after.runs[0].style)[1:3] == (COLOR_RGB | 0x123456, COLOR_RGB | 0xAABBCC)
    terminal.feed(b"\x1b]104;1\x07\x1b]111\x07")
    assert terminal.frame().rows[0] == before


def test_a_plain_row_is_one_run() -> None:
    terminal = engine()
    terminal.feed(b"hello")
    row = terminal.frame().rows[0]
    assert row.text == "hello".ljust(80)
    assert [tuple(run) for run in row.runs] == [(PLAIN, 80, 80)]


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x80abc",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xed\xa0\x80",
        b"\x1b[",
        b"\x1b]0;never ends",
        b"\x1bP1;2",
        b"\x1b[99999999999999999999m",
        b"\x1b[" + b"1;" * 5000 + b"m",
        b"\x9b31mX\x90q\x9c",
        b"\x00\x01\x02\x0e\x0f\x7f",
        b"\x1b[65535;65535H\x1b[65535X\x1b[65535@\x1b[65535L",
        b"a\x1b[65535b",
        bytes(range(256)),
    ],
)
def test_damaged_and_cut_input_leaves_a_terminal_that_works(data: bytes) -> None:
    terminal = engine()
    terminal.feed(data)
    for byte in data:
        terminal.feed(bytes([byte]))
    terminal.feed(b"\x18\x1b\\\x1bcok")
    assert lines(terminal)[0] == "ok"
    assert all(row.text.isprintable() for row in terminal.frame(full=True).rows.values())


def test_sequences_may_be_cut_anywhere() -> None:
    data = "\x1b[1;38;2;1;2;3mé漢字\x1b[0m 👍🏽\x1b[3;3Hend\x1b]0;t\x07".encode()
    whole, pieces = engine(), engine()
    whole.feed(data)
    for byte in data:
        pieces.feed(bytes([byte]))
    assert pieces.frame(full=True) == whole.frame(full=True)


def test_a_megabyte_without_a_newline() -> None:
    terminal = engine()
    terminal.feed(b"y" * (1 << 20))
    assert lines(terminal)[0] == "y" * 80
    assert terminal.scrollback().total > 1000


def test_a_storm_of_resizes() -> None:
    terminal = engine()
    terminal.feed("wide 漢字 and 👨‍👩‍👧 e\u0301\r\n".encode() * 200)
    for step in range(300):
        terminal.resize((step * 37) % 220, (step * 17) % 70)
        terminal.feed(b"x" * (step % 90) + b"\r\n")
        frame = terminal.frame()
        assert (frame.columns, frame.height) == terminal.size


def test_text_of_the_page_and_of_all_rows() -> None:
    terminal = engine(40, 10)
    terminal.feed(b"first line\r\n" + b"w" * 50 + b"\r\nlast")
    assert terminal.text().splitlines() == ["first line", "w" * 40, "w" * 10, "last"]
    assert terminal.text(scrollback=True).splitlines() == ["first line", "w" * 50, "last"]


def test_snapshot_is_the_engines_own_state() -> None:
    terminal = engine()
    empty = terminal.snapshot()
    terminal.feed(b"something")
    assert terminal.snapshot() not in (empty, None)
    terminal.feed(b"\x1b]0;unfinished")
    assert terminal.snapshot() is not None
    terminal.feed(b"x" * CONTINUATION_BYTES)
    assert terminal.snapshot() is None


@pytest.mark.parametrize("text", ["plain", "two\nlines", "a\r\nb", "tab\there", "é漢👍"])
def test_pastes_end_lines_with_enter(text: str) -> None:
    sent = engine().encode_paste(text)
    assert sent == text.replace("\r\n", "\n").replace("\n", "\r").encode()


@pytest.mark.parametrize(
    "trick", ["\x1b[201~rm -rf\r", "\x9b201~x", "\x03", "\x1b", "\x7f", "\x00"]
)
def test_a_paste_cannot_leave_its_marks(trick: str) -> None:
    terminal = engine()
    terminal.feed(b"\x1b[?2004h")
    sent = terminal.encode_paste(f"a{trick}b")
    assert sent.startswith(b"\x1b[200~")
    assert sent.endswith(b"\x1b[201~")
    inner = sent[6:-6]
    assert b"\x1b" not in inner
    assert not set(inner) & {0x03, 0x00, 0x7F}


def test_an_empty_paste_sends_nothing() -> None:
    assert engine().encode_paste("") == b""


def test_focus_is_reported_when_wanted() -> None:
    terminal = engine()
    assert terminal.encode_focus(True) == b""
    terminal.feed(b"\x1b[?1004h")
    assert (terminal.encode_focus(True), terminal.encode_focus(False)) == (b"\x1b[I", b"\x1b[O")


def mouse(action: MouseAction, button: int = 1, modifiers: int = 0) -> MouseEvent:
    return MouseEvent(action, 4, 2, button, Modifier(modifiers))


def test_the_mouse_is_reported_to_guests_that_track_it() -> None:
    terminal = engine()
    assert terminal.encode_mouse(mouse(MouseAction.PRESS)) == b""
    terminal.feed(b"\x1b[?1000h\x1b[?1006h")
    assert terminal.encode_mouse(mouse(MouseAction.PRESS)) == b"\x1b[<0;5;3M"
    assert terminal.encode_mouse(mouse(MouseAction.RELEASE)) == b"\x1b[<0;5;3m"
    assert terminal.encode_mouse(mouse(MouseAction.PRESS, 2)) == b"\x1b[<1;5;3M"
    assert terminal.encode_mouse(mouse(MouseAction.PRESS, 3)) == b"\x1b[<2;5;3M"
    assert terminal.encode_mouse(mouse(MouseAction.MOVE)) == b""
    terminal.feed(b"\x1b[?1003h")
    assert terminal.encode_mouse(mouse(MouseAction.MOVE, 0)).endswith(b";5;3M")


def test_the_wheel_is_the_guests_or_arrow_keys_or_the_scrollback() -> None:
    terminal = engine()
    up = mouse(MouseAction.SCROLL_UP, 0)
    assert terminal.encode_wheel(up) is None
    terminal.feed(b"\x1b[?1049h")
    assert terminal.encode_wheel(up) == b"\x1b[A" * 3
    terminal.feed(b"\x1b[?1h")
    assert terminal.encode_wheel(up) == b"\x1bOA" * 3
    terminal.feed(b"\x1b[?1007l")
    assert terminal.encode_wheel(up) == b""
    terminal.feed(b"\x1b[?1000h\x1b[?1006h")
    assert terminal.encode_wheel(up) == b"\x1b[<64;5;3M"
    assert terminal.encode_wheel(mouse(MouseAction.SCROLL_DOWN, 0, 4)) == b"\x1b[<73;5;3M"


def test_palettes_survive_the_wire_and_refuse_nonsense() -> None:
    palette = TerminalPalette((1, 2, 3), (4, 5, 6), (7, 8, 9))
    assert TerminalPalette.unpack(palette.pack()) == palette
    with pytest.raises(ValueError, match="16 ANSI"):
        TerminalPalette(ansi=ANSI_DEFAULT[:3])
    with pytest.raises(ValueError, match=r"0 … 255"):
        TerminalPalette(foreground=(300, 0, 0))
    with pytest.raises(ValueError, match="57 bytes"):
        TerminalPalette.unpack(struct.pack("3B", 1, 2, 3))
