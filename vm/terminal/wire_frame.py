"""The layout of a frame between the screen and its pane worker.

A frame: its number, the size, the cursor, the modes, the scroll position; the styles that its rows
use (14 bytes each); the addresses of its links; the changed rows: y, runs of (style index, cells,
characters), text, links; and the view: copy mode, selection and search, with the marks of the whole
page. Each frame can be read by itself, and the reading end checks everything.
"""

from __future__ import annotations

import struct

from vm.terminal.drawable import drawable
from vm.terminal.screen import (
    MAX_CLUSTER_TEXT,
    MAX_COLUMNS,
    MAX_LINK,
    MAX_ROWS,
    STYLE,
    Cursor,
    CursorShape,
    Frame,
    Link,
    Mark,
    MarkKind,
    Mode,
    Row,
    Run,
    Scrollback,
    ViewState,
    link_address,
)
from vm.terminal.wire import WireError

FRAME_HEAD = struct.Struct("<IHHHHBBHIIHHH")
"""Number, columns, height, cursor x, y, flags, shape, modes, rows in all, offset, styles,
addresses, rows."""

ADDRESS_HEAD = struct.Struct("<H")
"""Bytes of an address of a link; they follow."""

ROW_HEAD = struct.Struct("<HHIH")
"""Row number, runs, bytes of text, links."""

RUN = struct.Struct("<HHH")
"""Index of the style, cells, characters."""

LINK = struct.Struct("<HHH")
"""First cell, cell after the last, index of the address."""

VIEW = struct.Struct("<BIIHI")
"""Flags, matches, match, rows with marks, marks in all."""

MARK_ROW = struct.Struct("<HH")
"""Row number, marks."""

MARK = struct.Struct("<HHB")
"""First cell, cell after the last, kind."""

MAX_ADDRESSES = 1024
"""Different addresses of links in one frame."""

MAX_ADDRESS_BYTES = 256 << 10
"""Bytes of all addresses of one frame."""

MAX_LINKS = 16_384
"""Links in one frame."""

MAX_MARKS = 16_384
"""Marks in one frame."""

MAX_STYLES = 0xFFFF
"""Styles in one frame."""

CURSOR_SEEN, CURSOR_BLINKS, CURSOR_WIDE, AT_END = 1, 2, 4, 8
"""Bits of the frame's flags."""

COPYING, SELECTED, SEARCHING = 1, 2, 4
"""Bits of the view's flags."""


# -- frames ----------------------------------------------------------------------------------


def pack_frame(number: int, frame: Frame) -> bytes:
    """Return the payload of FRAME.

    What passes the bounds of one frame is left out rather than end the worker: styles beyond 65,535
    share the last one, links and marks beyond their bounds are not told.
    """
    styles: dict[bytes, int] = {}
    addresses = _Addresses()
    rows = [_pack_row(y, row, styles, addresses) for y, row in frame.rows.items()]
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
        len(addresses.known),
        len(rows),
    )
    return b"".join((head, *styles, *addresses.packed, *rows, _pack_view(frame)))


class _Addresses:
    """The addresses of one frame's links, each told once."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}
        self.packed: list[bytes] = []
        self._bytes = self._links = 0

    def index(self, uri: str) -> int | None:
        """Return the number of an address, None when the frame holds no more."""
        found = self.known.get(uri)
        if found is None:
            data = uri.encode("ascii", "replace")[:MAX_LINK]
            full = len(self.known) >= MAX_ADDRESSES or self._bytes + len(data) > MAX_ADDRESS_BYTES
            if full or self._links >= MAX_LINKS:
                return None
            found = self.known[uri] = len(self.known)
            self.packed.append(ADDRESS_HEAD.pack(len(data)) + data)
            self._bytes += len(data)
        if self._links >= MAX_LINKS:
            return None
        self._links += 1
        return found


def _style_index(styles: dict[bytes, int], style: bytes) -> int:
    found = styles.get(style)
    if found is None:
        # past 65,535 styles in one frame the rest share the last one rather than end the frame
        found = len(styles)
        if found >= MAX_STYLES:
            return MAX_STYLES - 1
        styles[style] = found
    return found


def _pack_row(y: int, row: Row, styles: dict[bytes, int], addresses: _Addresses) -> bytes:
    text = row.text.encode("utf-8", "replace")
    runs = b"".join(
        RUN.pack(_style_index(styles, style), cells, characters)
        for style, cells, characters in row.runs
    )
    if not row.links:
        return ROW_HEAD.pack(y, len(row.runs), len(text), 0) + runs + text
    found = [(link, addresses.index(link.uri)) for link in row.links]
    links = [LINK.pack(it.start, it.end, index) for it, index in found if index is not None]
    return b"".join((ROW_HEAD.pack(y, len(row.runs), len(text), len(links)), runs, text, *links))


def _pack_view(frame: Frame) -> bytes:
    view, room, rows = frame.view, MAX_MARKS, list[bytes]()
    for y, marks in frame.marks.items():
        kept = marks[:room]
        room -= len(kept)
        if kept:
            rows += MARK_ROW.pack(y, len(kept)), *(MARK.pack(*mark) for mark in kept)
    flags = COPYING * view.copying | SELECTED * view.selected | SEARCHING * view.searching
    count = sum(1 for part in rows if len(part) == MARK_ROW.size)
    counts = min(view.matches, 0xFFFFFFFF), min(view.match, 0xFFFFFFFF)
    return VIEW.pack(flags, *counts, count, MAX_MARKS - room) + b"".join(rows)


# -- reading -----------------------------------------------------------------------------------


class _Reader:
    """Takes a payload apart from left to right; WireError where it ends too early."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.place = 0

    def take(self, layout: struct.Struct, what: str) -> tuple[int, ...]:
        """Return the numbers that are next."""
        if len(self.payload) - self.place < layout.size:
            raise WireError(f"{what} is cut short.")
        found = layout.unpack_from(self.payload, self.place)
        self.place += layout.size
        return found

    def bytes(self, size: int, what: str) -> bytes:
        """Return the bytes that are next."""
        end = self.place + size
        if end > len(self.payload):
            raise WireError(f"{what} is cut short.")
        found = self.payload[self.place : end]
        self.place = end
        return found


def unpack_frame(payload: bytes) -> tuple[int, Frame]:
    """Read a FRAME and return its number and what it says.

    Raises WireError unless every count, size and index is within bounds, the runs cover exactly
    the columns and the characters, links and marks lie in their rows, every address is one that
    may be a link, and nothing is left over. Texts come back printable.
    """
    reader = _Reader(payload)
    (number, columns, height, x, y, flags, shape, modes, total, offset, *counts) = reader.take(
        FRAME_HEAD, "A frame"
    )
    n_styles, n_addresses, n_rows = counts
    if not (1 <= columns <= MAX_COLUMNS and 1 <= height <= MAX_ROWS and n_rows <= height):
        raise WireError(f"A frame announces {columns}x{height} cells and {n_rows} rows.")
    size = columns, height
    packed = reader.bytes(n_styles * STYLE.size, "A frame's list of styles")
    styles = [packed[at : at + STYLE.size] for at in range(0, len(packed), STYLE.size)]
    addresses = _unpack_addresses(reader, n_addresses)
    rows = dict(_unpack_row(reader, size, styles, addresses) for _ in range(n_rows))
    cursor = _unpack_cursor(flags, x, y, shape, size)
    marks, view = _unpack_view(reader, size)
    if reader.place != len(payload):
        raise WireError("Bytes follow the end of a frame.")
    scrollback = Scrollback(total, offset, bool(flags & AT_END))
    frame = Frame(columns, height, rows, cursor, Mode(modes & 0x7F), scrollback, marks, view)
    return number, frame


def _unpack_cursor(flags: int, x: int, y: int, shape: int, size: tuple[int, int]) -> Cursor | None:
    if not flags & CURSOR_SEEN:
        return None
    if x >= size[0] or y >= size[1] or shape > max(CursorShape):
        raise WireError(f"A frame puts its cursor at {x}, {y}.")
    return Cursor(x, y, CursorShape(shape), bool(flags & CURSOR_BLINKS), bool(flags & CURSOR_WIDE))


def _unpack_addresses(reader: _Reader, count: int) -> list[str]:
    if count > MAX_ADDRESSES:
        raise WireError(f"A frame announces {count} addresses.")
    found: list[str] = []
    for _ in range(count):
        (size,) = reader.take(ADDRESS_HEAD, "An address")
        address = link_address(reader.bytes(size, "An address"))
        if address is None:
            raise WireError("An address may not be a link.")
        found.append(address)
    return found


def _unpack_row(
    reader: _Reader, size: tuple[int, int], styles: list[bytes], addresses: list[str]
) -> tuple[int, Row]:
    columns, height = size
    y, n_runs, n_text, n_links = reader.take(ROW_HEAD, "A row")
    if y >= height or n_runs > columns or n_text > columns * MAX_CLUSTER_TEXT * 4:
        raise WireError(f"Row {y} announces {n_runs} runs and {n_text} bytes.")
    packed = reader.bytes(n_runs * RUN.size, "A row")
    text = reader.bytes(n_text, "A row").decode("utf-8", "replace")
    runs = _unpack_runs(packed, styles, columns, len(text))
    links = _unpack_links(reader, n_links, columns, addresses) if n_links else ()
    return y, Row(text if drawable(text) else _printable(text), runs, links)


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


def _unpack_links(
    reader: _Reader, count: int, columns: int, addresses: list[str]
) -> tuple[Link, ...]:
    found: list[Link] = []
    last = 0
    for _ in range(count):
        start, end, index = reader.take(LINK, "A link")
        if not last <= start < end <= columns or index >= len(addresses):
            raise WireError(f"A link lies on cells {start} to {end} and names address {index}.")
        found.append(Link(start, end, addresses[index]))
        last = end
    return tuple(found)


def _unpack_view(
    reader: _Reader, size: tuple[int, int]
) -> tuple[dict[int, tuple[Mark, ...]], ViewState]:
    flags, matches, match, n_rows, n_marks = reader.take(VIEW, "A view")
    if n_rows > size[1] or n_marks > MAX_MARKS or match > matches:
        raise WireError(f"A view announces {n_marks} marks and match {match} of {matches}.")
    marks = dict(_unpack_marks(reader, size) for _ in range(n_rows))
    if sum(map(len, marks.values())) != n_marks:
        raise WireError(f"A view does not have the {n_marks} marks that it announces.")
    copying, selected, searching = (bool(flags & bit) for bit in (COPYING, SELECTED, SEARCHING))
    return marks, ViewState(copying, selected, matches, match, searching)


def _unpack_marks(reader: _Reader, size: tuple[int, int]) -> tuple[int, tuple[Mark, ...]]:
    y, count = reader.take(MARK_ROW, "A row of marks")
    if y >= size[1]:
        raise WireError(f"Row {y} has marks.")
    found: list[Mark] = []
    for _ in range(count):
        start, end, kind = reader.take(MARK, "A mark")
        if not start < end <= size[0] or kind > max(MarkKind):
            raise WireError(f"A mark of kind {kind} lies on cells {start} to {end}.")
        found.append(Mark(start, end, MarkKind(kind)))
    return y, tuple(found)


def _printable(text: str) -> str:
    """Replace what must not reach a terminal, one character for one."""
    return "".join(c if drawable(c) else "\ufffd" for c in text)
