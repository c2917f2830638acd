"""Values that are too long for one line of `control.sock`, cut into pieces.

A line has at most MAX_LINE bytes, so nobody makes the other side hold more than that unasked. What
is longer (ten thousand decisions, the report of a large merge, a file with a hunk in every second
line) crosses in pieces, each in a call of its own:

* a long parameter is put first (`put {id, data}`, again and again), and the call that it belongs to
  names it: `"parted": {"id", "size"}` beside empty `params`;
* a long result stays where it is: the answer says `"parted": {"id", "size"}` in its place, and the
  client asks for it (`piece {id, at}`).

The pieces are the bytes of the value's JSON, in base64. What is put and kept belongs to one
conversation and ends with it.
"""

from __future__ import annotations

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


class Parted(msgspec.Struct, frozen=True):
    """A value that is not in this line."""

    id: int
    size: int


class Put(msgspec.Struct, frozen=True):
    """A further piece of a parameter."""

    id: int
    data: bytes


class Wanted(msgspec.Struct, frozen=True):
    """Which piece of a result is wanted: from byte `at` on."""

    id: int
    at: int


def too_long(size: int) -> AppError:
    """Return the refusal of a value."""
    return AppError("too-large", f"A value of {size} bytes is over the limit of {MAX_VALUE}.")


class Shelf:
    """The long values of one conversation, on the keeper's side."""

    def __init__(self) -> None:
        self._put: dict[int, bytearray] = {}
        self._kept: dict[int, bytes] = {}
        self._number = 0

    def put(self, piece: Put) -> None:
        """Take a piece of a parameter. Raises AppError `too-large`."""
        size = sum(map(len, self._put.values())) + len(piece.data)
        if size > MAX_VALUE:
            self._put.clear()
            raise too_long(size)
        self._put.setdefault(piece.id, bytearray()).extend(piece.data)

    def take(self, named: Parted) -> bytes:
        """Return a parameter that was put. Raises AppError `protocol` when it is not whole."""
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
