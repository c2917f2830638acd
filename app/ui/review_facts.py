"""What the review screen says about changes: pure functions from the keeper's values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from snapshot.safe_text import safe_name
from widgets.file_list import FileRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.protocol import Changes, FileChange, HunkInfo

LETTERS = {
    "added": "A",
    "modified": "M",
    "deleted": "D",
    "renamed": "R",
    "mode": "X",
    "type": "T",
}


def file_row(change: FileChange, conflicts: Sequence[str] = ()) -> FileRow:
    """Return the list's row for a changed file; `conflicts` are paths that no merge can write."""
    return FileRow(
        key=change.path,
        path=safe_name(change.path).text,
        decision=change.decision,
        letter=LETTERS[change.kind],
        added=change.added,
        removed=change.removed,
        binary=change.binary,
        risky=bool(change.risk),
        drift=change.drift and not change.merged,
        note=bool(change.note),
        merged=change.merged,
        conflict=change.path in conflicts,
    )


FILE_ORDERS = ("risky first", "by path", "largest first")
"""How the list of files can be ordered."""


def in_order(files: Iterable[FileChange], order: str = FILE_ORDERS[0]) -> list[FileChange]:
    """Return files as the list shows them; files of one rank stay as they came."""
    if order == "by path":
        return sorted(files, key=lambda file: file.path)
    if order == "largest first":
        return sorted(files, key=lambda file: -(file.added + file.removed))
    return sorted(files, key=lambda file: not file.risk)


def units_of(change: FileChange) -> list[HunkInfo]:
    """Return what can be decided in a file: aspects, then hunks."""
    return [h for h in change.hunks if h.aspect] + [h for h in change.hunks if not h.aspect]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a review is."""

    files: int
    files_done: int
    units: int
    units_done: int
    risky: int
    drift: int
    merged: int


def progress_of(changes: Changes) -> Progress:
    """Count what is decided."""
    files = [file for file in changes.files if not file.note]
    units = [unit.decision for file in files for unit in units_of(file) or (file,)]
    done = [_decided(file) for file in files]
    return Progress(
        files=len(files),
        files_done=sum(done),
        units=len(units),
        units_done=sum(decision != "open" for decision in units),
        risky=sum(bool(file.risk) for file in files),
        drift=sum(file.drift and not file.merged for file in files),
        merged=sum(file.merged for file in files),
    )


def _decided(file: FileChange) -> bool:
    units = units_of(file)
    if not units:
        return file.decision != "open"
    return all(unit.decision != "open" for unit in units)


def open_units(
    files: Sequence[FileChange], taken: frozenset[tuple[str, str]] = frozenset()
) -> list[tuple[str, int]]:
    """Return path and index of every open unit in order; `taken` ones are being decided now."""
    return [
        (file.path, index)
        for file in files
        if not file.note
        for index, unit in enumerate(units_of(file))
        if unit.decision == "open" and (file.path, unit.id) not in taken
    ]


def next_open(
    files: Sequence[FileChange],
    path: str,
    unit: int,
    taken: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[str, int] | None:
    """Return the next open unit after one, going on at the top after the end; None: all decided."""
    places = open_units(files, taken)
    order = {file.path: position for position, file in enumerate(files)}
    here = (order.get(path, -1), unit)
    later = [place for place in places if (order[place[0]], place[1]) > here]
    found = later or places
    return found[0] if found else None


def safe_to_accept(changes: Changes) -> tuple[list[FileChange], list[FileChange]]:
    """Return files with something open that can be accepted unseen, and those held back."""
    open_files = [
        file
        for file in changes.files
        if not file.note and any(unit.decision == "open" for unit in units_of(file))
    ]
    return [f for f in open_files if f.tier != "held"], [f for f in open_files if f.tier == "held"]


def with_decisions(shown: Changes, newer: Changes) -> Changes:
    """Return the shown generation with the decisions of a newer one, where units are the same."""
    known = {(file.path, unit.id): unit.decision for file in newer.files for unit in units_of(file)}
    whole = {file.path: file for file in newer.files}
    files: list[FileChange] = []
    for file in shown.files:
        hunks = [_redecided(h, known.get((file.path, h.id), h.decision)) for h in file.hunks]
        now = whole.get(file.path, file)
        files.append(
            msgspec.structs.replace(
                file, hunks=tuple(hunks), decision=now.decision, merged=now.merged
            )
        )
    return msgspec.structs.replace(
        shown,
        files=tuple(files),
        last_merge=newer.last_merge,
        last_merge_files=newer.last_merge_files,
    )


def _redecided(unit: HunkInfo, decision: str) -> HunkInfo:
    return msgspec.structs.replace(unit, decision=decision)
