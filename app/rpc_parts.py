"""Values that are too long for one line of `control.sock`, cut into pieces.

A line has at most MAX_LINE bytes, so nobody makes the other side hold more than that unasked. What
is longer (ten thousand decisions, the report of a large merge, a file with a hunk in every second
line) crosses in pieces, each in a call of its own:

* a long parameter is put first (`put {id, data}`, again and again), and the call that it belongs to
  names it: `"parted": {"id", "size"}` beside empty `params`;
* a long result stays where it is: the answer says `"parted": {"id", "size"}` in its place, and the
  client asks for it (`piece {id, at}`).

The pieces are the bytes of the value's JSON, in base64. What is put and kept belongs to one
conversation and ends with it. A client that breaks off says so (`let_go {id, result}`); one that
does not stands in nobody's way: at the limit what was put to longest ago is let go.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from app.errors import AppError
from app.protocol import MAX_LINE

PIECE: Final = MAX_LINE // 2
"""Bytes of a value in one line; base64 makes a third more of them."""

WHOLE: Final = MAX_LINE - 4096
"""Bytes of a value up to which it goes in one line; the envelope needs the rest."""

MAX_VALUE: Final = 32 << 20
"""Bytes of the longest value that is sent in pieces."""

MAX_KEPT: Final = 4
"""Long results of one conversation that wait to be fetched; the oldest gives way."""


MAX_GONE: Final = 64
"""Parameters that gave way and are remembered, so that whoever goes on with one is told."""


class Parted(msgspec.Struct, frozen=True):
    """A value that is not in this line."""

    id: int
    size: int


class Put(msgspec.Struct, frozen=True):
    """A further piece of a parameter."""

    id: int
    data: bytes


class LetGo(msgspec.Struct, frozen=True):
    """A parameter that nobody will name any more, or a result that nobody will fetch."""

    id: int
    result: bool = False


class Wanted(msgspec.Struct, frozen=True):
    """Which piece of a result is wanted: from byte `at` on."""

    id: int
    at: int


def too_long(size: int) -> AppError:
    """Return the refusal of a value."""
    return AppError("too-large", f"A value of {size} bytes is over the limit of {MAX_VALUE}.")


def gave_way() -> AppError:
    """Return the refusal of a parameter that had to make room for others before it was whole."""
    text = "A long value was not sent whole: others of this client took its room."
    return AppError("busy", text, "Do it again, one at a time")


class Shelf:
    """The long values of one conversation, on the keeper's side."""

    def __init__(self) -> None:
        self._put: dict[int, bytearray] = {}
        """The one that was put to last stands last."""
        self._gone: deque[int] = deque(maxlen=MAX_GONE)
        self._kept: dict[int, bytes] = {}
        self._number = 0

    def put(self, piece: Put) -> None:
        """Take a piece of a parameter. Raises AppError `too-large`, or `busy` when it gave way."""
        if piece.id in self._gone:
            raise gave_way()
        value = self._put.pop(piece.id, bytearray())
        size = len(value) + len(piece.data)
        if size > MAX_VALUE:
            raise too_long(size)
        value.extend(piece.data)
        self._put[piece.id] = value
        self._make_room()

    def _make_room(self) -> None:
        """Let go of what was put to longest ago, never of the last one."""
        while sum(map(len, self._put.values())) > MAX_VALUE:
            oldest = next(iter(self._put))
            del self._put[oldest]
            self._gone.append(oldest)

    def let_go(self, named: LetGo) -> None:
        """Forget a parameter that was not put whole, or a result that was not fetched whole."""
        if named.result:
            self._kept.pop(named.id, None)
        else:
            self._put.pop(named.id, None)

    def take(self, named: Parted) -> bytes:
        """Return a parameter that was put, once.

        Raises AppError `busy` when it gave way, `protocol` when it is not whole.
        """
        if named.id in self._gone:
            raise gave_way()
        found = self._put.pop(named.id, bytearray())
        if len(found) != named.size:
            raise AppError("protocol", f"Of {named.size} bytes {len(found)} were put.")
        return bytes(found)

    def keep(self, value: bytes) -> Parted:
        """Keep a result until it is fetched. Raises AppError `too-large`."""
        if len(value) > MAX_VALUE:
            raise too_long(len(value))
        while len(self._kept) >= MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._number += 1
        self._kept[self._number] = value
        return Parted(self._number, len(value))

    def piece(self, wanted: Wanted) -> bytes:
        """Return a piece of a result; the last one lets go of it. Raises AppError `protocol`."""
        value = self._kept.get(wanted.id, b"")
        if not 0 <= wanted.at < len(value):
            raise AppError("protocol", f"There is no piece of {wanted.id} at {wanted.at}.")
        if wanted.at + PIECE >= len(value):
            del self._kept[wanted.id]
        return value[wanted.at : wanted.at + PIECE]
