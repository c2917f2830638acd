"""The review desk of one session: what changed, what was decided, merging and taking back.

It joins the parts that know how, and lets one caller in at a time.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from app.keeper.change_list import ChangeList
from app.keeper.deciding import Deciding, step_report_of
from app.keeper.disputes import Disputes
from app.keeper.drift import Drift
from app.keeper.generation import Generation
from app.keeper.merges import MergesInForce
from app.keeper.merging import Merging
from app.keeper.remarks import Remarks
from app.keeper.requests import Requests
from app.keeper.viewed import Viewed
from app.protocol import Changes
from app.wire_text import text_path
from snapshot.decisions import DecisionLog
from snapshot.writeback import recover

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.keeper.mirroring import Mirror
    from app.keeper.summaries import Summary, UnitSummary
    from app.protocol import Counts, Decide, MergeReport, MergeRequest, UndoReport
    from app.protocol_review import EditRequest, HunkResult, PatchReport, StepReport
    from app.records import SessionRecord
    from snapshot.base_reader import BaseReader
    from snapshot.blobs import BlobStore
    from snapshot.review import ChangedFile, FileReview
    from snapshot.writeback import MergePlan


class Desk:
    """Blocks on disk and on diffs: call every method in a thread, one at a time (it locks)."""

    def __init__(
        self, record: SessionRecord, folder: Path, base: BaseReader, blobs: BlobStore
    ) -> None:
        self._id = record.id
        self.lock = threading.RLock()
        self.log = DecisionLog(folder / "decisions.jsonl")
        self._viewed = Viewed(folder / "viewed.json")
        self._generation = Generation(record.id, base, blobs)
        self._in_force = _merges_of(folder / "merges")
        self._deciding = Deciding(self._generation, self.log)
        self._merging = Merging(record, self._generation, self.log, self._deciding, self._in_force)
        drift = Drift(Path(text_path(record.workspace)))
        self._list = ChangeList(self._generation, self.log, self._in_force, self._viewed, drift)
        self.remarks = Remarks(self)
        """The comments."""
        self.requests = Requests(self)
        """Asking the agent for changes."""
        self.conflicts = Disputes(self)
        """Where what is accepted meets what the user did meanwhile."""

    def close(self) -> None:
        """Close the log of decisions."""
        self.log.close()

    # The generation under review

    def take_over(self, mirror: Mirror) -> Counts:
        """Make the mirror's present generation the one under review; how large it is."""
        with self.lock:
            return self._generation.take_over(mirror)

    @property
    def files(self) -> Mapping[str, ChangedFile]:
        """The changed files of this generation by their names."""
        return self._generation.files

    def named(self, path: str) -> ChangedFile:
        """Return a changed file. Raises AppError `not-found`."""
        return self._generation.named(path)

    def summary(self, file: ChangedFile) -> Summary:
        """Return what is kept of a file."""
        return self._generation.summary(file)

    def review(self, file: ChangedFile) -> FileReview:
        """Return a file with its lines. Raises StoreDamaged."""
        return self._generation.review(file)

    def contents(self, file: ChangedFile) -> tuple[bytes | None, bytes | None]:
        """Return both sides of a file as they are. Raises StoreDamaged."""
        return self._generation.contents(file)

    def changes(self, drift: bool = True) -> Changes:
        """Return all changes with the decisions on record."""
        with self.lock:
            known, done, comments = self._generation, self._in_force, self.remarks.counts()
            files = tuple(
                self._list.row(name, comments.get(file.path, 0), drift=drift)
                for name, file in known.files.items()
            )
            return Changes(self._id, known.number, files, known.ignored, done.last, done.last_files)

    def is_merged(self, file: ChangedFile, unit: UnitSummary) -> bool:
        """Tell whether all that is accepted of a unit is in the workspace, and something is."""
        return self._list.is_merged(file, unit)

    @property
    def open_units(self) -> int:
        """How many hunks and aspects of this generation wait for a decision."""
        with self.lock:
            return self._generation.open_units(self.log)

    # Decisions

    def decide(self, decisions: Sequence[Decide]) -> bool:
        """Record decisions as one undo step. Raises DecisionUnknown, AppError `not-found`."""
        with self.lock:
            return self._deciding.decide(decisions)

    def edit(self, asked: EditRequest) -> bool:
        """Replace a hunk's result by the user's own lines, which accepts it; one undo step.

        Raises DecisionUnknown, AppError `not-found`, `usage`.
        """
        with self.lock:
            return self._deciding.edit(asked)

    def hunk_result(self, path: str, hunk: str) -> HunkResult:
        """Return what stands in a hunk's place as it is decided now.

        Raises DecisionUnknown, AppError `not-found`, `usage`.
        """
        with self.lock:
            return self._deciding.hunk_result(path, hunk)

    def import_patch(self, data: bytes) -> PatchReport:
        """Decide the files that a patch names so that they become what it makes of them.

        One undo step. Raises PatchRefused, AppError `usage`.
        """
        with self.lock:
            return self._deciding.import_patch(data)

    def undo_decision(self) -> StepReport:
        """Take back the last step of decisions, and say what it was about."""
        with self.lock:
            return step_report_of(self.log.undo())

    def redo_decision(self) -> StepReport:
        """Do again the step that was taken back last, and say what it was about."""
        with self.lock:
            return step_report_of(self.log.redo())

    def view(self, path: str, *, viewed: bool) -> None:
        """Mark a file as viewed, or not. Raises AppError `not-found`."""
        with self.lock:
            self._viewed.mark(path, self.named(path), viewed=viewed)

    # Merges

    def merge(self, request: MergeRequest) -> MergeReport:
        """Write what is accepted into the workspace, or with `dry_run` only say what would be.

        Raises the errors of `snapshot`; AppError `not-found` for a path or hunk nobody changed.
        """
        with self.lock:
            return self._merging.merge(request)

    def disputes(self, path: str = "") -> MergePlan:
        """Return a plan of what is accepted on record, for its conflicts. AppError `not-found`."""
        with self.lock:
            return self._merging.plan(self.log, path)

    def undo(self, merge: str) -> UndoReport:
        """Take a whole merge back; files that moved on are merged or named as conflicts.

        Raises the errors of `snapshot`; AppError `not-found`.
        """
        with self.lock:
            return self._merging.undo(merge)


def _merges_of(folder: Path) -> MergesInForce:
    """Return the merges of a session; one that a crash had interrupted is ended first."""
    folder.mkdir(mode=0o700, exist_ok=True)
    recover(folder)
    return MergesInForce(folder)
