"""Frames of `pane.sock`: `u8 type | u32 length (LE) | payload`, payload at most 64 KiB."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from app.errors import AppError

if TYPE_CHECKING:
    import asyncio

MAX_PAYLOAD: Final = 64 << 10
HEAD: Final = struct.Struct("<BI")
SIZE: Final = struct.Struct("<HH")
NUMBER: Final = struct.Struct("<I")
STATUS: Final = struct.Struct("<i")
PROGRAM: Final = struct.Struct("<Q")
PASSED: Final = struct.Struct("<II")
NAMED: Final = struct.Struct("<QI")
HOLDER: Final = struct.Struct("<BH")

SIZE_IS: Final = ord("S")
OUTPUT: Final = ord("O")
LIVE: Final = ord("L")
ENDED: Final = ord("X")
INPUT: Final = ord("I")
RESIZE: Final = ord("W")
ACK: Final = ord("A")
PROGRAM_IS: Final = ord("P")
TAKEN: Final = ord("T")
COUNTED: Final = ord("M")
NAME: Final = ord("N")
HOLD: Final = ord("H")

WATCH, TAKE, WILLING = 0, 1, 2
"""What a client asks for by HOLD: only to watch, the terminal now, the terminal once it is free."""


def frame(kind: int, payload: bytes = b"") -> bytes:
    """Return one frame."""
    return HEAD.pack(kind, len(payload)) + payload


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the next frame; the length is checked before the payload is read.

    Raises IncompleteReadError at the end, AppError `protocol` for a length over the limit.
    """
    kind, length = HEAD.unpack(await reader.readexactly(HEAD.size))
    if length > MAX_PAYLOAD:
        raise AppError("protocol", "A terminal frame is over the limit.")
    return kind, await reader.readexactly(length)
