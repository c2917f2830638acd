"""The terminal record: what the agent's terminal printed, raw, in a ring on disk.

`terminal.rec` is a header of 32 bytes (magic, capacity, bytes ever written, and where among them
the agent's present run would have begun) and the ring itself, then the number of that run. So one
write of the header tells the guest's count of what is recorded: the next keeper goes on there.
`terminal.idx` lists offset, time and size at each change of size. The data is written before the
header that counts it, so a kill at any moment leaves a record that ends a little earlier.
`terminal.mod` holds places where a replay can begin, with what was switched on there; see
`terminal_modes`. `terminal.tim` says when what was printed; see `terminal_times`.
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
from app.keeper.terminal_modes import STEP, ModeTracker, Place
from app.keeper.terminal_times import TimeMarks
from app.processes import lock_held

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

CAPACITY: Final = 8 << 20
"""Bytes of output kept."""

NAME: Final = "terminal.rec"
INDEX: Final = "terminal.idx"
PLACES: Final = "terminal.mod"

_MAGIC = b"CLOCHETR"
_HEADER = struct.Struct("<8sQQq")
_RUN = struct.Struct("<Q")
_SIZE = struct.Struct("<QdHH")
MAX_SIZES = 4096
"""Changes of size kept; older ones are dropped with the bytes they belong to."""

_PLACE = struct.Struct("<QH")
_ALIGN = 4096
"""How far to look for a line's start when nothing else is known of the record's beginning."""

MAX_PLACES_BYTES: Final = 64 << 10
"""Bytes of places that are read back; a tenth of it is what there ever is."""

SLACK: Final = 256 << 10
"""Bytes before the ring's oldest that a keeper may be overwriting: more than it ever appends."""

PLACES_STEP: Final = 1 << 20
"""Bytes of output between two places that are written down; without them a keeper that starts anew
would not know what was switched on before the oldest byte that it still has."""


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
        self._folder = folder
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(folder / NAME, flags, 0o600)
        self._end, self._run_began = self._read_header()
        self._run = self._read_run()
        self._sizes = read_sizes(folder, self._end) or [SizeAt(0, time.time(), columns, rows)]
        self._modes = self._read_modes()
        self._times = TimeMarks(folder, self._end)

    def _read_header(self) -> tuple[int, int]:
        raw = os.pread(self._file, _HEADER.size, 0)
        if len(raw) == _HEADER.size:
            magic, capacity, end, run_began = _HEADER.unpack(raw)
            if magic == _MAGIC and capacity == self._capacity:
                return int(end), int(run_began)
        os.ftruncate(self._file, 0)
        # taken now, so that a disk that fills up later never stops the agent's terminal
        os.posix_fallocate(self._file, 0, _HEADER.size + self._capacity + _RUN.size)
        return 0, 0

    def _write_header(self) -> None:
        packed = _HEADER.pack(_MAGIC, self._capacity, self._end, self._run_began)
        os.pwrite(self._file, packed, 0)

    def _read_run(self) -> int:
        raw = os.pread(self._file, _RUN.size, _HEADER.size + self._capacity)
        return int(_RUN.unpack(raw)[0]) if len(raw) == _RUN.size else 0

    @property
    def run(self) -> int:
        """Which run of the agent the newest output is of; 0 when none was begun."""
        return self._run

    @property
    def count(self) -> int:
        """How many bytes of that run's output are recorded, or known to be lost."""
        return self._end - self._run_began

    def begin_run(self, run: int, count: int = 0) -> None:
        """Say that what follows is byte `count` and on of another run."""
        self._run = run
        os.pwrite(self._file, _RUN.pack(run), _HEADER.size + self._capacity)
        self.go_to(count)

    def go_to(self, count: int) -> None:
        """Say that what follows is byte `count` and on of the present run."""
        self._run_began = self._end - count
        self._write_header()

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

    @property
    def asks(self) -> int:
        """How often the program rang the bell or sent a notification, since this was opened."""
        return self._modes.asks

    @property
    def marks_pastes(self) -> bool:
        """Whether the program asked for pastes to be marked (bracketed paste, DECSET 2004)."""
        return self._modes.switches.modes.get(2004, False)

    def clear_up(self) -> None:
        """Undo what an earlier program left switched on, before the next one writes."""
        if self._end:
            self.append(self._modes.switches.undo(), printed=False)

    def append(self, data: bytes, *, printed: bool = True) -> None:
        """Record output; with `printed` false it is ours, and no part of the run's count."""
        data = data[-self._capacity :] if len(data) > self._capacity else data
        at = self._end % self._capacity
        head = data[: self._capacity - at]
        os.pwrite(self._file, head, _HEADER.size + at)
        if len(head) < len(data):
            os.pwrite(self._file, data[len(head) :], _HEADER.size)
        self._end += len(data)
        self._run_began += 0 if printed else len(data)
        self._write_header()
        self._times.note(self._end - len(data), time.time())
        self._modes.feed(data)
        self._modes.forget(self.start)
        if self._end // PLACES_STEP > (self._end - len(data)) // PLACES_STEP:
            self._write_places()

    def resize(self, columns: int, rows: int) -> None:
        """Record a change of size; of several between two bytes of output only the last counts.

        A replay goes straight to that one, so an export that went through all would show another
        screen (the cursor is clamped by each), and a dragged edge would fill the index.
        """
        if (columns, rows) == self.size:
            return
        if self._sizes[-1].offset == self._end:
            del self._sizes[-1]
        self._sizes.append(SizeAt(self._end, time.time(), columns, rows))
        del self._sizes[:-MAX_SIZES]
        packed = [_SIZE.pack(s.offset, s.when, s.columns, s.rows) for s in self._sizes]
        self._write_beside(self._folder / INDEX, b"".join(packed))

    def read(self, offset: int, limit: int) -> bytes:
        """Return up to `limit` bytes from `offset` on (which must not be older than `start`)."""
        limit = min(limit, self._end - offset)
        at = offset % self._capacity
        head = os.pread(self._file, min(limit, self._capacity - at), _HEADER.size + at)
        return head

    def replay(self) -> Place:
        """Return where a replay begins, and the bytes that switch the terminal to that moment."""
        place = self._modes.places[0]
        # one sequence may be longer than the whole ring: then only what follows can be shown
        return place if place.offset >= self.start else self._modes.now

    def _read_modes(self) -> ModeTracker:
        """Find out what is switched on, from the oldest place that the ring still holds."""
        known = read_places(self._folder, self.start, self._end)
        oldest = Place(0, b"")
        if self.start:
            # of what came before nothing is known; a line's start is the best guess
            newline = self.read(self.start, _ALIGN).find(b"\n")
            oldest = known[0] if known else Place(self.start + newline + 1, b"")
        tracker = ModeTracker(oldest, max(1, min(STEP, self._capacity // 16)))
        at = oldest.offset
        while data := self.read(at, 1 << 16):
            tracker.feed(data)
            at += len(data)
        return tracker

    def _write_places(self) -> None:
        kept: list[Place] = []
        for place in self._modes.places:
            if not kept or place.offset >= kept[-1].offset + PLACES_STEP // 2:
                kept.append(place)
        packed = [_PLACE.pack(offset, len(prelude)) + prelude for offset, prelude in kept]
        self._write_beside(self._folder / PLACES, b"".join(packed))

    def _write_beside(self, path: Path, data: bytes) -> None:
        try:
            write_atomic(path, data)
        except OSError as error:
            if not is_full(error):
                raise
            log.warning("%s could not be written: %s", path.name, error)

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
        self._times.close()


def read_sizes(folder: Path, end: int) -> list[SizeAt]:
    """Return the changes of size up to byte `end`, oldest first; none when there were none."""
    try:
        raw = (folder / INDEX).read_bytes()[: MAX_SIZES * _SIZE.size * 2]
    except FileNotFoundError:
        return []
    whole = len(raw) - len(raw) % _SIZE.size
    found = [SizeAt(*fields) for fields in _SIZE.iter_unpack(raw[:whole])]
    return [size for size in found if size.offset <= end][-MAX_SIZES:]


def read_places(folder: Path, start: int, end: int) -> list[Place]:
    """Return the places written down between two bytes at which a replay can begin."""
    try:
        raw = (folder / PLACES).read_bytes()[:MAX_PLACES_BYTES]
    except FileNotFoundError:
        return []
    found: list[Place] = []
    at = 0
    while at + _PLACE.size <= len(raw):
        offset, length = _PLACE.unpack_from(raw, at)
        at += _PLACE.size
        found.append(Place(offset, raw[at : at + length]))
        at += length
    return [place for place in found if start <= place.offset <= end]


def read_ring(folder: Path) -> tuple[int, bytes]:
    """Return the offset and the bytes of a session's record, without writing anything.

    While its keeper writes on, the oldest bytes may be overwritten as they are read: those are left
    out. Nothing is found where there is no whole record.
    """
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return 0, b""
    try:
        capacity, end = _header(descriptor)
        ring = os.pread(descriptor, capacity, _HEADER.size)
        _, later = _header(descriptor)
    finally:
        os.close(descriptor)
    start = max(0, end - capacity)
    if start or later > capacity:
        slack = min(SLACK, capacity) if lock_held(folder / "keeper.lock") else 0
        start = min(end, max(start, later + slack - capacity))
    at = end % capacity if capacity else 0
    whole = ring[at:] + ring[:at] if end > capacity else ring[:end]
    return start, whole[len(whole) - (end - start) :]


def _header(descriptor: int) -> tuple[int, int]:
    """Return a record's capacity and how many bytes it ever took; 0 and 0 for what is none."""
    raw = os.pread(descriptor, _HEADER.size, 0)
    if len(raw) < _HEADER.size:
        return 0, 0
    magic, capacity, end, _ = _HEADER.unpack(raw)
    return (capacity, end) if magic == _MAGIC and 0 < capacity <= CAPACITY else (0, 0)


def read_tail(folder: Path, limit: int) -> bytes:
    """Return the last bytes of a session's record without writing anything; empty without one."""
    return read_ring(folder)[1][-limit:]
