"""Entries of an upper dir as they arrive on the bulk port, decoded and checked.

One entry: `u16 n, path · u8 kind · u8 flags · u32 mode · u32 uid · u32 nlink · u64 inode ·
u64 size · u64 allocated · i64 mtime_ns · i64 ctime_ns · u16 n, redirect · u16 n, link target`,
little endian.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from vm.errors import GuestProtocol

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


@dataclass(frozen=True, slots=True)
class UpperEntry:
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


class EntryReader:
    """Collects the batches of one list under its caps. Raises GuestProtocol on any violation.

    Batches are kept as they came, a few dozen bytes an entry, and taken apart at the end: a list
    that is known by its digest need not be.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self.entries: list[UpperEntry] = []
        self._max_entries = max_entries
        # the guest may count a little differently than we do: one frame is granted
        self._room = max_bytes + MAX_FRAME
        self._folders = {b""}
        self._seen: set[bytes] = set()
        self._modes: dict[int, int] = {}
        self._batches: deque[bytes] = deque()
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

    def decode(self) -> None:
        """Take all batches apart, each gone when it is done; blocks, run it in a thread."""
        while self._batches:
            self._take_apart(self._batches.popleft())
        self._folders, self._seen, self._modes = {b""}, set(), {}

    def _take_apart(self, payload: bytes) -> None:
        position = 0
        while position < len(payload):
            entry, position = decode(payload, position, self._modes)
            self._add(entry)

    def _add(self, entry: UpperEntry) -> None:
        if len(self.entries) >= self._max_entries:
            raise GuestProtocol("The guest's list has more entries than it was allowed to have.")
        if entry.path in self._seen:
            raise GuestProtocol(f"The guest listed {_shown(entry.path)} twice.")
        if entry.path.rpartition(b"/")[0] not in self._folders:
            raise GuestProtocol(f"The guest listed {_shown(entry.path)} before its folder.")
        self._seen.add(entry.path)
        if entry.kind == "dir":
            self._folders.add(entry.path)
        self.entries.append(entry)


def decode(
    payload: bytes, position: int, modes: dict[int, int] | None = None
) -> tuple[UpperEntry, int]:
    """Decode the entry at `position` and return it with the position after it.

    Equal modes become one number in `modes`: a long list has few of them.
    """
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
        mode=mode if modes is None else modes.setdefault(mode, mode),
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
