"""The terminal record: what the agent's terminal printed, raw, in a ring on disk.

`terminal.rec` is a header of 32 bytes (magic, capacity, bytes ever written) and the ring itself;
`terminal.idx` lists offset, time and size at each change of size. The data is written before the
header that counts it, so a kill at any moment leaves a record that ends a little earlier.
"""

from __future__ import annotations

import logging
import os
import struct
import time
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.errors import is_full
from app.files import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

CAPACITY: Final = 8 << 20
"""Bytes of output kept."""

_MAGIC = b"CLOCHETR"
_HEADER = struct.Struct("<8sQQQ")
_SIZE = struct.Struct("<QdHH")
MAX_SIZES = 4096
"""Changes of size kept; older ones are dropped with the bytes they belong to."""

_ALIGN = 4096
"""How far to look for a line's start when the ring has dropped the record's beginning."""


@dataclass(frozen=True, slots=True)
class SizeAt:
    """From byte `offset` of the record on, the terminal had this size."""

    offset: int
    when: float
    columns: int
    rows: int


class TerminalRecord:
    """One session's record, written by its keeper alone."""

    def __init__(self, folder: Path, columns: int, rows: int, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._index = folder / "terminal.idx"
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(folder / "terminal.rec", flags, 0o600)
        self._end = self._read_header()
        self._sizes = self._read_sizes() or [SizeAt(0, time.time(), columns, rows)]

    def _read_header(self) -> int:
        raw = os.pread(self._file, _HEADER.size, 0)
        if len(raw) == _HEADER.size:
            magic, capacity, end, _ = _HEADER.unpack(raw)
            if magic == _MAGIC and capacity == self._capacity:
                return int(end)
        os.ftruncate(self._file, 0)
        # taken now, so that a disk that fills up later never stops the agent's terminal
        os.posix_fallocate(self._file, 0, _HEADER.size + self._capacity)
        return 0

    def _read_sizes(self) -> list[SizeAt]:
        try:
            raw = self._index.read_bytes()[: MAX_SIZES * _SIZE.size * 2]
        except FileNotFoundError:
            return []
        whole = len(raw) - len(raw) % _SIZE.size
        found = [SizeAt(*fields) for fields in _SIZE.iter_unpack(raw[:whole])]
        return [size for size in found if size.offset <= self._end][-MAX_SIZES:]

    @property
    def end(self) -> int:
        """How many bytes were ever recorded; the offset of the next one."""
        return self._end

    @property
    def start(self) -> int:
        """The offset of the oldest byte that is still there."""
        return max(0, self._end - self._capacity)

    @property
    def size(self) -> tuple[int, int]:
        """The present size: columns, rows."""
        return self._sizes[-1].columns, self._sizes[-1].rows

    def append(self, data: bytes) -> None:
        """Record output."""
        data = data[-self._capacity :] if len(data) > self._capacity else data
        at = self._end % self._capacity
        head = data[: self._capacity - at]
        os.pwrite(self._file, head, _HEADER.size + at)
        if len(head) < len(data):
            os.pwrite(self._file, data[len(head) :], _HEADER.size)
        self._end += len(data)
        os.pwrite(self._file, _HEADER.pack(_MAGIC, self._capacity, self._end, 0), 0)

    def resize(self, columns: int, rows: int) -> None:
        """Record a change of size."""
        if (columns, rows) == self.size:
            return
        self._sizes.append(SizeAt(self._end, time.time(), columns, rows))
        del self._sizes[:-MAX_SIZES]
        packed = [_SIZE.pack(s.offset, s.when, s.columns, s.rows) for s in self._sizes]
        try:
            write_atomic(self._index, b"".join(packed))
        except OSError as error:
            if not is_full(error):
                raise
            log.warning("a change of the terminal's size could not be written: %s", error)

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` bytes from `offset` on (which must not be older than `start`)."""
        limit = min(limit, self._end - offset)
        at = offset % self._capacity
        head = os.pread(self._file, min(limit, self._capacity - at), _HEADER.size + at)
        return head

    def replay_start(self) -> int:
        """Return where a replay begins: the record's beginning, else the first whole line."""
        start = self.start
        if start == 0:
            return 0
        newline = self.read(start, _ALIGN).find(b"\n")
        return start + newline + 1

    def size_at(self, offset: int) -> tuple[int, int]:
        """Return the terminal's size when byte `offset` was printed."""
        place = bisect_right(self._sizes, offset, key=lambda size: size.offset)
        size = self._sizes[max(0, place - 1)]
        return size.columns, size.rows

    def next_resize(self, offset: int) -> int:
        """Return the offset of the first change of size after `offset`, else the record's end."""
        place = bisect_right(self._sizes, offset, key=lambda size: size.offset)
        return self._sizes[place].offset if place < len(self._sizes) else self._end

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_tail(folder: Path, limit: int) -> bytes:
    """Return the last bytes of a session's record without writing anything; empty without one."""
    try:
        descriptor = os.open(folder / "terminal.rec", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return b""
        magic, capacity, end, _ = _HEADER.unpack(header)
        if magic != _MAGIC or not 0 < capacity <= CAPACITY:
            return b""
        ring = file.read(capacity)
    at = end % capacity
    whole = ring[at:] + ring[:at] if end > capacity else ring[:end]
    return whole[-limit:]
