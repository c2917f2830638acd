r"""The messages between the screen and its pane worker, over one socketpair.

    u32 length of the payload | u16 pane | u8 kind | payload          (little endian)

Both ends check each length before they allocate, and every number against what it may be. The
worker runs a guest's bytes through native code, so the screen trusts nothing that it says: texts
are made printable here, at the reading end, and `pane` and row numbers are looked up, never used
blindly. Nothing is ever unpickled.

Down (to the worker): OPEN (one descriptor of a connected `pane.sock` rides along), CLOSE, RESIZE,
KEY, TEXT, PASTE, MOUSE, FOCUS, SCROLL, ACK, RATE, ACTIVE, PALETTE, COPY, SELECT, COPY_MODE, MOVE,
MARK, SEARCH, FIND, HOLD, NAME.
Up: HELLO, FATAL, FRAME, STATE, TITLE, FOLDER, BELL, CLIPBOARD, NOTIFY, PROGRESS, COPIED, PASSED,
HOLDER, PROGRAM.
Frames are laid out in `wire_frame`, what belongs to copy mode, search and pasting in `wire_view`.
"""

from __future__ import annotations

import enum
import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from vm.errors import GuestProtocol

if TYPE_CHECKING:
    from collections.abc import Iterator

PROTOCOL = 2
"""Number of this layout; HELLO carries it."""

HEADER = struct.Struct("<IHB")
MAX_PAYLOAD = 20 << 20
"""Longest payload in bytes: the largest frame fits (a style and six characters for each cell)."""

MAX_PANES = 256
"""Panes that one worker may hold."""

MAX_TEXT = 1 << 20
"""Longest pasted or copied-on-request text in bytes."""

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters other than tab and line feed."""


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
    SELECT = 15
    COPY_MODE = 16
    MOVE = 17
    MARK = 18
    SEARCH = 19
    FIND = 20
    HOLD = 21
    NAME = 22


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
    PASSED = 75
    HOLDER = 76
    PROGRAM = 77


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


class Copy(enum.IntEnum):
    """Which text COPY asks for."""

    SCREEN = 0
    ALL = 1
    SELECTION = 2


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
"""Columns, rows, rate, flags; the packed palette follows."""
ACTIVE, CAREFUL, NAMED, HELD = 1, 2, 4, 8
"""Flags of OPEN: the view's size is the guest's; an engine of this terminal has crashed, so the
replay takes no size but the last; a NAME follows, and the pane is not live before its answer; this
pane held the terminal when its last worker ended, and goes on to. (The
engine can end when it widens a terminal that holds links, about once in 10,000 times, and a replay
would widen it at the same place again.)"""
PAIR = struct.Struct("<HH")
SIGNED = struct.Struct("<i")
NUMBER = struct.Struct("<I")
MOUSE = struct.Struct("<BHHBB")
"""Action, x, y, button, modifiers."""
COPY = struct.Struct("<IB")
"""Request, and which text (see `Copy`)."""
PASSED = NUMBER
"""How many KEY, TEXT, PASTE and MOUSE messages were passed on by the keeper, or dropped (modulo
2^32; counted from what NAME said, else from OPEN)."""
NAME = struct.Struct("<QI")
"""Which client the keeper is to count for, over all its connections, and what was taken so far."""
HOLDER = struct.Struct("<BH")
"""Whether this client holds the terminal, and how many clients there are."""
PROGRAM = struct.Struct("<Q")
"""Which run of the program is behind the terminal; another number is another program."""
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
    return CONTROLS.sub(" ", text)


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
