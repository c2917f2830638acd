"""The stream of a copy between host and guest: its records, read with the guest taken for hostile.

A client opens the SSH subsystem `cloche.copy` and sends `u16 length | CopyRequest as JSON`. Then
records follow, from the guest or to it: `u8 kind | u32 mode | u64 size | u16 n | path`, little
endian. `d` is a folder, `f` a file whose chunks follow (`u32 n | bytes`, an empty one ends it),
`l` a link and `s` a special file (told, never copied), `x` an error (`mode` is its number), `z` the
end. The guest's half is `vm/guest/copy.c`. A copy into the guest is answered by one `z` or `x`.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from vm.errors import GuestProtocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

COPY_SUBSYSTEM: Final = "cloche.copy"
REQUEST_LENGTH: Final = struct.Struct("<H")
CHUNK: Final = 64 << 10
"""Most bytes of one chunk."""

BROKEN: Final = 0xFFFFFFFF
"""Stands for a chunk's length where the file could not be read on."""

MAX_PATH: Final = 4095
KINDS: Final = b"dflsxz"
ACCESS: Final = 0o777
"""What is kept of a mode: no setuid, no setgid, no sticky bit."""

_HEAD: Final = struct.Struct("<BIQH")
_LENGTH: Final = struct.Struct("<I")


class CopyRequest(msgspec.Struct, frozen=True):
    """What to copy in the guest (its path as `app.wire_text` has it), as whom, and which way."""

    path: str
    root: bool = False
    into: bool = False


class CopyFault(msgspec.Struct, frozen=True):
    """What a client is told on stderr when a copy cannot go on."""

    code: str
    message: str
    hint: str = ""


class Reader(Protocol):
    """The reading half of a byte stream."""

    async def readexactly(self, n: int) -> bytes:
        """Return exactly `n` bytes; IncompleteReadError when the stream ends before."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `mode` has only access bits, or the error's number for `x`.

    The path is relative and names nothing outside; that of `x` may be any text.
    """

    kind: str
    mode: int
    size: int
    path: bytes


async def read_record(reader: Reader) -> Record:
    """Read and check a record. Raises GuestProtocol, IncompleteReadError."""
    kind, mode, size, length = _HEAD.unpack(await reader.readexactly(_HEAD.size))
    if kind not in KINDS or length > MAX_PATH:
        raise GuestProtocol("The guest sent something that is no part of a copy.")
    path = await reader.readexactly(length)
    # an error may be about the place that was asked for, and its path is only shown
    parts = path.split(b"/") if path and chr(kind) != "x" else []
    if b"\0" in path or any(part in (b"", b".", b"..") for part in parts):
        raise GuestProtocol(f"The guest sent the impossible path {path[:200]!r}.")
    return Record(chr(kind), mode if chr(kind) == "x" else mode & ACCESS, size, path)


async def read_chunks(reader: Reader) -> AsyncIterator[bytes]:
    """Yield a file's chunks. Raises OSError (EIO) for one that could not be read on."""
    while length := _LENGTH.unpack(await reader.readexactly(_LENGTH.size))[0]:
        if length == BROKEN:
            raise BrokenFile
        if length > CHUNK:
            raise GuestProtocol(f"The guest announced a chunk of {length} bytes.")
        yield await reader.readexactly(length)


class BrokenFile(Exception):
    """The sender could not read a file to its end."""


def pack_record(kind: str, mode: int, size: int, path: bytes) -> bytes:
    """Return a record's bytes. Raises ValueError for a path that is too long."""
    if len(path) > MAX_PATH:
        raise ValueError("the path is too long")
    return _HEAD.pack(ord(kind), mode & ACCESS, size, len(path)) + path


def pack_length(length: int) -> bytes:
    """Return what stands before a chunk; 0 ends a file."""
    return _LENGTH.pack(length)


def error_text(record: Record) -> str:
    """Return the sentence part for an `x` record."""
    return os.strerror(record.mode) if 0 < record.mode < 4096 else "unknown error"
