"""What is painted over a terminal's rows: marks and the cursor, never a change of text or width.

The cursor is drawn in cells. The outer terminal's own cursor could be a real bar and blink without
us, but Textual hides it and moves it about while it writes; showing it would make it jump on
terminals without synchronised output, shine through what lies above the pane, and keep its shape
after a crash. Textual does put the hidden one where ours is, for input methods and readers.

A cell holds one character, so a bar beside one cannot be drawn. What people must tell apart is
vim's two modes, and which pane has the keys:

* block: the cell reversed; both cells of a wide character
* bar: a thin bar in an empty cell; on a character a paler block (without fine colours: bold and
  underlined)
* underline: a thick line in an empty cell; on a character bold and underlined
* hollow, which is also every cursor without the keys: a plain underline
"""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len, split_graphemes
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from widgets.terminal_draw_ink import Ink, MarkLook
    from widgets.terminal_feed import CursorShape, Mark, MarkKind

    Change = Callable[[str, Style, int], Segment]

BAR, LINE = "\u258f", "\u2581"
"""A thin bar and a thick underline, for cells that are empty."""

LOOKS: tuple[MarkLook, ...] = ("selection", "match", "current", "selected match")
"""How a marked cell looks; its code, one byte a cell, is the place in here plus 1, 0 is none."""

CODES: dict[MarkKind, bytes] = {
    "selection": bytes([1] * 256),
    "match": bytes([2, 4, 2, 2, 4] + [2] * 251),
    "current": bytes([3] * 256),
}
"""What a mark makes of the code that a cell has: a match in the selection shows both."""

NO_STYLE = Style.null()

CursorLook = Literal["block", "bar", "underline", "hollow"]


def mark_codes(marks: Sequence[Mark], cells: int) -> bytearray:
    """Return the code of each of a row's cells; later marks win, what is outside is left out."""
    codes = bytearray(cells)
    for mark in marks:
        start, end = max(0, mark.start), min(mark.end, cells)
        if start < end:
            codes[start:end] = codes[start:end].translate(CODES[mark.kind])
    return codes


def recut(strip: Strip, codes: bytearray, change: Change) -> Strip:
    """Return the strip with `change` applied where a cell's code is not 0.

    A character is never cut: one of several cells takes the highest code of its cells.
    """
    segments: list[Segment] = []
    at = 0
    for segment in strip:
        text, style, control = segment
        length = 0 if control else cell_len(text)
        here = codes[at : at + length]
        at += length
        if not any(here):
            segments.append(segment)
            continue
        for piece, code in pieces(text, here):
            base = style or NO_STYLE
            segments.append(change(piece, base, code) if code else Segment(piece, style))
    return Strip(segments, strip.cell_length)


def pieces(text: str, codes: bytearray) -> list[tuple[str, int]]:
    """Return the parts of a text whose cells have the same code."""
    found: list[tuple[str, int]] = []
    at = 0
    for code, group in itertools.groupby(_codes_of(text, codes), key=operator.itemgetter(1)):
        end = max(end for end, _ in group)
        found.append((text[at:end], code))
        at = end
    if sum(cell_len(piece) for piece, _ in found) != cell_len(text):
        # joiners with nothing to join: no text that can be cut
        return [(text, max(codes, default=0))]
    return found


def _codes_of(text: str, codes: bytearray) -> Iterator[tuple[int, int]]:
    """Yield the end and the code of each character as people see it."""
    if text.isascii() and len(text) == len(codes):
        yield from enumerate(codes, 1)
        return
    cell = code = 0
    for _, end, width in split_graphemes(text)[0]:
        if width:
            code = max(codes[cell : cell + width], default=0)
        cell += width
        yield end, code


def paint_marks(strip: Strip, marks: Sequence[Mark], ink: Ink) -> Strip:
    """Return a row with its marks."""
    codes = mark_codes(marks, strip.cell_length) if marks else b""
    if not any(codes):
        return strip

    def change(text: str, style: Style, code: int) -> Segment:
        return Segment(text, ink.marked(style, LOOKS[code - 1]))

    return recut(strip, bytearray(codes), change)


def paint_cursor(strip: Strip, x: int, cells: int, look: CursorLook, ink: Ink) -> Strip:
    """Return a row with the cursor on `cells` cells from `x`."""
    codes = bytearray(strip.cell_length)
    codes[max(0, x) : min(x + cells, len(codes))] = b"\1" * len(codes[max(0, x) : x + cells])

    def change(text: str, style: Style, _code: int) -> Segment:
        return cursor_segment(text, style, look, ink)

    return recut(strip, codes, change)


def cursor_segment(text: str, style: Style, look: CursorLook, ink: Ink) -> Segment:
    """Return a character with the cursor on it."""
    empty = not text.strip(" ")
    if look == "block":
        return Segment(text, ink.turned(style))
    if look == "hollow":
        return Segment(text, style + Style(underline=not style.underline))
    if look == "bar":
        if empty:
            return Segment(BAR + text[1:], ink.lit(style))
        return Segment(text, ink.paler(style))
    if empty:
        return Segment(LINE * len(text), ink.lit(style))
    return Segment(text, style + Style(bold=True, underline=not style.underline))


def look_of(shape: CursorShape, *, has_keys: bool) -> CursorLook:
    """Return how a cursor looks; only where the keys are is it more than a thin line."""
    return shape if has_keys else "hollow"
