"""What a merge would do or did, in the numbers and paths that the user is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.wording import counted
from snapshot.decisions import LETTERS
from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from app.protocol import Changes, FileChange, MergeReport


KINDS = {
    "added": "new",
    "modified": "",
    "deleted": "deleted",
    "renamed": "renamed",
    "mode": "mode",
    "type": "another type",
}
"""Words for what happens to a file."""


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """All texts are safe to print."""

    written: tuple[str, ...] = ()
    """Those that are risky in front."""
    conflicts: tuple[str, ...] = ()
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    """Why a path is in conflict, where the keeper says more than that."""
    skipped: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()
    risky: dict[str, str] = field(default_factory=dict[str, str])
    """Why a path that goes in is risky."""
    kinds: dict[str, str] = field(default_factory=dict[str, str])
    """What happens to a path that is more than a change of its content."""
    accepted_hunks: int = 0
    """Those that this merge writes: not what was merged before, nor what is left out."""
    rejected_hunks: int = 0
    open_hunks: int = 0

    @property
    def accepted_text(self) -> str:
        """How many hunks go in, in words."""
        return f"with {counted(self.accepted_hunks, 'accepted hunk')}"


def units_in(changes: Changes, decision: str) -> int:
    """Return how many hunks (and aspects) of mergeable files have a decision."""
    count = 0
    for file in changes.files:
        if file.note:
            continue
        units = [hunk.decision for hunk in file.hunks] or [file.decision]
        count += sum(found == decision for found in units)
    return count


def open_units(changes: Changes) -> int:
    """Return how many hunks (and aspects) of mergeable files have something undecided."""
    return sum(LETTERS["open"] in marks for _, marks, _ in _units(changes))


def _going_in(changes: Changes, written: Container[str]) -> int:
    """Return of how many hunks a merge writes something that it did not write before."""
    return sum(
        path in written and not merged and LETTERS["accepted"] in marks
        for path, marks, merged in _units(changes)
    )


def _units(changes: Changes) -> Iterator[tuple[str, str, bool]]:
    """Yield path and marks of every unit of mergeable files, and whether it is merged."""
    for file in changes.files:
        if not file.note and not file.hunks:
            yield file.path, file.decision[0], file.merged
        for hunk in () if file.note else file.hunks:
            yield file.path, hunk.marks or hunk.decision[0], hunk.merged


def _kind(file: FileChange, report: MergeReport) -> str:
    """Return a word for what happens to a file on disk; of part of a change its lines alone do."""
    left = {"deleted": file.path, "renamed": file.old_path}.get(file.kind)
    return KINDS[file.kind] if left is None or left in report.deleted else ""


def merge_facts(changes: Changes, report: MergeReport) -> MergeFacts:
    """Join what was decided with what the keeper says."""
    by_path: dict[str, FileChange] = {file.path: file for file in changes.files}
    risky = {path: by_path[path].risk for path in report.written if path in by_path}
    in_rank = sorted(report.written, key=lambda path: not risky.get(path))
    return MergeFacts(
        written=tuple(safe_name(path).text for path in in_rank),
        conflicts=tuple(safe_name(path).text for path in report.conflicts),
        reasons={safe_name(s.path).text: safe_name(s.reason).text for s in report.reasons},
        skipped=tuple((safe_name(s.path).text, safe_name(s.reason).text) for s in report.skipped),
        notices=tuple(safe_name(notice).text for notice in report.notices),
        risky={safe_name(path).text: safe_name(why).text for path, why in risky.items() if why},
        kinds={safe_name(path).text: _kind(file, report) for path, file in by_path.items()},
        accepted_hunks=_going_in(changes, set(report.written)),
        rejected_hunks=units_in(changes, "rejected"),
        open_hunks=open_units(changes),
    )
