"""The frames of `pane.sock`: one session's terminal and nothing else (see docs/architecture.md).

u8 type | u32 length (little endian) | payload of at most 64 KiB
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from vm.errors import GuestProtocol

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = struct.Struct("<BI")
SIZE = struct.Struct("<HH")
COUNT = struct.Struct("<I")
STATUS = struct.Struct("<i")
PROGRAM = struct.Struct("<Q")
PASSED = struct.Struct("<II")
NAMED = struct.Struct("<QI")
HOLDER = struct.Struct("<BH")

MAX_PAYLOAD = 65_536
"""Longest payload in bytes."""

WINDOW = 1 << 20
"""Bytes of output that a keeper sends ahead of the slowest client's acks."""

SIZE_FRAME, OUTPUT, REPLAYED, EXITED = b"S"[0], b"O"[0], b"L"[0], b"X"[0]
"""Types from the keeper: size, output, end of the replay, end of the terminal."""

PROGRAM_FRAME, TAKEN = b"P"[0], b"T"[0]
"""Types from the keeper: which program runs (a keeper that says so also counts input); and how many
messages of this client were passed on in all, and how many bytes since it was told last."""

COUNTED, NAME = b"M"[0], b"N"[0]
"""Types from the client: input that ends a message which is counted; which client it is, whatever
connection it has, and how many of its messages it knows to have been passed on."""

INPUT, RESIZE, ACK = b"I"[0], b"W"[0], b"A"[0]
"""Types from the client: input, resize, bytes of output consumed."""

HOLD = b"H"[0]
"""Type both ways: a wish for the terminal (`WATCH`, `TAKE`, `WILLING`); who holds it now."""

WATCH, TAKE, WILLING = 0, 1, 2
"""Wishes: to watch only, the terminal now, the terminal once nobody else holds it."""


class StreamError(GuestProtocol):
    """A frame that `pane.sock` does not allow."""

    code = "pane-stream"
    way_out = "Close the terminal and open it again; when it fails again: cloche doctor"


def frame(kind: int, payload: bytes = b"") -> bytes:
    """Return one frame; the payload must fit (see `pieces`)."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"a payload of {len(payload)} bytes is longer than {MAX_PAYLOAD}")
    return HEAD.pack(kind, len(payload)) + payload


def pieces(kind: int, data: bytes) -> bytes:
    """Return data as as many frames as it takes."""
    starts = range(0, len(data), MAX_PAYLOAD)
    return b"".join(frame(kind, data[at : at + MAX_PAYLOAD]) for at in starts)


class FrameReader:
    """Cuts a byte stream into frames; holds at most one frame and what one read brought."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield type and payload of the frames that are complete now; StreamError when too long."""
        self._buffer += data
        while len(self._buffer) >= HEAD.size:
            kind, length = HEAD.unpack_from(self._buffer)
            if length > MAX_PAYLOAD:
                raise StreamError(f"A frame of the terminal announces {length} bytes.")
            end = HEAD.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(memoryview(self._buffer)[HEAD.size : end])
            del self._buffer[:end]
            yield kind, payload


def unpack(layout: struct.Struct, payload: bytes) -> tuple[int, ...]:
    """Unpack a payload that must be as long as its layout."""
    if len(payload) != layout.size:
        raise StreamError(f"A frame has {len(payload)} bytes where {layout.size} belong.")
    return layout.unpack(payload)
