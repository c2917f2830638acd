"""Frames of `pane.sock` as the keeper and its clients read them; laid out by `vm.terminal.stream`.

The names say what the keeper means by a frame; there they say what a worker does with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.errors import AppError
from vm.terminal import stream

if TYPE_CHECKING:
    import asyncio

MAX_PAYLOAD: Final = stream.MAX_PAYLOAD
HEAD: Final = stream.HEAD
SIZE: Final = stream.SIZE
NUMBER: Final = stream.COUNT
STATUS: Final = stream.STATUS
PROGRAM: Final = stream.PROGRAM
PASSED: Final = stream.PASSED
NAMED: Final = stream.NAMED
HOLDER: Final = stream.HOLDER

SIZE_IS: Final = stream.SIZE_FRAME
OUTPUT: Final = stream.OUTPUT
LIVE: Final = stream.REPLAYED
ENDED: Final = stream.EXITED
INPUT: Final = stream.INPUT
RESIZE: Final = stream.RESIZE
ACK: Final = stream.ACK
PROGRAM_IS: Final = stream.PROGRAM_FRAME
TAKEN: Final = stream.TAKEN
COUNTED: Final = stream.COUNTED
NAME: Final = stream.NAME
HOLD: Final = stream.HOLD

WATCH: Final = stream.WATCH
TAKE: Final = stream.TAKE
WILLING: Final = stream.WILLING

frame = stream.frame


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Return the next frame; the length is checked before the payload is read.

    Raises IncompleteReadError at the end, AppError `protocol` for a length over the limit.
    """
    kind, length = HEAD.unpack(await reader.readexactly(HEAD.size))
    if length > MAX_PAYLOAD:
        raise AppError("protocol", "A terminal frame is over the limit.")
    return kind, await reader.readexactly(length)
