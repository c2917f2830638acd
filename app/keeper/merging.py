"""Merging what is accepted into the workspace, and taking a merge back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.errors import AppError
from app.keeper.asking import Asking
from app.keeper.disputes import chosen_in, disputes_of
from app.keeper.merge_report import report_of, undo_report_of
from app.wire_text import text_path, to_bytes
from snapshot.conflicts import Resolution, Solved
from snapshot.decisions import LETTERS, Overlay
from snapshot.errors import MergeAborted
from snapshot.facts import resolution_fact
from snapshot.review import WholeReview, accepts_all, plan_reviews
from snapshot.safe_text import safe_name
from snapshot.writeback import run_merge, undo_merge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from app.keeper.deciding import Deciding
    from app.keeper.generation import Generation
    from app.keeper.merges import MergesInForce
    from app.protocol import MergeReport, MergeRequest, UndoReport
    from app.protocol_review import Resolve
    from app.records import SessionRecord
    from snapshot.conflicts import Resolutions
    from snapshot.decisions import DecisionLog, Decisions, Mark
    from snapshot.review import ChangedFile, Planned
    from snapshot.writeback import MergePlan

    Solutions = Mapping[tuple[bytes, str], Resolution]
    """Resolutions by path and conflict."""


MAX_AT_ONCE: Final = 1 << 30
"""Bytes of both sides of what one merge writes: it holds them in memory."""


class Merging:
    """Merges of one session; blocks on disk. Hold the desk's lock."""

    def __init__(
        self,
        record: SessionRecord,
        generation: Generation,
        log: DecisionLog,
        deciding: Deciding,
        in_force: MergesInForce,
    ) -> None:
        self._workspace = Path(text_path(record.workspace))
        self._generation = generation
        self._log = log
        self._deciding = deciding
        self._in_force = in_force
        self._asking = Asking(record.id, generation, log)

    def merge(self, request: MergeRequest) -> MergeReport:
        """Write what is accepted into the workspace, or with `dry_run` only say what would be.

        Raises the errors of `snapshot`; AppError `not-found` for a path or hunk nobody changed.
        """
        asked = self._asking.asked(request)
        decisions = Overlay(self._log, asked.marks)
        solved = self._solved(request.resolve, decisions)
        if request.dry_run:
            plan = self.plan(decisions, resolutions=Solved(self._log, solved))
            return report_of("", plan, self._generation.open_units(decisions), asked, dry_run=True)
        self._record(asked.marks, solved)
        done = run_merge(lambda: self.plan(self._log), self._in_force.folder)
        self._in_force.renew()
        return report_of(done.merge, done, self._generation.open_units(self._log), asked)

    def _solved(self, asked: Sequence[Resolve], decisions: Decisions) -> Solutions:
        return {
            (dispute.path, dispute.id): Resolution(chosen_in(dispute, one.choice), one.text)
            for one in asked
            for dispute in disputes_of(self.plan(decisions, one.path), one)
        }

    def _record(self, asked: Sequence[Mark], solved: Solutions) -> None:
        """Record what a merge was asked for as one undo step, like a screen."""
        by_path = {file.path: file for file in self._generation.files.values()}
        facts = [resolution_fact(path, name, one) for (path, name), one in solved.items()]
        for mark in asked:
            facts += self._deciding.facts(by_path[mark.path], (mark,))
        self._log.record(asked, facts)

    def plan(
        self, decisions: Decisions, path: str = "", resolutions: Resolutions | None = None
    ) -> MergePlan:
        """Plan a merge of everything, or of one path alone. Raises AppError `not-found`."""
        known = self._generation
        accepted = {
            name: file
            for name, file in ({path: known.named(path)} if path else known.files).items()
            if known.summary(file).has(LETTERS["accepted"], file.path, decisions)
        }
        self._check_room(accepted)
        return plan_reviews(
            (self._planned(file, decisions) for file in accepted.values()),
            decisions,
            self._workspace,
            gone_dirs=known.gone_dirs,
            resolutions=resolutions or self._log,
            earlier=self._in_force.earlier,
        )

    def _planned(self, file: ChangedFile, decisions: Decisions) -> Planned:
        """Return a file with its lines, or without a look at them where all of it is accepted."""
        units = self._generation.summary(file).units
        if not accepts_all(file.path, units, decisions):
            return self._generation.review(file)
        return WholeReview(file, *self._generation.contents(file), units)

    def _check_room(self, names: Iterable[str]) -> None:
        """Refuse what would not fit into memory. Raises MergeAborted."""
        sizes = {name: self._generation.size(name) for name in names}
        if sum(sizes.values()) > MAX_AT_ONCE:
            largest = safe_name(to_bytes(max(sizes, key=lambda name: sizes[name]))).text
            raise MergeAborted(
                f"What is accepted has more than {MAX_AT_ONCE >> 20} MiB, {largest} most of all;"
                " nothing was written.",
                "Leave large files for a later merge: cloche merge ID --reject PATTERN",
            )

    def undo(self, merge: str) -> UndoReport:
        """Take a whole merge back; files that moved on are merged or named as conflicts.

        Raises the errors of `snapshot`; AppError `not-found`.
        """
        done = undo_merge(self._in_force.folder, self._merge_id(merge))
        self._in_force.renew()
        return undo_report_of(done)

    def _merge_id(self, text: str) -> str:
        names = sorted(entry.name for entry in self._in_force.folder.iterdir() if entry.is_dir())
        found = [name for name in names if name == text] or [
            name for name in names if text and name.startswith(text)
        ]
        if len(found) != 1:
            raise AppError("not-found", f"There is no merge '{text}' in this session.", "")
        return found[0]
