"""Entries of an upper dir as they arrive on the bulk port, decoded and checked.

One entry: `u16 n, path · u8 kind · u8 flags · u32 mode · u32 uid · u32 nlink · u64 inode ·
u64 size · u64 allocated · i64 mtime_ns · i64 ctime_ns · u16 n, redirect · u16 n, link target`,
little endian.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Literal

import msgspec

from vm.errors import GuestProtocol

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_FRAME = 1 << 20
"""Longest frame in bytes, type and payload together."""

UpperKind = Literal["file", "dir", "link", "whiteout", "special"]
KINDS: dict[int, UpperKind] = {
    ord("f"): "file",
    ord("d"): "dir",
    ord("l"): "link",
    ord("w"): "whiteout",
    ord("s"): "special",
}

OPAQUE = 1
REDIRECT = 2

MAX_SIZE = (1 << 63) - 1
"""Linux counts file sizes in a signed 64-bit number."""

_FIXED = struct.Struct("<BBIIIQQQqq")
_COUNT = struct.Struct("<H")


class UpperEntry(msgspec.Struct, frozen=True, gc=False):
    """One entry of an upper dir, as the guest's PID 1 saw it. Every field is the guest's word.

    `path` is relative, without empty, `.` or `..` parts and without NUL. `size` and `allocated` are
    bytes, times are nanoseconds since 1970, `mode` is the whole `st_mode`.
    """

    path: bytes
    kind: UpperKind
    opaque: bool
    redirect: bytes
    mode: int
    uid: int
    nlink: int
    inode: int
    size: int
    allocated: int
    mtime_ns: int
    ctime_ns: int
    target: bytes


class Entries:
    """The entries of one list, kept as they arrived and made each time that they are walked over.

    A list may have hundreds of thousands, and made they take four times the memory.
    """

    def __init__(self, batches: tuple[bytes, ...] = (), count: int = 0) -> None:
        """Take the payloads of whole, checked batches, and how many entries they hold."""
        self._batches, self._count = batches, count

    def __len__(self) -> int:
        """Return how many entries there are."""
        return self._count

    def __iter__(self) -> Iterator[UpperEntry]:
        """Yield the entries in their order."""
        for payload in self._batches:
            yield from _entries(payload)

    def clear(self) -> None:
        """Let go of them."""
        self._batches, self._count = (), 0


class EntryReader:
    """Collects the batches of one list under its caps. Raises GuestProtocol on any violation.

    Batches are kept as they came, a few dozen bytes an entry, and taken apart at the end: a list
    that is known by its digest need not be.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._max_entries = max_entries
        # the guest may count a little differently than we do: one frame is granted
        self._room = max_bytes + MAX_FRAME
        self._batches: list[bytes] = []
        self._hash = blake2b(digest_size=32)

    @property
    def digest(self) -> bytes:
        """The digest of all batches so far, whatever their borders."""
        return self._hash.digest()

    def keep(self, payload: bytes) -> None:
        """Take one `e` frame's payload."""
        self._room -= len(payload)
        if self._room < 0:
            raise GuestProtocol("The guest's list is longer than it was allowed to be.")
        self._hash.update(payload)
        self._batches.append(payload)

    def decode(self) -> Entries:
        """Check every entry; blocks, run it in a thread."""
        folders, seen = {b""}, set[bytes]()
        for entry in chain.from_iterable(map(_entries, self._batches)):
            if len(seen) >= self._max_entries:
                raise GuestProtocol("The guest's list has more entries than it may have.")
            if entry.path in seen:
                raise GuestProtocol(f"The guest listed {_shown(entry.path)} twice.")
            if entry.path.rpartition(b"/")[0] not in folders:
                raise GuestProtocol(f"The guest listed {_shown(entry.path)} before its folder.")
            seen.add(entry.path)
            if entry.kind == "dir":
                folders.add(entry.path)
        return Entries(tuple(self._batches), len(seen))


def _entries(payload: bytes) -> Iterator[UpperEntry]:
    position = 0
    while position < len(payload):
        entry, position = decode(payload, position)
        yield entry


def decode(payload: bytes, position: int) -> tuple[UpperEntry, int]:
    """Decode the entry at `position` and return it with the position after it."""
    path, position = _text(payload, position)
    if position + _FIXED.size > len(payload):
        raise GuestProtocol("The guest's list breaks off inside an entry.")
    kind, flags, mode, uid, nlink, inode, size, allocated, mtime_ns, ctime_ns = _FIXED.unpack_from(
        payload, position
    )
    redirect, position = _text(payload, position + _FIXED.size)
    target, position = _text(payload, position)
    _check(path, kind, flags, size, allocated)
    if bool(flags & REDIRECT) != bool(redirect) or b"\0" in redirect + target:
        raise GuestProtocol(f"The guest's entry {_shown(path)} contradicts itself.")
    entry = UpperEntry(
        path=path,
        kind=KINDS[kind],
        opaque=bool(flags & OPAQUE),
        redirect=redirect,
        mode=mode,
        uid=uid,
        nlink=nlink,
        inode=inode,
        size=size,
        allocated=allocated,
        mtime_ns=mtime_ns,
        ctime_ns=ctime_ns,
        target=target,
    )
    return entry, position


def _text(payload: bytes, position: int) -> tuple[bytes, int]:
    start = position + _COUNT.size
    if start > len(payload):
        raise GuestProtocol("The guest's list breaks off inside an entry.")
    (length,) = _COUNT.unpack_from(payload, position)
    if start + length > len(payload):
        raise GuestProtocol("The guest's list breaks off inside an entry.")
    return payload[start : start + length], start + length


def _shown(path: bytes) -> str:
    """Give a guest's path for a message: its beginning, escaped."""
    return repr(path[:200])


def _check(path: bytes, kind: int, flags: int, size: int, allocated: int) -> None:
    if b"\0" in path or any(part in (b"", b".", b"..") for part in path.split(b"/")):
        raise GuestProtocol(f"The guest listed the impossible path {_shown(path)}.")
    if kind not in KINDS or flags & ~(OPAQUE | REDIRECT):
        raise GuestProtocol(f"The guest listed {_shown(path)} with an unknown kind or flag.")
    if size > MAX_SIZE or allocated > MAX_SIZE:
        raise GuestProtocol(f"The guest listed {_shown(path)} with an impossible size.")
