"""Lines of a file that went away here and came back there: found for the eye, not for decisions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from .lines import stem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .hunks import Hunk

LEAST_LINES: Final = 3
"""Shorter runs are found everywhere (`}`, blank lines) and say nothing."""

LEAST_SIGNS: Final = 20
"""Letters and digits that a run must have."""

MAX_TWINS: Final = 8
"""Places of one line that are tried; a line that stands more often begins no run."""


class Moved(NamedTuple):
    """A run of lines that moved; 0-based starts on either side."""

    old: int
    new: int
    lines: int


def moved_runs(hunks: Sequence[Hunk], old: Sequence[bytes], new: Sequence[bytes]) -> list[Moved]:
    """Return runs of inserted lines that equal deleted ones but for their indentation."""
    changes = [change for hunk in hunks for change in hunk.changes if change.kind != "ending"]
    gone = {c.old: _text(old[c.old]) for c in changes if c.old is not None}
    came = {c.new: _text(new[c.new]) for c in changes if c.new is not None}
    places: dict[bytes, list[int]] = defaultdict(list)
    for number, text in gone.items():
        places[text].append(number)
    return list(_runs(gone, came, places))


def _runs(
    gone: dict[int, bytes], came: dict[int, bytes], places: dict[bytes, list[int]]
) -> Iterator[Moved]:
    used: set[int] = set()
    at = -1
    for number, text in sorted(came.items()):
        starts = places.get(text, ())
        if number < at or not text or len(starts) > MAX_TWINS:
            continue
        runs = (Moved(s, number, _length(gone, came, s, number)) for s in starts if s not in used)
        best = max(runs, key=lambda run: run.lines, default=Moved(0, 0, 0))
        if best.lines >= LEAST_LINES and _signs(came, best) >= LEAST_SIGNS:
            used.update(range(best.old, best.old + best.lines))
            at = best.new + best.lines
            yield best


def _length(gone: dict[int, bytes], came: dict[int, bytes], old: int, new: int) -> int:
    count = 0
    while True:
        left, right = gone.get(old + count), came.get(new + count)
        if left is None or left != right:
            return count
        count += 1


def _signs(came: dict[int, bytes], run: Moved) -> int:
    lines = (came[run.new + n] for n in range(run.lines))
    return sum(sum(chr(byte).isalnum() for byte in line) for line in lines)


def _text(line: bytes) -> bytes:
    return stem(line).strip()
