"""When the terminal's output came: marks in `terminal.tim`, for whoever plays the record again.

A mark of 16 bytes is the offset of a byte of the record and the time at which it was printed. What
follows within `STEP_S` gets no mark of its own. The file is a ring of marks without a header: its
newest mark is the one of the highest offset.
"""

from __future__ import annotations

import math
import os
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from app.errors import is_full

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "terminal.tim"

STEP_S: Final = 0.5
"""Seconds between two marks."""

MAX_MARKS: Final = 1 << 15
"""Marks kept (512 KiB): more than four hours of output that never rests."""

_MARK = struct.Struct("<Qd")


class Mark(NamedTuple):
    """Byte `offset` of the record was printed at `when` (unix seconds)."""

    offset: int
    when: float


class TimeMarks:
    """The marks of one session, written by its keeper alone."""

    def __init__(self, folder: Path, end: int) -> None:
        """Go on with the marks of a record that has `end` bytes by now; marks beyond it go."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(folder / NAME, flags, 0o600)
        raw = os.pread(self._file, MAX_MARKS * _MARK.size, 0)
        marks = list(_marks(raw))
        if any(mark.offset > end for mark in marks):  # of a record that was begun anew
            os.ftruncate(self._file, 0)
            marks = []
        newest = max(range(len(marks)), key=marks.__getitem__, default=-1)
        self._next = newest + 1
        self._last = -math.inf

    def note(self, offset: int, now: float) -> None:
        """Tell that byte `offset` is printed now; a full disk costs only the mark."""
        if 0 <= now - self._last < STEP_S:
            return
        self._last = now
        at = self._next % MAX_MARKS * _MARK.size
        try:
            os.pwrite(self._file, _MARK.pack(offset, now), at)
        except OSError as error:
            if not is_full(error):
                raise
            return
        self._next += 1

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_marks(folder: Path) -> list[Mark]:
    """Return a session's marks by offset without writing anything; none without the file."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return []
    try:
        return sorted(_marks(os.pread(descriptor, MAX_MARKS * _MARK.size, 0)))
    finally:
        os.close(descriptor)


def _marks(raw: bytes) -> list[Mark]:
    whole = len(raw) - len(raw) % _MARK.size
    marks = [Mark(*fields) for fields in _MARK.iter_unpack(raw[:whole])]
    return [mark for mark in marks if math.isfinite(mark.when)]
