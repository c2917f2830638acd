"""The list of changes that clients are shown: each file with its hunks and where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blake3 import blake3

from app.protocol import FileChange, HunkInfo
from app.wire_text import to_text
from snapshot.decisions import LETTERS, state_of
from snapshot.facts import reason_of

if TYPE_CHECKING:
    from app.keeper.drift import Drift
    from app.keeper.generation import Generation
    from app.keeper.merges import MergesInForce
    from app.keeper.summaries import UnitSummary
    from app.keeper.viewed import Viewed
    from snapshot.changes import Change
    from snapshot.decisions import DecisionLog
    from snapshot.review import ChangedFile
    from snapshot.writeback_ops import MergedUnit


class ChangeList:
    """Joins a generation with decisions, merges and the real files. Reads the disk for drift."""

    def __init__(
        self,
        generation: Generation,
        log: DecisionLog,
        in_force: MergesInForce,
        viewed: Viewed,
        drift: Drift,
    ) -> None:
        self._generation = generation
        self._log = log
        self._in_force = in_force
        self._viewed = viewed
        self._drift = drift

    def row(self, name: str, comments: int, *, drift: bool) -> FileChange:
        """Return what a client is told of a file; `drift`: look whether the user changed it."""
        file, change = self._generation.files[name], self._generation.rows[name]
        summary = self._generation.summary(file)
        marks = [self._log.marks(file.path, unit.id, unit.size) for unit in summary.units]
        hunks = tuple(
            self._hunk_info(file, unit, text)
            for unit, text in zip(summary.units, marks, strict=True)
        )
        return FileChange(
            path=name,
            kind=file.kind,
            old_path=to_text(file.old_path or b""),
            mode=file.mode,
            old_mode=file.old_mode,
            added=summary.added,
            removed=summary.removed,
            binary=summary.binary,
            risk=summary.risk,
            tier=summary.tier,
            note=file.note,
            base=file.base,
            agent=file.agent,
            decision=state_of("".join(marks)),
            drift=drift and self._has_drifted(file, change),
            hunks=hunks,
            merged=name in self._in_force.paths,
            comments=comments,
            viewed=self._viewed.holds(name, file),
        )

    def _has_drifted(self, file: ChangedFile, change: Change) -> bool:
        """Tell whether the user changed the real file; what a merge wrote is no such change."""
        if not self._drift.moved(file.old_path or file.path, change.base):
            return False
        asked = self._in_force.asked(file.path)
        if asked is None:
            return True
        path = file.old_path or file.path if asked.path is None else asked.path
        return not self._drift.is_left(path, asked.kind, asked.digest, asked.executable)

    def _hunk_info(self, file: ChangedFile, unit: UnitSummary, marks: str) -> HunkInfo:
        state = state_of(marks)
        edit = self._log.edit(file.path, unit.id) if state == "accepted" else None
        known = self._log.facts("rejected").get(unit.content)
        return HunkInfo(
            unit.id,
            *unit.numbers,
            state,
            unit.aspect,
            marks,
            edited=edit is not None,
            reason=reason_of(self._log.facts("reason"), file.path, unit.id),
            rejected_before=known is not None and known["unit"] != unit.id,
            merged=_is_merged(self._in_force.unit(file.path, unit.id), marks, edit),
        )

    def is_merged(self, file: ChangedFile, unit: UnitSummary) -> bool:
        """Tell whether all that is accepted of a unit is in the workspace, and something is."""
        marks = self._log.marks(file.path, unit.id, unit.size)
        edit = self._log.edit(file.path, unit.id)
        return _is_merged(self._in_force.unit(file.path, unit.id), marks, edit)


def _is_merged(merged: MergedUnit | None, marks: str, edit: bytes | None) -> bool:
    """Tell whether everything that is accepted of a unit was merged, and something is."""
    accepted = LETTERS["accepted"]
    if merged is None or accepted not in marks or len(merged.marks) != len(marks):
        return False
    same = merged.edit == ("" if edit is None else blake3(edit).hexdigest())
    pairs = zip(marks, merged.marks, strict=True)
    return same and all(done == accepted for wanted, done in pairs if wanted == accepted)
