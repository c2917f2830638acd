r"""The messages between the screen and its pane worker, over one socketpair.

    u32 length of the payload | u16 pane | u8 kind | payload          (little endian)

Both ends check each length before they allocate, and every number against what it may be. The
worker runs a guest's bytes through native code, so the screen trusts nothing that it says: texts
are made printable here, at the reading end, and `pane` and row numbers are looked up, never used
blindly. Nothing is ever unpickled.

Down (to the worker): OPEN (one descriptor of a connected `pane.sock` rides along), CLOSE, RESIZE,
KEY, TEXT, PASTE, MOUSE, FOCUS, SCROLL, ACK, RATE, ACTIVE, PALETTE, COPY.
Up: HELLO, FATAL, FRAME, STATE, TITLE, FOLDER, BELL, CLIPBOARD, NOTIFY, PROGRESS, COPIED.

A frame: its number, the size, the cursor, the modes, the scroll position, then the styles that its
rows use (14 bytes each) and the changed rows: y, runs of (style index, cells, characters), text.
Each frame can be read by itself.
"""

from __future__ import annotations

import enum
import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from vm.errors import GuestProtocol
from vm.terminal.screen import (
    MAX_COLUMNS,
    MAX_ROWS,
    STYLE,
    Cursor,
    CursorShape,
    Frame,
    Mode,
    Row,
    Run,
    Scrollback,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PROTOCOL = 1
"""Number of this layout; HELLO carries it."""

HEADER = struct.Struct("<IHB")
MAX_PAYLOAD = 8 << 20
"""Longest payload in bytes: a full page of 1000x500 cells with a style for each fits."""

MAX_PANES = 256
"""Panes that one worker may hold."""

MAX_TEXT = 1 << 20
"""Longest pasted or copied-on-request text in bytes."""

MAX_CELL_TEXT = 64
"""Characters that one cell may hold on average in a row's text."""

FRAME_HEAD = struct.Struct("<IHHHHBBHIIHH")
"""Number, columns, height, cursor x, y, flags, shape, modes, rows in all, offset, styles, rows."""

ROW_HEAD = struct.Struct("<HHI")
"""Row number, runs, bytes of text."""

RUN = struct.Struct("<HHH")
"""Index of the style, cells, characters."""

MAX_STYLES = 0xFFFF
"""Styles in one frame."""

CURSOR_SEEN, CURSOR_BLINKS, CURSOR_WIDE, AT_END = 1, 2, 4, 8
"""Bits of the frame's flags."""

PRINTABLE_TRASH = re.compile("[\\x00-\\x1f\\x7f-\\x9f]")


class Down(enum.IntEnum):
    """Messages to the worker."""

    OPEN = 1
    CLOSE = 2
    RESIZE = 3
    KEY = 4
    TEXT = 5
    PASTE = 6
    MOUSE = 7
    FOCUS = 8
    SCROLL = 9
    ACK = 10
    RATE = 11
    ACTIVE = 12
    PALETTE = 13
    COPY = 14


class Up(enum.IntEnum):
    """Messages from the worker."""

    HELLO = 64
    FATAL = 65
    FRAME = 66
    STATE = 67
    TITLE = 68
    FOLDER = 69
    BELL = 70
    CLIPBOARD = 71
    NOTIFY = 72
    PROGRESS = 73
    COPIED = 74


class PaneState(enum.IntEnum):
    """What STATE says of a pane."""

    LIVE = 0
    """The replay is over."""
    ENDED = 1
    """The terminal ended with a status."""
    LOST = 2
    """The connection to the keeper is gone."""


class Rate(enum.IntEnum):
    """How often a pane's frames may come."""

    HIDDEN = 0
    VISIBLE = 1
    FOCUSED = 2


class WireError(GuestProtocol):
    """A message of the other end that the layout does not allow."""

    code = "pane-wire"
    way_out = "Close the terminal and open it again; when it fails again: cloche doctor"


class Message(NamedTuple):
    """One message as it came."""

    pane: int
    kind: int
    payload: bytes


class Hello(NamedTuple):
    """What the worker says when its sandbox is closed."""

    protocol: int
    landlock: int
    """Version of Landlock that holds, 0 when the kernel has none."""
    seccomp: bool
    engine: str


HELLO_HEAD = struct.Struct("<HHB")
OPEN = struct.Struct("<HHBB")
"""Columns, rows, rate, active; the packed palette follows."""
PAIR = struct.Struct("<HH")
SIGNED = struct.Struct("<i")
NUMBER = struct.Struct("<I")
MOUSE = struct.Struct("<BHHBB")
"""Action, x, y, button, modifiers."""
COPY = struct.Struct("<IBHHHHB")
"""Request, what (0 screen, 1 all, 2 range), from x, y, to x, y, rectangle."""
STATE = struct.Struct("<Bi")
PROGRESS = struct.Struct("<bb")


def message(kind: int, pane: int, payload: bytes = b"") -> bytes:
    """Return one framed message; ValueError when it is longer than the other end takes."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"a message of {len(payload)} bytes is longer than {MAX_PAYLOAD}")
    return HEADER.pack(len(payload), pane, kind) + payload


class MessageReader:
    """Cuts a byte stream into messages; buffers at most one message and what one read brought."""

    def __init__(self, limit: int = MAX_PAYLOAD) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are complete now. Raises WireError on a length out of bounds."""
        self._buffer += data
        while len(self._buffer) >= HEADER.size:
            length, pane, kind = HEADER.unpack_from(self._buffer)
            if length > self._limit:
                raise WireError(f"A message announces {length} bytes.")
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(memoryview(self._buffer)[HEADER.size : end])
            del self._buffer[:end]
            yield Message(pane, kind, payload)


# -- texts -----------------------------------------------------------------------------------


def pack_texts(*texts: str) -> bytes:
    """Return texts, each with its length in bytes before it."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    return b"".join(NUMBER.pack(len(data)) + data for data in encoded)


def unpack_texts(payload: bytes, count: int, limit: int) -> tuple[str, ...]:
    """Read `count` texts of at most `limit` bytes each; nothing may follow them."""
    texts: list[str] = []
    place = 0
    for _ in range(count):
        if len(payload) - place < NUMBER.size:
            raise WireError("A text is cut short.")
        (length,) = NUMBER.unpack_from(payload, place)
        place += NUMBER.size
        if length > limit or length > len(payload) - place:
            raise WireError(f"A text announces {length} bytes.")
        texts.append(payload[place : place + length].decode("utf-8", "replace"))
        place += length
    if place != len(payload):
        raise WireError("Bytes follow the last text.")
    return tuple(texts)


def exactly(layout: struct.Struct, payload: bytes) -> tuple[int, ...]:
    """Unpack a payload that must be as long as its layout."""
    if len(payload) != layout.size:
        raise WireError(f"A message has {len(payload)} bytes where {layout.size} belong.")
    return layout.unpack(payload)


def one_line(text: str, limit: int) -> str:
    """Return text fit for one line of the screen: printable, at most `limit` characters."""
    clean = "".join(c if c.isprintable() else " " for c in text[:limit])
    return " ".join(clean.split())


def plain_text(text: str) -> str:
    """Return text without control characters other than tab and line feed."""
    return "".join(c if c in "\t\n" or not PRINTABLE_TRASH.match(c) else " " for c in text)


# -- hello -----------------------------------------------------------------------------------


def pack_hello(hello: Hello) -> bytes:
    """Return the payload of HELLO."""
    head = HELLO_HEAD.pack(hello.protocol, hello.landlock, hello.seccomp)
    return head + pack_texts(hello.engine)


def unpack_hello(payload: bytes) -> Hello:
    """Read a HELLO; WireError when it speaks another protocol."""
    protocol, landlock, seccomp = exactly(HELLO_HEAD, payload[: HELLO_HEAD.size])
    if protocol != PROTOCOL:
        raise WireError(f"The worker speaks protocol {protocol}, not {PROTOCOL}.")
    (engine,) = unpack_texts(payload[HELLO_HEAD.size :], 1, 256)
    return Hello(protocol, landlock, bool(seccomp), one_line(engine, 80))


# -- frames ----------------------------------------------------------------------------------


def pack_frame(number: int, frame: Frame) -> bytes:
    """Return the payload of FRAME."""
    styles: dict[bytes, int] = {}
    rows = [_pack_row(y, row, styles) for y, row in frame.rows.items()]
    cursor = frame.cursor
    flags = AT_END if frame.scrollback.at_end else 0
    if cursor is not None:
        flags |= CURSOR_SEEN | CURSOR_BLINKS * cursor.blinking | CURSOR_WIDE * cursor.wide
    head = FRAME_HEAD.pack(
        number & 0xFFFFFFFF,
        frame.columns,
        frame.height,
        cursor.x if cursor else 0,
        cursor.y if cursor else 0,
        flags,
        cursor.shape if cursor else CursorShape.BLOCK,
        frame.modes,
        min(frame.scrollback.total, 0xFFFFFFFF),
        min(frame.scrollback.offset, 0xFFFFFFFF),
        len(styles),
        len(rows),
    )
    return b"".join((head, *styles, *rows))


def _style_index(styles: dict[bytes, int], style: bytes) -> int:
    found = styles.get(style)
    if found is None:
        # past 65,535 styles in one frame the rest share the last one rather than end the frame
        found = len(styles)
        if found >= MAX_STYLES:
            return MAX_STYLES - 1
        styles[style] = found
    return found


def _pack_row(y: int, row: Row, styles: dict[bytes, int]) -> bytes:
    text = row.text.encode("utf-8", "replace")
    runs = b"".join(
        RUN.pack(_style_index(styles, style), cells, characters)
        for style, cells, characters in row.runs
    )
    return ROW_HEAD.pack(y, len(row.runs), len(text)) + runs + text


def unpack_frame(payload: bytes) -> tuple[int, Frame]:
    """Read a FRAME and return its number and what it says.

    Raises WireError unless every count, size and index is within bounds, the runs cover exactly
    the columns and the characters, and nothing is left over. Texts come back printable.
    """
    if len(payload) < FRAME_HEAD.size:
        raise WireError("A frame is cut short.")
    (number, columns, height, x, y, flags, shape, modes, total, offset, n_styles, n_rows) = (
        FRAME_HEAD.unpack_from(payload)
    )
    if not (1 <= columns <= MAX_COLUMNS and 1 <= height <= MAX_ROWS and n_rows <= height):
        raise WireError(f"A frame announces {columns}x{height} cells and {n_rows} rows.")
    place = FRAME_HEAD.size + n_styles * STYLE.size
    if place > len(payload):
        raise WireError(f"A frame announces {n_styles} styles.")
    styles = [payload[at : at + STYLE.size] for at in range(FRAME_HEAD.size, place, STYLE.size)]
    rows = _unpack_rows(payload, place, n_rows, (columns, height), styles)
    cursor = _unpack_cursor(flags, x, y, shape, (columns, height))
    scrollback = Scrollback(total, offset, bool(flags & AT_END))
    return number, Frame(columns, height, rows, cursor, Mode(modes & 0x7F), scrollback)


def _unpack_cursor(flags: int, x: int, y: int, shape: int, size: tuple[int, int]) -> Cursor | None:
    if not flags & CURSOR_SEEN:
        return None
    if x >= size[0] or y >= size[1] or shape > max(CursorShape):
        raise WireError(f"A frame puts its cursor at {x}, {y}.")
    return Cursor(x, y, CursorShape(shape), bool(flags & CURSOR_BLINKS), bool(flags & CURSOR_WIDE))


def _unpack_rows(
    payload: bytes, place: int, count: int, size: tuple[int, int], styles: list[bytes]
) -> dict[int, Row]:
    columns, height = size
    rows: dict[int, Row] = {}
    for _ in range(count):
        if len(payload) - place < ROW_HEAD.size:
            raise WireError("A row is cut short.")
        y, n_runs, n_text = ROW_HEAD.unpack_from(payload, place)
        place += ROW_HEAD.size
        end = place + n_runs * RUN.size
        if y >= height or n_runs > columns or n_text > columns * MAX_CELL_TEXT * 4:
            raise WireError(f"Row {y} announces {n_runs} runs and {n_text} bytes.")
        if end + n_text > len(payload):
            raise WireError("A row is cut short.")
        text = payload[end : end + n_text].decode("utf-8", "replace")
        runs = _unpack_runs(payload[place:end], styles, columns, len(text))
        rows[y] = Row(text if text.isprintable() else _printable(text), runs)
        place = end + n_text
    if place != len(payload):
        raise WireError("Bytes follow the last row.")
    return rows


def _unpack_runs(
    data: bytes, styles: list[bytes], columns: int, characters: int
) -> tuple[Run, ...]:
    try:
        runs = tuple(Run(styles[s], cells, chars) for s, cells, chars in RUN.iter_unpack(data))
    except IndexError as error:
        raise WireError("A run names a style that its frame does not have.") from error
    covered = sum(run.cells for run in runs), sum(run.characters for run in runs)
    if covered != (columns, characters):
        raise WireError(f"Runs cover {covered}, not {columns} cells, {characters} characters.")
    return runs


def _printable(text: str) -> str:
    """Replace what must not reach a terminal, one character for one."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
