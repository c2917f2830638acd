"""What a terminal engine says about its screen: rows of styled runs, cursor, modes, events.

A style is 14 packed bytes (see `STYLE`), so it can be a dictionary key and cross the wire as it is.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass
from typing import NamedTuple

MIN_COLUMNS, MIN_ROWS = 20, 5
"""Below this the engine is known to crash (its page code at 1 … 10 columns or 1 … 5 rows)."""

MAX_COLUMNS, MAX_ROWS = 1000, 500
"""Larger than any screen; bounds what a frame can hold."""

STYLE = struct.Struct("<HIII")
"""Attributes, foreground, background, underline colour (little endian, 14 bytes)."""

PLAIN = STYLE.pack(0, 0, 0, 0)
"""The style of text that has none."""

COLOR_PALETTE = 1 << 24
"""A colour with this bit is an index 0 … 255 in its low byte; 0 is the default colour."""

COLOR_RGB = 2 << 24
"""A colour with this bit is red << 16 | green << 8 | blue."""


class Attribute(enum.IntFlag):
    """Bits of a style's attributes; bits 8 … 10 hold the underline's kind (0 … 5)."""

    BOLD = 1
    FAINT = 2
    ITALIC = 4
    BLINK = 8
    INVERSE = 16
    INVISIBLE = 32
    STRIKE = 64
    OVERLINE = 128


UNDERLINE_SHIFT = 8
UNDERLINE_MASK = 7


class Run(NamedTuple):
    """Neighbouring cells of one style: how many cells they take and how many characters."""

    style: bytes
    cells: int
    characters: int


class Row(NamedTuple):
    """One row: its text, and runs that cover it from left to right."""

    text: str
    runs: tuple[Run, ...]


class CursorShape(enum.IntEnum):
    """How the guest wants the cursor to look; the engine's own numbers."""

    BAR = 0
    BLOCK = 1
    UNDERLINE = 2
    HOLLOW = 3


class Cursor(NamedTuple):
    """The cursor in cells of the visible page."""

    x: int
    y: int
    shape: CursorShape
    blinking: bool
    wide: bool


class Mode(enum.IntFlag):
    """What the guest switched on, as far as a view cares."""

    MOUSE_CLICK = 1
    MOUSE_DRAG = 2
    MOUSE_ANY = 4
    ALTERNATE = 8
    BRACKETED_PASTE = 16
    FOCUS_EVENTS = 32
    ALTERNATE_SCROLL = 64


MOUSE_MODES = Mode.MOUSE_CLICK | Mode.MOUSE_DRAG | Mode.MOUSE_ANY


class Scrollback(NamedTuple):
    """All rows, rows above the page, and whether the page follows the newest output."""

    total: int
    offset: int
    at_end: bool


class Frame(NamedTuple):
    """What changed since the frame before; `rows` maps the row number to what it shows now."""

    columns: int
    height: int
    rows: dict[int, Row]
    cursor: Cursor | None
    modes: Mode
    scrollback: Scrollback


@dataclass(slots=True)
class Happenings:
    """What the guest asked for besides drawing, since it was last taken; the last one wins.

    Texts are as the guest sent them, cut at their limits; whoever shows them makes them printable.
    """

    title: str | None = None
    folder: str | None = None
    bell: bool = False
    clipboard: str | None = None
    notification: tuple[str, str] | None = None
    progress: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        """Tell whether anything happened."""
        return self != Happenings()


class MouseAction(enum.IntEnum):
    """What the mouse did."""

    PRESS = 0
    RELEASE = 1
    MOVE = 2
    SCROLL_UP = 3
    SCROLL_DOWN = 4


class Modifier(enum.IntFlag):
    """Modifier keys, with the engine's own bits."""

    SHIFT = 1
    CTRL = 2
    ALT = 4
    SUPER = 8


class MouseEvent(NamedTuple):
    """One mouse event in cells; `button` is 1 left, 2 middle, 3 right, 0 none."""

    action: MouseAction
    x: int
    y: int
    button: int
    modifiers: Modifier


def clamp_size(columns: int, rows: int) -> tuple[int, int]:
    """Return the nearest size that the engine takes."""
    return (
        max(MIN_COLUMNS, min(columns, MAX_COLUMNS)),
        max(MIN_ROWS, min(rows, MAX_ROWS)),
    )
