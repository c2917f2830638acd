"""What a merge would do or did, in the numbers and paths that the user is shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from snapshot.safe_text import safe_name

if TYPE_CHECKING:
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
    rejected_hunks: int = 0
    open_hunks: int = 0

    @property
    def accepted_text(self) -> str:
        """How many hunks go in, in words."""
        noun = "hunk" if self.accepted_hunks == 1 else "hunks"
        return f"with {self.accepted_hunks} accepted {noun}"


def units_in(changes: Changes, decision: str) -> int:
    """Return how many hunks (and aspects) of mergeable files have a decision."""
    count = 0
    for file in changes.files:
        if file.note:
            continue
        units = [hunk.decision for hunk in file.hunks] or [file.decision]
        count += sum(found == decision for found in units)
    return count


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
        kinds={safe_name(path).text: KINDS[file.kind] for path, file in by_path.items()},
        accepted_hunks=units_in(changes, "accepted") + units_in(changes, "mixed"),
        rejected_hunks=units_in(changes, "rejected"),
        open_hunks=units_in(changes, "open"),
    )
