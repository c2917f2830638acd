"""Rows of a terminal as Textual strips: colours of the theme, widths that hold whatever is claimed.

The worker is not trusted: the characters of a run must take the cells that it claims, by the same
measure that Textual lays out with, else they are replaced until they do. One row can never push
what stands beside the pane.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import os
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.color import Color, ColorType
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from vm.terminal.palette import all_colors
from vm.terminal.screen import (
    COLOR_PALETTE,
    COLOR_RGB,
    STYLE,
    UNDERLINE_MASK,
    UNDERLINE_SHIFT,
    Attribute,
)
from widgets.terminal_draw_underline import knows_underlines, underlined

if TYPE_CHECKING:
    from vm.terminal.palette import RGB, TerminalPalette
    from vm.terminal.screen import Row

MAX_STYLES = 65_536
"""Styles kept; a guest that makes up more only loses the shortcut."""

MAX_LINKS = 4096
"""Styles of links kept."""

UNKNOWN = "\ufffd"


def _rgb(rgb: RGB) -> Color:
    # Color.from_rgb formats a name for each colour, which takes ten times as long
    return Color("", ColorType.TRUECOLOR, None, ColorTriplet(*rgb))


@functools.cache
def _switches(bits: int) -> tuple[bool | None, ...]:
    """Return for each attribute, in the order of its bits, True or None (not said).

    Kept, for `&` on an enum takes longer than all else that a style does.
    """
    return tuple(bool(bits & it) or None for it in Attribute)


@functools.lru_cache(8192)
def fit(text: str, cells: int) -> str:
    """Return text that takes exactly `cells` cells, as close to `text` as that allows."""
    if cells <= 0:
        return ""
    if cell_len(text) == cells:
        return text
    if text and cells in (len(text), 2 * len(text)):
        width = cells // len(text)
        return "".join(_fit_one(character, width) for character in text)
    return _fit_one(text[:1], cells)


def _fit_one(character: str, cells: int) -> str:
    width = cell_len(character) if character else 0
    if not 0 < width <= cells:
        character = UNKNOWN
    return character.ljust(cells - cell_len(character) + len(character))


class StripMaker:
    """Turns rows into strips in one set of colours."""

    def __init__(self, palette: TerminalPalette, *, native: bool = False) -> None:
        """Take the colours; `native` leaves colours 0 … 15 and the defaults to the terminal."""
        self._native = native
        self._colors = tuple(_rgb(rgb) for rgb in all_colors(palette))
        self._foreground = None if native else _rgb(palette.foreground)
        self._background = None if native else _rgb(palette.background)
        self._styles: dict[bytes, Style] = {}
        self._links: dict[tuple[bytes, str], Style] = {}
        self._fine_lines = knows_underlines(os.environ)

    def strip(self, row: Row, columns: int) -> Strip:
        """Return a row as a strip of exactly `columns` cells."""
        if row.links:
            return self._linked(row, columns)
        text, place, known = row.text, 0, self._styles
        easy = text.isascii()
        segments: list[Segment] = []
        for packed, cells, characters in row.runs:
            piece = text[place : place + characters]
            place += characters
            if not (easy and cells == characters):
                piece = fit(piece, cells)
            segments.append(Segment(piece, known.get(packed) or self.style(packed)))
        return Strip(segments, columns)

    def _linked(self, row: Row, columns: int) -> Strip:
        """Return a row with its links, which need not begin and end where styles do."""
        plain = self.strip(row._replace(links=()), columns)
        packed = [run.style for run in row.runs]
        ends = list(itertools.accumulate(run.cells for run in row.runs))
        places = {place for link in row.links for place in (link.start, link.end)}
        cuts = sorted({*ends, *places, columns} - {0})
        segments: list[Segment] = []
        begin = 0
        for end, part in zip(cuts, plain.divide(cuts), strict=True):
            link = next((it for it in row.links if it.start <= begin < it.end), None)
            if link is None:
                segments += part
            else:
                style = self._link_style(packed[bisect.bisect_right(ends, begin)], link.uri)
                segments += (Segment(segment.text, style) for segment in part)
            begin = end
        return Strip(segments, columns)

    def _link_style(self, packed: bytes, uri: str) -> Style:
        """Return a style that leads to an address: one object for each, so it is one link."""
        found = self._links.get((packed, uri))
        if found is None:
            if len(self._links) >= MAX_LINKS:
                self._links.clear()
            found = self._links[packed, uri] = self._make(packed, uri)
        return found

    def blank(self, columns: int) -> Strip:
        """Return an empty row."""
        plain = Style(color=self._foreground, bgcolor=self._background)
        return Strip([Segment(" " * columns, plain)], columns)

    def style(self, packed: bytes) -> Style:
        """Return a packed style as a Rich style."""
        found = self._styles.get(packed)
        if found is None:
            if len(self._styles) >= MAX_STYLES:
                self._styles.clear()
            found = self._styles[packed] = self._make(packed)
        return found

    def _make(self, packed: bytes, link: str | None = None) -> Style:
        bits, foreground, background, line = STYLE.unpack(packed)
        underline = bits >> UNDERLINE_SHIFT & UNDERLINE_MASK
        bold, dim, italic, blink, reverse, conceal, strike, overline = _switches(bits & 0xFF)
        style = Style(
            color=self._color(foreground, self._foreground),
            bgcolor=self._color(background, self._background),
            bold=bold,
            dim=dim,
            italic=italic,
            blink=blink,
            reverse=reverse,
            conceal=conceal,
            strike=strike,
            overline=overline,
            underline=(underline not in (0, 2)) or None,
            underline2=(underline == 2) or None,
            link=link,
        )
        if self._fine_lines and (underline > 2 or (underline and line)):
            color = self._color(line, None)
            rgb = color.get_truecolor() if color is not None else None
            return underlined(style, underline, rgb)
        return style

    def _color(self, packed: int, default: Color | None) -> Color | None:
        if packed & COLOR_RGB:
            return _rgb((packed >> 16 & 0xFF, packed >> 8 & 0xFF, packed & 0xFF))
        if packed & COLOR_PALETTE:
            index = packed & 0xFF
            return Color.from_ansi(index) if self._native and index < 16 else self._colors[index]
        return default
