"""The rows of a review's list, kept from one state of the files to the next.

A decision is about few files, and the list may hold thousands: the order, the tree and every row
whose file is as it was are used again. What a folder adds up to is read from running sums.
"""

from __future__ import annotations

import asyncio
import operator
from itertools import accumulate, islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from app.ui.review_facts import file_row, is_decided, progress_in, total_progress
from app.ui.review_tree import Entry, Shape, in_order, outline
from widgets.file_list import FileRow

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from app.protocol import Changes, FileChange
    from app.ui.review_facts import Progress

Value = TypeVar("Value")

DECISIONS = ("open", "accepted", "rejected", "mixed")


SLICE = 128
"""Files that are looked at in one turn of the event loop: a millisecond's work."""


async def in_slices(files: Sequence[FileChange]) -> AsyncIterator[Sequence[FileChange]]:
    """Yield files in parts, with a turn of the event loop after each."""
    for start in range(0, len(files), SLICE):
        yield files[start : start + SLICE]
        await asyncio.sleep(0)


async def gathered(values: Iterator[Value]) -> list[Value]:
    """Return all of them, some made in each turn of the event loop."""
    found: list[Value] = []
    while part := list(islice(values, SLICE)):
        found += part
        await asyncio.sleep(0)  # a turn for the keys and the screen
    return found


async def with_known(changes: Changes, known: Mapping[str, FileChange]) -> Changes:
    """Return the changes with the known value of every file that is as it was.

    What is drawn of a file is kept by that value, and two of the same content are two values.
    """
    files: list[FileChange] = []
    async for part in in_slices(changes.files):
        files += [_same(file, known.get(file.path)) for file in part]
    return msgspec.structs.replace(changes, files=tuple(files))


def _same(file: FileChange, known: FileChange | None) -> FileChange:
    return known if known is not None and known == file else file


class Tally(NamedTuple):
    """What one file adds to the row of its folder."""

    added: int
    removed: int
    risky: int
    total: int
    done: int
    open: int
    accepted: int
    rejected: int
    mixed: int


def tally_of(file: FileChange) -> Tally:
    """Count a file; what cannot be merged counts for its size and risk alone."""
    head = (file.added, file.removed, int(bool(file.risk)))
    if file.note:
        return Tally(*head, 0, 0, 0, 0, 0, 0)
    decisions = (int(file.decision == word) for word in DECISIONS)
    return Tally(*head, 1, int(is_decided(file)), *decisions)


class _Sums:
    """Running sums over ordered files: what any run of neighbours adds up to."""

    def __init__(self, tallies: Iterable[Tally]) -> None:
        columns = zip(*tallies, strict=True)
        self._sums = [list(accumulate(column, initial=0)) for column in columns]

    def row(self, entry: Entry) -> FileRow:
        """Return the row of a folder."""
        counts = Tally(*(column[entry.stop] - column[entry.start] for column in self._sums))
        found = [word for word, count in zip(DECISIONS, counts[5:], strict=True) if count]
        return FileRow(
            key=entry.key,
            path=entry.label,
            decision=found[0] if len(found) == 1 else "mixed" if found else "open",
            added=counts.added,
            removed=counts.removed,
            risky=counts.risky > 0,
            depth=entry.depth,
            folder=True,
            closed=entry.closed,
            done=counts.done,
            total=counts.total,
        )


class _Kept(NamedTuple):
    file: FileChange
    entry: Entry
    conflict: bool
    row: FileRow


class _Made(NamedTuple):
    files: Sequence[FileChange]
    shape: Shape
    rows: list[FileRow]


class KeptRows:
    """Orders the files of one review and makes their rows, none of them twice."""

    def __init__(self) -> None:
        self._files: list[FileChange] = []
        self._order = ""
        self._ordered: list[FileChange] = []
        self._shape: object = None
        self._entries: list[Entry] = []
        self._rows: dict[str, _Kept] = {}
        self._last = _Made([], Shape(), [])
        self._tallies: dict[str, tuple[FileChange, Tally]] = {}
        self._progress: dict[str, tuple[FileChange, Progress]] = {}

    async def get_ready(self, files: Sequence[FileChange], shape: Shape) -> None:
        """Make what the list will need, some files in each turn of the event loop."""
        if not files:
            return
        async for part in in_slices(files):
            for file in part:
                self._tally(file)
                self._progress_in(file)
        ordered = self.ordered(files, shape.order)
        await asyncio.sleep(0)  # a turn for the keys and the screen
        wanted = _shape_of(ordered, shape)
        if wanted != self._shape:
            self._shape, self._entries = wanted, await gathered(outline(ordered, shape))
        self._last = _Made(ordered, shape, await gathered(self._made(ordered, shape)))

    def ordered(self, files: Sequence[FileChange], order: str) -> list[FileChange]:
        """Return files as the list shows them."""
        if order == self._order and _stand_alike(files, self._files):
            now = {file.path: file for file in files}
            self._ordered = [now[file.path] for file in self._ordered]
        else:
            self._ordered = in_order(files, order)
        self._files, self._order = list(files), order
        return self._ordered

    def rows(self, files: Sequence[FileChange], shape: Shape) -> list[FileRow]:
        """Return the rows of ordered files."""
        last = self._last
        if last.shape == shape and _are(files, last.files):
            return last.rows
        if not files:
            return []
        wanted = _shape_of(files, shape)
        if wanted != self._shape:
            self._shape, self._entries = wanted, list(outline(files, shape))
        return list(self._made(files, shape))

    def _made(self, files: Sequence[FileChange], shape: Shape) -> Iterator[FileRow]:
        """Yield the rows of files whose places are known, those of unchanged files as they were."""
        entries, conflicts = self._entries, frozenset(shape.conflicts)
        sums = _Sums(map(self._tally, files))
        for entry in entries:
            if entry.folder:
                yield sums.row(entry)
            else:
                yield self._row(files[entry.start], entry, conflicts)

    def _row(self, file: FileChange, entry: Entry, conflicts: frozenset[str]) -> FileRow:
        conflict = file.path in conflicts
        kept = self._rows.get(file.path)
        if (
            kept is not None
            and kept.file is file
            and kept.entry is entry
            and kept.conflict == conflict
        ):
            return kept.row
        row = file_row(file, entry.label, entry.depth, conflict=conflict)
        self._rows[file.path] = _Kept(file, entry, conflict, row)
        return row

    def _tally(self, file: FileChange) -> Tally:
        known = self._tallies.get(file.path)
        if known is None or known[0] is not file:
            known = self._tallies[file.path] = (file, tally_of(file))
        return known[1]

    def progress(self, files: Iterable[FileChange]) -> Progress:
        """Return how far the review of some files is."""
        return total_progress(map(self._progress_in, files))

    def _progress_in(self, file: FileChange) -> Progress:
        known = self._progress.get(file.path)
        if known is None or known[0] is not file:
            known = self._progress[file.path] = (file, progress_in(file))
        return known[1]


def tree_rows(files: Sequence[FileChange], shape: Shape) -> list[FileRow]:
    """Return the rows of ordered files: everything, risky ones, folders with files, generated."""
    return KeptRows().rows(files, shape)


def _are(files: Sequence[FileChange], others: Sequence[FileChange]) -> bool:
    """Tell whether these are the very same values."""
    return len(files) == len(others) and all(map(operator.is_, files, others))


def _shape_of(files: Sequence[FileChange], shape: Shape) -> object:
    """Return all that the rows' places depend on."""
    return (shape.order, shape.closed, [(file.path, bool(file.risk)) for file in files])


def _stand_alike(files: Sequence[FileChange], before: Sequence[FileChange]) -> bool:
    """Tell whether nothing changed on which the order of files depends."""
    return len(files) == len(before) and all(
        one is other or _place(one) == _place(other)
        for one, other in zip(files, before, strict=True)
    )


def _place(file: FileChange) -> tuple[object, ...]:
    return (file.path, bool(file.risk), file.tier, file.added + file.removed)
