"""Traps of the engine and of the terminals around it.

Settings and queries that `test_terminal_engine.py` already holds are not repeated here.
"""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from app.ui.pane_strips import fit
from tests.doubles.engines import answer, engine, lines
from vm.terminal.ghostty_engine import MAX_REPLY
from vm.terminal.screen import COLOR_RGB, STYLE

# -- scrollback: bytes, not lines ----------------------------------------------------------------


def test_nine_thousand_rows_of_120_columns_are_kept() -> None:
    terminal = engine(120, 40)
    for start in range(0, 9_100, 100):
        rows = (b"%07d " % number + b"x" * 112 for number in range(start, start + 100))
        terminal.feed(b"\r\n".join(rows) + b"\r\n")
    assert terminal.scrollback().total >= 9_000
    text = terminal.text(scrollback=True)
    assert "0000300 x" in text
    assert "0009099 x" in text


def test_feeding_is_not_ten_times_slower_with_a_full_scrollback() -> None:
    terminal = engine(120, 40)
    piece = b"".join(b"%d\r\n" % number for number in range(20_000))

    def seconds() -> float:
        begin = time.process_time()
        terminal.feed(piece)
        return time.process_time() - begin

    fresh = min(seconds() for _ in range(3))
    for _ in range(20):
        terminal.feed(piece)
    assert terminal.scrollback().total > 5_000
    assert min(seconds() for _ in range(3)) < 5 * fresh


# -- cells: what is drawn is as wide as what the engine says -------------------------------------


def drawn(terminal_text: str, columns: int = 40) -> list[tuple[str, int]]:
    """The first row's pieces: their characters and the cells they take."""
    terminal = engine(columns, 5)
    terminal.feed(terminal_text.encode("utf-8", "surrogatepass"))
    row = terminal.frame().rows[0]
    place = 0
    found: list[tuple[str, int]] = []
    for run in row.runs:
        found.append((row.text[place : place + run.characters], run.cells))
        place += run.characters
    terminal.close()
    return found


def wrong(text: str) -> list[tuple[str, int]]:
    """Pieces of a row that an outer terminal would draw wider or narrower than their cells."""
    pieces = [(fit(piece, cells), cells) for piece, cells in drawn(text, 400)]
    return [(piece, cells) for piece, cells in pieces if cell_len(piece) != cells]


POINTS = [
    point
    for point in range(0x20, 0x20000)
    if not 0xD800 <= point < 0xE000 and unicodedata.category(chr(point)) not in ("Cc", "Cn")
]


@pytest.mark.parametrize("part", range(8))
def test_every_character_is_drawn_in_its_cells(part: int) -> None:
    """All code points that have a name, of the first two planes; `x` on both sides."""
    points = POINTS[part::8]
    unknown = 0
    for start in range(0, len(points), 120):
        text = "".join(f"x{chr(point)}" for point in points[start : start + 120]) + "x"
        assert wrong(text) == []
        shown = "".join(fit(piece, cells) for piece, cells in drawn(text, 400))
        assert shown.rstrip().endswith("x")
        unknown += shown.count("\ufffd")
    # what the engine and the outer terminals disagree on is few, and drawn as unknown
    assert unknown < 20


CLUSTERS = [
    "👨\u200d👩\u200d👧\u200d👦", "👍🏽", "🇺🇸", "🇺", "🏴\U000e0067\U000e0062\U000e007f", "❤\ufe0f",
    "❤", "☺\ufe0e", "☺\ufe0f", "1\ufe0f\u20e3", "#\u20e3", "e\u0301", "e\u0301\u0323\u0302",
    "नि", "क्ष", "க்ஷ", "ก\u0e33", "가", "\u1100\u1161\u11a8", "ｶﾞ", "ﷺ", "\u0600\u0661",
    "👩🏻\u200d❤\ufe0f\u200d💋\u200d👨🏿", "🧑\u200d🦰", "⛹🏿\u200d♀\ufe0f", "✔\ufe0f", "⚠",
    "⚠\ufe0f",
    "\U0001fae8", "\ue0b0", "\U000f0001", "a\u200db", "\u200b", "\u202ea", "a\u00ad", "\u2028",
]  # fmt: skip


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_cluster_is_drawn_in_its_cells(cluster: str) -> None:
    assert wrong(f"|{cluster}|") == []
    assert wrong(f"\x1b[?2027l|{cluster}|") == []
    assert wrong(cluster * 30) == []


@given(st.lists(st.sampled_from(CLUSTERS), max_size=30))
@settings(max_examples=60, deadline=None)
def test_clusters_next_to_each_other_are_drawn_in_their_cells(clusters: list[str]) -> None:
    assert wrong("".join(clusters)) == []


# -- styles: the engine's numbers mean something within one page only ----------------------------


def test_a_style_whose_number_is_used_again_is_drawn_as_itself() -> None:
    terminal = engine(20, 5)
    for round_ in range(40):
        colors = [(round_ * 7 + n * 3) % 256 for n in range(60)]
        for n, color in enumerate(colors):
            terminal.feed(b"\x1b[%d;%dH\x1b[38;2;%d;0;9mX" % (n % 5 + 1, n % 20 + 1, color))
        terminal.frame()
        terminal.feed(b"\x1b[m\x1b[2J\x1b[H\x1b[38;2;%d;1;1mA" % (round_ * 5))
        rows = terminal.frame().rows
        foreground = STYLE.unpack(rows[0].runs[0].style)[1]
        assert foreground == COLOR_RGB | (round_ * 5) << 16 | 0x0101


def test_the_same_text_in_another_style_is_another_row() -> None:
    terminal = engine(20, 5)
    terminal.feed(b"\x1b[31mtext")
    terminal.frame()
    terminal.feed(b"\x1b[1;1H\x1b[32mtext")
    assert set(terminal.frame().rows) == {0}


def test_thousands_of_styles_in_one_page_are_all_right() -> None:
    terminal = engine(200, 50)
    for y in range(50):
        terminal.feed(b"\x1b[%d;1H" % (y + 1))
        terminal.feed(b"".join(b"\x1b[38;2;%d;%d;7mx" % (y, x) for x in range(200)))
    for y, row in terminal.frame(full=True).rows.items():
        found = [STYLE.unpack(run.style)[1] for run in row.runs]
        assert found == [COLOR_RGB | y << 16 | x << 8 | 7 for x in range(200)]


# -- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how", [b"\x1b[?40h\x1b[?3h", b"\x1b[?40;3h", b"\x1b[?40h\x1b[?3h\x1b[?3l"]
)
def test_132_columns_are_taken_back_and_text_goes_on(how: bytes) -> None:
    terminal = engine(80, 24)
    terminal.feed(how + b"x" * 100)
    assert terminal.size == (80, 24)
    assert answer(terminal, b"\x1b[18t") == b"\x1b[8;24;80t"
    assert all(sum(run.cells for run in row.runs) == 80 for row in terminal.frame().rows.values())
    terminal.feed(b"\x1bc" + b"y" * 81)
    assert lines(terminal)[:2] == ["y" * 80, "y"]


def test_a_guest_may_switch_clusters_off_and_a_reset_switches_them_on() -> None:
    terminal = engine()
    terminal.feed("\x1b[?2027l👍🏽|\x1bc👍🏽|".encode())
    assert lines(terminal)[0] == "👍|"


# -- answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "asked", "wanted"),
    [
        (b"\x1b]10;#102030\x07", b"\x1b]10;?\x07", b"\x1b]10;rgb:1010/2020/3030\x07"),
        (b"\x1b]11;rgb:1/2/3\x07", b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:1111/2222/3333\x1b\\"),
        (b"\x1b]4;7;#ffffff\x07", b"\x1b]4;7;?\x07", b"\x1b]4;7;rgb:ffff/ffff/ffff\x07"),
        (b"\x1b]12;red\x07", b"\x1b]12;?\x07", b"\x1b]12;rgb:ffff/0000/0000\x07"),
    ],
)
def test_colours_are_what_the_guest_made_them_until_it_resets_them(
    told: bytes, asked: bytes, wanted: bytes
) -> None:
    terminal = engine()
    first = answer(terminal, asked)
    terminal.feed(told)
    assert answer(terminal, asked) == wanted
    terminal.feed(b"\x1b]110\x07\x1b]111\x07\x1b]112\x07\x1b]104\x07")
    assert answer(terminal, asked) == first


GRAPHICS = [
    b"a=q,i=31,s=1,v=1,t=d,f=24;AAAA", b"a=t,i=1,s=1,v=1;AAAA", b"a=T,f=100,t=f;L2V0Yy9wYXNzd2Q=",
    b"a=T,f=100,t=s;L3NobQ==", b"a=T,f=100,t=t;L3RtcC90dHktZ3JhcGhpY3MtcHJvdG9jb2w=", b"a=p,i=1",
    b"a=f,i=1;AAAA", b"a=d", b"i=1,I=2;AAAA",
]  # fmt: skip


@pytest.mark.parametrize("command", GRAPHICS)
def test_graphics_are_not_answered_and_draw_nothing(command: bytes) -> None:
    terminal = engine()
    got = answer(terminal, b"\x1b_G" + command + b"\x1b\\after")
    assert b"OK" not in got
    assert got == b""
    assert lines(terminal)[0] == "after"


@pytest.mark.parametrize(
    "query", [b"\x1b[c", b"\x1b[6n", b"\x1b]11;?\x07", b"\x1bP+q436F\x1b\\", b"\x1b[?2027$p"]
)
def test_a_flood_of_queries_is_bounded_and_leaves_whole_answers(query: bytes) -> None:
    terminal = engine()
    one = answer(terminal, query)
    for _ in range(20):
        terminal.feed(query * 20_000)
    kept = terminal.take_replies()
    assert len(kept) <= MAX_REPLY
    assert kept == one * (len(kept) // len(one))
    assert answer(terminal, query) == one
