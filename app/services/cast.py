"""A session's terminal record as asciicast v2, the format of asciinema's player and its like.

The record is read from disk alone, so that it does not matter whether anything runs. It is one ring
of 8 MiB in memory; the export itself is made line by line.
"""

from __future__ import annotations

import codecs
import json
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

from app.errors import AppError
from app.keeper.terminal_modes import Place
from app.keeper.terminal_record import SizeAt, read_places, read_ring, read_sizes
from app.keeper.terminal_times import STEP_S, Mark, read_marks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.records import SessionRecord

PIECE: Final = 1024
"""Bytes of output in one event at most."""

LOOK: Final = 4096
"""How far to look for a line's start when nothing else is known of the record's beginning."""

ENV: Final = {"TERM": "xterm-256color"}
"""What the guest's terminal is; nothing of the user's own environment is told."""


class Cast:
    """One session's record, ready to be played again."""

    def __init__(self, folder: Path, record: SessionRecord) -> None:
        """Read what there is. Raises AppError `not-found` where nothing was ever printed."""
        start, self._data = read_ring(folder)
        if not self._data:
            raise AppError(
                "not-found",
                f"The terminal of {record.id} has printed nothing yet.",
                f"Look what else is known: cloche logs {record.id}",
            )
        self._offset, self._end = start, start + len(self._data)
        first = SizeAt(0, record.created, record.columns, record.rows)
        self._sizes = read_sizes(folder, self._end) or [first]
        self._begin = self._beginning(folder)
        self._clock = _Clock([*read_marks(folder), *(Mark(s.offset, s.when) for s in self._sizes)])
        self._title = record.name

    def _beginning(self, folder: Path) -> Place:
        """Return where to begin, and what to send first (see `terminal_modes`)."""
        if not self._offset:
            return Place(0, b"")
        known = read_places(folder, self._offset, self._end)
        newline = self._data.find(b"\n", 0, LOOK)
        return min(known, default=Place(self._offset + newline + 1, b""))

    def lines(self) -> Iterator[bytes]:
        """Yield the header and every event, each a line of ASCII."""
        began = self._clock.at(self._begin.offset)
        yield _line(self._header(began))
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        when = 0.0
        for offset, data in self._pieces():
            printed = data.when if isinstance(data, SizeAt) else self._clock.at(offset)
            when = max(when, round(printed - began, 6))
            if isinstance(data, SizeAt):
                yield _line([when, "r", f"{data.columns}x{data.rows}"])
            elif text := decoder.decode(data):
                # a character whose end was never printed is left out: no terminal shows it
                yield _line([when, "o", text])

    def _header(self, began: float) -> dict[str, Any]:
        place = bisect_right(self._sizes, self._begin.offset, key=lambda size: size.offset)
        size = self._sizes[max(0, place - 1)]
        return {
            "version": 2,
            "width": size.columns,
            "height": size.rows,
            "timestamp": int(began),
            "title": self._title,
            "env": ENV,
        }

    def _pieces(self) -> Iterator[tuple[int, bytes | SizeAt]]:
        """Yield output and changes of size in order, each with the byte that it belongs to."""
        at, prelude = self._begin
        if prelude:
            yield at, prelude
        for size in [size for size in self._sizes if size.offset > at]:
            yield from self._output(at, size.offset)
            yield size.offset, size
            at = size.offset
        yield from self._output(at, self._end)

    def _output(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield the output between two bytes, cut where a time is known of."""
        while begin < end:
            stop = min(end, begin + PIECE, self._clock.next_mark(begin))
            yield begin, self._data[begin - self._offset : stop - self._offset]
            begin = stop


class _Clock:
    """Tells when a byte was printed: exact at a mark, spread over half a second after one."""

    def __init__(self, marks: list[Mark]) -> None:
        self._marks = sorted(marks)
        latest = self._marks[0].when
        for index, mark in enumerate(self._marks):  # a host's clock may have been set back
            latest = max(latest, mark.when)
            self._marks[index] = Mark(mark.offset, latest)

    def at(self, offset: int) -> float:
        """Return when byte `offset` was printed, in unix seconds."""
        after = bisect_right(self._marks, offset, key=lambda mark: mark.offset)
        before = self._marks[max(0, after - 1)]
        if offset <= before.offset or after == len(self._marks):
            return before.when
        following = self._marks[after]
        share = (offset - before.offset) / (following.offset - before.offset)
        return before.when + share * min(STEP_S, following.when - before.when)

    def next_mark(self, offset: int) -> int:
        """Return the offset of the first mark after a byte; beyond the last one a huge number."""
        after = bisect_right(self._marks, offset, key=lambda mark: mark.offset)
        return self._marks[after].offset if after < len(self._marks) else 1 << 63


def _line(value: object) -> bytes:
    # JSON leaves one control character as it is
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f").encode() + b"\n"
