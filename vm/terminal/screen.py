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

MAX_CLUSTER_TEXT = 6
"""Most characters of one cell that are drawn; what is piled up beyond is noise."""

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


class Link(NamedTuple):
    """Cells [start, end) of a row that lead to an address (see `link_address`)."""

    start: int
    end: int
    uri: str


class Row(NamedTuple):
    """One row: its text, runs that cover it from left to right, and links, left to right."""

    text: str
    runs: tuple[Run, ...]
    links: tuple[Link, ...] = ()


class MarkKind(enum.IntEnum):
    """How marked cells are painted; where marks overlap the higher number wins."""

    SELECTION = 0
    MATCH = 1
    CURRENT = 2
    """The match that the search stands on."""


class Mark(NamedTuple):
    """Cells [start, end) of a row that are painted in another way; never empty."""

    start: int
    end: int
    kind: MarkKind


class ViewState(NamedTuple):
    """What the user does with the page: copy mode, a selection, a search."""

    copying: bool = False
    """The page is frozen and the cursor is the copy cursor."""
    selected: bool = False
    """There is a selection, on the page or off it."""
    matches: int = 0
    """Matches found so far."""
    match: int = 0
    """Which of them the search stands on, from 1, oldest first; 0: none."""
    searching: bool = False
    """The search still goes on; `matches` may grow."""


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
    """What changed since the frame before; `rows` maps the row number to what it shows now.

    `marks` is not a difference: it holds every mark of the page by row and replaces the former
    ones. Rows without marks are left out.
    """

    columns: int
    height: int
    rows: dict[int, Row]
    cursor: Cursor | None
    modes: Mode
    scrollback: Scrollback
    marks: dict[int, tuple[Mark, ...]] = {}  # noqa: RUF012 - frames are values, nobody changes one
    view: ViewState = ViewState()


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


WHEEL_LINES = 3
"""Rows that one notch of the wheel moves the page by; on the alternate screen, arrow keys."""


class Unit(enum.IntEnum):
    """What a mouse selection grows by."""

    CELL = 0
    WORD = 1
    LINE = 2


class Shape(enum.IntEnum):
    """What copy mode selects between the place where it was started and the cursor."""

    NONE = 0
    CELLS = 1
    LINES = 2
    BLOCK = 3
    SWAP = 4
    """No shape: the cursor goes to the other end of the selection."""


class Motion(enum.IntEnum):
    """How the copy cursor moves; words, lines and brackets as in vi."""

    LEFT = 0
    RIGHT = 1
    UP = 2
    DOWN = 3
    LINE_START = 4
    LINE_TEXT = 5
    """First character of the line that is no blank."""
    LINE_END = 6
    WORD_NEXT = 7
    WORD_BACK = 8
    WORD_END = 9
    PAGE_UP = 10
    PAGE_DOWN = 11
    HALF_UP = 12
    HALF_DOWN = 13
    TOP = 14
    """Oldest row of the scrollback; with a count, that row from the top."""
    BOTTOM = 15
    SCREEN_TOP = 16
    SCREEN_MIDDLE = 17
    SCREEN_BOTTOM = 18
    PARAGRAPH_BACK = 19
    PARAGRAPH_NEXT = 20
    PROMPT_BACK = 21
    PROMPT_NEXT = 22
    """Prompts as the shell marks them (OSC 133)."""
    BRACKET = 23
    """The bracket that belongs to the one at or after the cursor."""


MAX_COUNT = 9999
"""Largest count before a motion."""

MAX_NEEDLE = 256
"""Longest text to search for, in characters."""

MAX_LINK = 2048
"""Longest address of a link in bytes."""


def link_address(data: bytes) -> str | None:
    """Return the address if it may become a link: http or https, printable ASCII, not too long.

    Everything else could run a program on the user's machine or hide where it leads.
    """
    if len(data) > MAX_LINK or not all(0x21 <= byte <= 0x7E for byte in data):
        return None
    text = data.decode("ascii")
    scheme, found, rest = text.partition("://")
    return text if found and rest and scheme.lower() in ("http", "https") else None


def clamp_size(columns: int, rows: int) -> tuple[int, int]:
    """Return the nearest size that the engine takes."""
    return (
        max(MIN_COLUMNS, min(columns, MAX_COLUMNS)),
        max(MIN_ROWS, min(rows, MAX_ROWS)),
    )
