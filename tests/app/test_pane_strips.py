"""Strips: exact widths whatever a row claims, and the colours of the theme."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import ColorSystem, ColorType
from rich.console import Console
from textual.strip import Strip

from app.ui.pane_strips import StripMaker, fit
from vm.terminal.palette import TerminalPalette
from vm.terminal.screen import COLOR_PALETTE, COLOR_RGB, PLAIN, STYLE, Attribute, Link, Row, Run

PALETTE = TerminalPalette((1, 2, 3), (4, 5, 6), ansi=tuple((i, i, i) for i in range(100, 116)))
PRINTABLE = st.characters(exclude_categories=("Cc", "Cf", "Cs", "Cn", "Zl", "Zp"))


@given(st.text(PRINTABLE, max_size=8), st.integers(1, 20))
def test_text_always_takes_its_cells(text: str, cells: int) -> None:
    assert cell_len(fit(text, cells)) == cells


@pytest.mark.parametrize(
    ("text", "cells", "drawn"),
    [
        ("abc", 3, "abc"),
        ("漢字", 4, "漢字"),
        ("❤", 2, "❤ "),
        ("漢", 1, "\ufffd"),
        ("e\u0301", 1, "e\u0301"),
        ("\u0301", 1, "\ufffd"),
        ("", 2, "\ufffd "),
        ("a漢b", 3, "a\ufffdb"),
        ("a漢b", 6, "a 漢b "),
    ],
)
def test_how_text_is_made_to_fit(text: str, cells: int, drawn: str) -> None:
    assert fit(text, cells) == drawn


def style(attributes: int = 0, foreground: int = 0, background: int = 0) -> bytes:
    return STYLE.pack(attributes, foreground, background, 0)


def test_default_colours_are_the_palettes() -> None:
    made = StripMaker(PALETTE).style(PLAIN)
    assert made.color
    assert made.bgcolor
    assert (made.color.triplet, made.bgcolor.triplet) == ((1, 2, 3), (4, 5, 6))


@pytest.mark.parametrize(
    ("packed", "triplet"),
    [
        (COLOR_PALETTE | 3, (103, 103, 103)),
        (COLOR_PALETTE | 16, (0, 0, 0)),
        (COLOR_PALETTE | 231, (255, 255, 255)),
        (COLOR_PALETTE | 255, (238, 238, 238)),
        (COLOR_RGB | 0x0A0B0C, (10, 11, 12)),
    ],
)
def test_colours(packed: int, triplet: tuple[int, int, int]) -> None:
    made = StripMaker(PALETTE).style(style(foreground=packed, background=packed))
    assert made.color
    assert made.bgcolor
    assert made.color.triplet == made.bgcolor.triplet == triplet


def test_a_native_theme_leaves_the_terminals_own_colours_alone() -> None:
    maker = StripMaker(PALETTE, native=True)
    assert maker.style(PLAIN).color is None
    assert maker.style(PLAIN).bgcolor is None
    red = maker.style(style(foreground=COLOR_PALETTE | 1)).color
    assert red
    assert red.type == ColorType.STANDARD
    cube = maker.style(style(foreground=COLOR_PALETTE | 196)).color
    assert cube
    assert cube.triplet == (255, 0, 0)


def test_attributes() -> None:
    everything = sum(Attribute)
    made = StripMaker(PALETTE).style(style(everything | 2 << 8))
    flags = (made.bold, made.dim, made.italic, made.blink, made.reverse, made.conceal)
    assert all((*flags, made.strike, made.overline, made.underline2))
    assert not made.underline
    assert StripMaker(PALETTE).style(style(3 << 8)).underline


def test_underlines_are_as_fine_as_the_outer_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    curly_red = STYLE.pack(3 << 8, 0, 0, COLOR_RGB | 0xFF0000)
    plain = StripMaker(PALETTE).style(curly_red)
    assert Strip.render_style(plain, "x", ColorSystem.TRUECOLOR).startswith("\x1b[4;38;2;")
    monkeypatch.setenv("TERM", "xterm-kitty")
    monkeypatch.setenv("COLORTERM", "truecolor")
    fine = StripMaker(PALETTE).style(curly_red)
    assert Strip.render_style(fine, "x", ColorSystem.TRUECOLOR).endswith(
        ";4:3;58:2::255:0:0mx\x1b[0m"
    )
    assert fine == plain, "pictures and marks see a plain line"


@given(
    st.lists(st.tuples(st.text(PRINTABLE, max_size=3), st.integers(0, 4)), min_size=1, max_size=9)
)
def test_a_strip_is_as_wide_as_its_runs_say(pieces: list[tuple[str, int]]) -> None:
    row = Row(
        "".join(text for text, _ in pieces),
        tuple(Run(PLAIN, cells, len(text)) for text, cells in pieces),
    )
    columns = sum(cells for _, cells in pieces)
    strip = StripMaker(PALETTE).strip(row, columns)
    assert sum(cell_len(segment.text) for segment in strip) == strip.cell_length == columns


@given(
    st.lists(st.tuples(st.text(PRINTABLE, max_size=3), st.integers(1, 6)), min_size=1, max_size=9),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4),
)
def test_links_lie_on_their_cells_and_change_no_width(
    pieces: list[tuple[str, int]], places: list[tuple[int, int]]
) -> None:
    columns = sum(cells for _, cells in pieces)
    links: list[Link] = []
    for first, second in places:
        start = max(min(first, second), links[-1].end if links else 0)
        end = min(max(first, second), columns)
        if start < end:
            links.append(Link(start, end, f"https://example.org/{len(links)}"))
    row = Row(
        "".join(text for text, _ in pieces),
        tuple(Run(PLAIN, cells, len(text)) for text, cells in pieces),
        tuple(links),
    )
    strip = StripMaker(PALETTE).strip(row, columns)
    assert sum(cell_len(segment.text) for segment in strip) == strip.cell_length == columns
    cells = [
        segment.style.link if segment.style else None
        for segment in strip
        for _ in range(cell_len(segment.text))
    ]
    for x, uri in enumerate(cells):
        wanted = next((link.uri for link in links if link.start <= x < link.end), None)
        assert uri == wanted


def test_a_link_keeps_the_style_of_its_text_and_is_one_link_wherever_it_is() -> None:
    bold, plain = style(Attribute.BOLD), style(0)
    link = Link(2, 6, "https://example.org")
    maker = StripMaker(PALETTE)
    row = Row("abcdefgh", (Run(bold, 4, 4), Run(plain, 4, 4)), (link,))
    first, second = maker.strip(row, 8), maker.strip(row._replace(text="ABCDEFGH"), 8)
    assert [(s.text, s.style and s.style.link) for s in first] == [
        ("ab", None),
        ("cd", link.uri),
        ("ef", link.uri),
        ("gh", None),
    ]
    assert [bool(s.style and s.style.bold) for s in first] == [True, True, False, False]
    written = first.render(Console(color_system="truecolor", force_terminal=True))
    assert written.count("\x1b]8;id=") == 2
    ids = {s.style.link_id for strip in (first, second) for s in strip if s.style and s.style.link}
    assert len(ids) == 2  # one for each style: the part in bold and the rest
