"""What the review screen says about changes: pure functions from the keeper's values."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from app.services.documents import key_of
from app.wording import plural
from widgets.file_list import FileRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from app.protocol import Changes, FileChange, HunkInfo
    from app.protocol_review import StepReport

LETTERS = {
    "added": "A",
    "modified": "M",
    "deleted": "D",
    "renamed": "R",
    "mode": "X",
    "type": "T",
}


def file_row(change: FileChange, label: str, depth: int, *, conflict: bool) -> FileRow:
    """Return the list's row for a changed file; no merge can write what is in `conflict`."""
    return FileRow(
        key=change.path,
        path=label,
        decision=change.decision,
        letter=LETTERS[change.kind],
        added=change.added,
        removed=change.removed,
        binary=change.binary,
        risky=bool(change.risk),
        drift=change.drift and not change.merged,
        note=bool(change.note),
        merged=change.merged,
        conflict=conflict,
        viewed=change.viewed,
        depth=depth,
    )


def units_of(change: FileChange) -> list[HunkInfo]:
    """Return what can be decided in a file: aspects, then hunks."""
    return [h for h in change.hunks if h.aspect] + [h for h in change.hunks if not h.aspect]


class Units:
    """What can be decided in one state of a file, and where each of it stands by its id."""

    def __init__(self, change: FileChange | None) -> None:
        self.change = change
        self.all = [] if change is None else units_of(change)
        self.places = {unit.id: index for index, unit in enumerate(self.all)}


def is_open(unit: HunkInfo) -> bool:
    """Tell whether something of a unit still waits for a decision, if only one line of it."""
    return "o" in unit.marks if unit.marks else unit.decision == "open"


def open_lines(unit: HunkInfo) -> tuple[int, ...]:
    """Return the lines of a partly decided unit that are open; empty where it is open wholly."""
    lines = tuple(index for index, letter in enumerate(unit.marks) if letter == "o")
    return lines if len(lines) < len(unit.marks) else ()


class Progress(NamedTuple):
    """How far a review is."""

    files: int
    files_done: int
    units: int
    units_done: int
    risky: int
    drift: int
    merged: int


NOTHING = Progress(0, 0, 0, 0, 0, 0, 0)


def progress_in(file: FileChange) -> Progress:
    """Count what is decided in one file; what cannot be merged does not count."""
    if file.note:
        return NOTHING
    done = is_decided(file)
    units_done = sum(not is_open(unit) for unit in file.hunks) if file.hunks else int(done)
    return Progress(
        files=1,
        files_done=int(done),
        units=len(file.hunks) or 1,
        units_done=units_done,
        risky=int(bool(file.risk)),
        drift=int(file.drift and not file.merged),
        merged=int(file.merged),
    )


def total_progress(parts: Iterable[Progress]) -> Progress:
    """Add up how far files are."""
    return Progress(*map(sum, zip(NOTHING, *parts, strict=True)))


def is_decided(file: FileChange) -> bool:
    """Tell whether nothing of a file waits for a decision."""
    if not file.hunks:
        return file.decision != "open"
    return not any(is_open(unit) for unit in file.hunks)


def next_open(
    files: Sequence[FileChange],
    path: str,
    unit: int,
    taken: frozenset[tuple[str, str]] = frozenset(),
    direction: int = 1,
) -> tuple[str, int] | None:
    """Return path and index of the open unit after one (before it with -1), round the ends.

    None: all is decided; `taken` units are being decided now. It looks no further than it has to,
    for there may be thousands of files.
    """
    at = next((number for number, file in enumerate(files) if file.path == path), -1)
    here = files[at : at + 1] if at >= 0 else ()
    before, after = files[: max(at, 0)], files[at + 1 :]
    ways = (after, before) if direction > 0 else (before[::-1], after[::-1])
    for file in here:
        for index in _open_in(file, taken, direction):
            if (index - unit) * direction > 0:
                return (path, index)
    for file in chain(*ways, here):
        for index in _open_in(file, taken, direction):
            return (file.path, index)
    return None


def _open_in(file: FileChange, taken: frozenset[tuple[str, str]], direction: int) -> Iterator[int]:
    """Yield the indices of a file's open units."""
    units = () if file.note else units_of(file)
    for index in range(len(units))[::direction]:
        if is_open(units[index]) and (file.path, units[index].id) not in taken:
            yield index


def safe_to_accept(files: Iterable[FileChange]) -> tuple[list[FileChange], list[FileChange]]:
    """Return files with something open that can be accepted unseen, and those held back."""
    open_files = [
        file for file in files if not file.note and any(is_open(unit) for unit in file.hunks)
    ]
    return [f for f in open_files if f.tier != "held"], [f for f in open_files if f.tier == "held"]


def step_words(step: StepReport) -> str:
    """Return what a step of decisions was about; what a decision brings along is not counted."""
    parts = [_several(step.hunks, "the decision about a hunk", "the decisions about {} hunks")]
    if not step.hunks:
        parts.append(_several(step.edits, "your lines in a hunk", "your lines in {} hunks"))
        parts.append(_several(step.reasons, "a reason", "{} reasons"))
    parts.append(_several(step.comments, "a comment", "{} comments"))
    solved = ("the solution of a conflict", "the solutions of {} conflicts")
    parts.append(_several(step.solutions, *solved))
    return ", ".join(filter(None, parts))


def _several(count: int, one: str, many: str) -> str:
    return (one if count == 1 else many.format(count)) if count else ""


def news(shown: Changes | None, newer: Changes | None) -> int:
    """Count the files that a newer generation has otherwise than the one that shows."""
    if shown is None or newer is None:
        return 0
    before = {file.path: key_of(file) for file in shown.files}
    now = {file.path: key_of(file) for file in newer.files}
    return sum(before.get(path) != now.get(path) for path in before.keys() | now.keys())


def refreshed(shown: Changes, newer: Changes) -> str:
    """Return what to say after a refresh: what changed, and which decisions it cost."""
    decided = {(f.path, u.id) for f in shown.files for u in f.hunks if u.decision != "open"}
    there = {(f.path, u.id) for f in newer.files for u in f.hunks}
    count, lost = news(shown, newer), len(decided - there)
    text = f"{count} {plural(count, 'file')} changed."
    if lost:
        text += f" {lost} decided {'hunk is' if lost == 1 else 'hunks are'} no longer the same."
    kept = len(decided & there)
    return f"{text} {kept} {plural(kept, 'decision')} kept."


def with_decisions(shown: Changes, newer: Changes) -> Changes:
    """Return the shown generation with the decisions of a newer one, where units are the same."""
    known = {(file.path, unit.id): unit for file in newer.files for unit in file.hunks}
    whole = {file.path: file for file in newer.files}
    files: list[FileChange] = []
    for file in shown.files:
        hunks = [_redecided(h, known.get((file.path, h.id), h)) for h in file.hunks]
        now = whole.get(file.path, file)
        if now is file or _said_alike(file, now, hunks):
            files.append(file)  # the same value, so that nothing about it is drawn anew
            continue
        said = {"decision": now.decision, "merged": now.merged, "viewed": now.viewed}
        files.append(msgspec.structs.replace(file, hunks=tuple(hunks), **said))
    return msgspec.structs.replace(
        shown,
        files=tuple(files),
        last_merge=newer.last_merge,
        last_merge_files=newer.last_merge_files,
    )


def _said_alike(file: FileChange, now: FileChange, hunks: Sequence[HunkInfo]) -> bool:
    """Tell whether nothing was decided about a file since."""
    before = (file.decision, file.merged, file.viewed)
    return before == (now.decision, now.merged, now.viewed) and all(
        one is other for one, other in zip(hunks, file.hunks, strict=True)
    )


def _redecided(unit: HunkInfo, newer: HunkInfo) -> HunkInfo:
    if (unit.decision, unit.marks) == (newer.decision, newer.marks):
        return unit
    return msgspec.structs.replace(unit, decision=newer.decision, marks=newer.marks)
