"""The review desk of one session: what changed, what was decided, merging and taking back.

Diffs are made once for each pair of contents and kept as short summaries; the lines themselves are
held for a few files at a time, so a change set of thousands of files stays small in memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from blake3 import blake3

from app.errors import AppError
from app.keeper.asking import matches
from app.keeper.disputes import Disputes, chosen_in, disputes_of
from app.keeper.drift import Drift
from app.keeper.importing import file_of, report_of, taken
from app.keeper.merges import MergesInForce
from app.keeper.pruning import Pruner
from app.keeper.remarks import Remarks, checked_text
from app.keeper.requests import Requests
from app.keeper.summaries import summary_of
from app.keeper.viewed import Viewed
from app.protocol import (
    Changes,
    Counts,
    Decide,
    FileChange,
    HunkInfo,
    MergeReport,
    MergeRequest,
    Skipped,
    UndoReport,
)
from app.protocol_review import MAX_EDIT, MAX_PATCH, HunkResult
from app.wire_text import text_path, to_text
from snapshot.conflicts import Resolution, Solved
from snapshot.decisions import LETTERS, DecisionLog, Overlay, Uniform, state_of
from snapshot.errors import StoreDamaged
from snapshot.facts import edit_fact, reason_fact, reason_of, rejected_fact, resolution_fact
from snapshot.hunks import Hunk
from snapshot.patch_read import read_patch
from snapshot.review import ChangedFile, FileReview, accept_safe, plan_reviews
from snapshot.writeback import recover, run_merge, undo_merge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from app.keeper.mirroring import Mirror
    from app.keeper.summaries import Summary, UnitSummary
    from app.protocol_review import EditRequest, PatchReport, Resolve
    from app.records import SessionRecord
    from snapshot.base_reader import BaseReader
    from snapshot.blobs import BlobStore
    from snapshot.changes import Change
    from snapshot.conflicts import Resolutions
    from snapshot.decisions import Decisions, Fact, Mark
    from snapshot.manifest import Entry
    from snapshot.writeback import MergePlan, Refusal
    from snapshot.writeback_ops import MergedUnit

MAX_HELD: Final = 16
"""Reviews with their lines kept in memory."""


class Desk:
    """Blocks on disk and on diffs: call every method in a thread, one at a time (it locks)."""

    def __init__(
        self, record: SessionRecord, folder: Path, base: BaseReader, blobs: BlobStore
    ) -> None:
        self._id = record.id
        self._workspace = Path(text_path(record.workspace))
        self._merges = folder / "merges"
        self._merges.mkdir(mode=0o700, exist_ok=True)
        self._blobs = blobs
        self._base = base
        self.log = DecisionLog(folder / "decisions.jsonl")
        self._viewed = Viewed(folder / "viewed.json")
        self._drift = Drift(self._workspace)
        self._pruner = Pruner(blobs)
        self.files: dict[str, ChangedFile] = {}
        self._rows: dict[str, Change] = {}
        self._summaries: dict[ChangedFile, Summary] = {}
        self._held: OrderedDict[ChangedFile, FileReview] = OrderedDict()
        self._gone_dirs: frozenset[bytes] = frozenset()
        self._ignored = 0
        self._generation = 0
        self.lock = threading.RLock()
        recover(self._merges)
        self._in_force = MergesInForce(self._merges)
        self.remarks = Remarks(self)
        """The comments."""
        self.requests = Requests(self)
        """Asking the agent for changes."""
        self.conflicts = Disputes(self)
        """Where what is accepted meets what the user did meanwhile."""

    def close(self) -> None:
        """Close the log of decisions."""
        self.log.close()

    def take_over(self, mirror: Mirror) -> Counts:
        """Make the mirror's present generation the one under review; how large it is."""
        with self.lock:
            changes = mirror.changes
            self._read_base(changes.changes)
            self._rows = {to_text(change.path): change for change in changes.changes}
            self.files = {name: self._file(change) for name, change in self._rows.items()}
            self._gone_dirs = frozenset(
                path for path in mirror.tree.gone if _is_dir(mirror.tree.base.get(path))
            )
            self._ignored = changes.ignored
            self._generation = mirror.generation
            fresh = {file: self.summary(file) for file in self.files.values()}
            self._summaries = fresh
            needed = {digest for file in fresh for digest in (file.base, file.agent)}
            self._pruner.settle(needed, mirror.fetched)
            return Counts(
                len(fresh),
                sum(summary.added for summary in fresh.values()),
                sum(summary.removed for summary in fresh.values()),
            )

    def _read_base(self, changes: Iterable[Change]) -> None:
        wanted = [c.old_path or c.path for c in changes if c.base and c.base.kind == "file"]
        if wanted:
            self._base.ensure(wanted)

    def _file(self, change: Change) -> ChangedFile:
        return ChangedFile(
            path=change.path,
            kind=change.kind,
            old_path=change.old_path or None,
            mode=_git_mode(change.agent),
            old_mode=_git_mode(change.base),
            base=self._digest(change.base),
            agent=self._digest(change.agent),
            note=change.note,
        )

    def _digest(self, entry: Entry | None) -> str:
        if entry is None or entry.kind in ("dir", "special"):
            return ""
        return self._blobs.put(entry.target) if entry.kind == "link" else entry.digest

    def summary(self, file: ChangedFile) -> Summary:
        """Return what is kept of a file; made anew for one that is not known yet."""
        return self._summaries.get(file) or summary_of(self.review(file))

    def review(self, file: ChangedFile) -> FileReview:
        """Return a file with its lines. Raises StoreDamaged."""
        held = self._held.get(file)
        if held is None:
            held = FileReview(file, self._content(file.base), self._content(file.agent))
            self._held[file] = held
        self._held.move_to_end(file)
        while len(self._held) > MAX_HELD:
            self._held.popitem(last=False)
        return held

    def _content(self, digest: str) -> bytes | None:
        if not digest:
            return None
        data = self._base.content(digest)
        if data is None:
            raise StoreDamaged(
                f"The content {digest} is not in the session's store.",
                f"Mirror it again: cloche resume {self._id} --no-agent",
            )
        return data

    def changes(self, drift: bool = True) -> Changes:
        """Return all changes with the decisions on record."""
        with self.lock:
            comments = self.remarks.counts()
            files = tuple(
                self._row(name, drift, comments.get(file.path, 0))
                for name, file in self.files.items()
            )
            done = self._in_force
            return Changes(
                self._id, self._generation, files, self._ignored, done.last, done.last_files
            )

    def _row(self, name: str, drift: bool, comments: int) -> FileChange:
        file, change = self.files[name], self._rows[name]
        summary = self._summaries[file]
        marks = [self.log.marks(file.path, unit.id, unit.size) for unit in summary.units]
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
        edit = self.log.edit(file.path, unit.id) if state == "accepted" else None
        known = self.log.facts("rejected").get(unit.content)
        return HunkInfo(
            unit.id,
            *unit.numbers,
            state,
            unit.aspect,
            marks,
            edited=edit is not None,
            reason=reason_of(self.log.facts("reason"), file.path, unit.id),
            rejected_before=known is not None and known["unit"] != unit.id,
            merged=_is_merged(self._in_force.unit(file.path, unit.id), marks, edit),
        )

    def is_merged(self, file: ChangedFile, unit: UnitSummary) -> bool:
        """Tell whether all that is accepted of a unit is in the workspace, and something is."""
        marks = self.log.marks(file.path, unit.id, unit.size)
        edit = self.log.edit(file.path, unit.id)
        return _is_merged(self._in_force.unit(file.path, unit.id), marks, edit)

    def decide(self, decisions: Sequence[Decide]) -> bool:
        """Record decisions as one undo step. Raises DecisionUnknown, AppError `not-found`."""
        with self.lock:
            marks: list[Mark] = []
            facts: list[Fact] = []
            for decision in decisions:
                made = self._marks(decision)
                if decision.decision == "accepted" and not decision.hunks:
                    made = self._without_edited(made)
                reason = checked_text(decision.reason) if decision.reason else ""
                facts += self._facts(self.named(decision.path), made, reason)
                marks += made
            return self.log.record(marks, facts)

    def _without_edited(self, marks: Iterable[Mark]) -> list[Mark]:
        """Leave out hunks that are accepted with the user's own lines: a wide yes means these."""
        return [
            mark
            for mark in marks
            if self.log.edit(mark.path, mark.unit) is None
            or self.log.marks(mark.path, mark.unit, len(mark.marks)) != mark.marks
        ]

    def named(self, path: str) -> ChangedFile:
        """Return a changed file. Raises AppError `not-found`."""
        file = self.files.get(path)
        if file is None:
            raise AppError(
                "not-found", f"Nothing changed at '{path}'.", f"See: cloche changes {self._id}"
            )
        return file

    def view(self, path: str, *, viewed: bool) -> None:
        """Mark a file as viewed, or not. Raises AppError `not-found`."""
        with self.lock:
            self._viewed.mark(path, self.named(path), viewed=viewed)

    def _facts(self, file: ChangedFile, marks: Iterable[Mark], reason: str) -> list[Fact]:
        """Return what new marks say besides: why, what is to be remembered, that no edit holds."""
        contents = {unit.id: unit.content for unit in self._summaries[file].units}
        facts: list[Fact] = []
        for mark in marks:
            whole = state_of(mark.marks) == "rejected"
            facts += [
                reason_fact(file.path, mark.unit, reason if "r" in mark.marks else ""),
                rejected_fact(contents[mark.unit], file.path, mark.unit, whole),
                edit_fact(file.path, mark.unit, None),
            ]
        return facts

    def _marks(self, decision: Decide) -> list[Mark]:
        file = self.named(decision.path)
        review = self.review(file)
        if decision.lines and len(decision.hunks) == 1:
            return [
                review.decide_lines(self.log, decision.decision, decision.hunks[0], decision.lines)
            ]
        return review.decide(decision.decision, decision.hunks)

    def edit(self, asked: EditRequest) -> bool:
        """Replace a hunk's result by the user's own lines, which accepts it; one undo step.

        Raises DecisionUnknown, AppError `not-found`, `usage`.
        """
        with self.lock:
            file = self.named(asked.path)
            hunk = self._lines_of(file, asked.hunk)
            if len(asked.content) > MAX_EDIT:
                raise AppError("usage", f"An edited hunk has at most {MAX_EDIT >> 10} KiB.")
            marks = self.review(file).decide("accepted", (hunk.id,))
            facts = self._facts(file, marks, "")[:-1]
            return self.log.record(marks, [*facts, edit_fact(file.path, hunk.id, asked.content)])

    def import_patch(self, data: bytes) -> PatchReport:
        """Decide the files that a patch names so that they become what it makes of them.

        One undo step; a rejected hunk that the patch leaves out stays rejected.

        Raises PatchRefused, AppError `usage`.
        """
        if len(data) > MAX_PATCH:
            raise AppError("usage", f"A patch has at most {MAX_PATCH >> 10} KiB.")
        with self.lock:
            marks: list[Mark] = []
            facts: list[Fact] = []
            edits: list[Fact] = []
            paths: list[bytes] = []
            for patch in read_patch(data):
                file = file_of(patch, self.files.values())
                made, fresh = taken(patch, self.review(file))
                kept = [mark for mark in made if self._is_news(mark)]
                paths.append(file.path)
                marks += kept
                facts += self._facts(file, kept, "")
                edits += [edit for edit in fresh if edit.value is not None]
            self.log.record(marks, [*facts, *edits])
            return report_of(paths, marks, edits)

    def _is_news(self, mark: Mark) -> bool:
        """Tell whether new marks say more than that what is not accepted is not accepted."""
        known = self.log.marks(mark.path, mark.unit, len(mark.marks))
        accepted = LETTERS["accepted"]
        return accepted in mark.marks or accepted in known

    def hunk_result(self, path: str, hunk: str) -> HunkResult:
        """Return what stands in a hunk's place as it is decided now."""
        with self.lock:
            file = self.named(path)
            review, found = self.review(file), self._lines_of(file, hunk)
            proposed = review.hunk_result(Uniform("accepted"), found)
            now = review.hunk_result(self.log, found)
            return HunkResult(now, proposed, review.edit(self.log, found) is not None)

    def _lines_of(self, file: ChangedFile, hunk: str) -> Hunk:
        """Return a unit that is made of lines. Raises DecisionUnknown, AppError `usage`."""
        unit = self.review(file).unit(hunk)
        if not isinstance(unit, Hunk):
            raise AppError("usage", "Only lines of text can be edited, not a fact about a file.")
        return unit

    @property
    def open_units(self) -> int:
        """How many hunks and aspects of this generation wait for a decision."""
        with self.lock:
            return sum(
                summary.open_units(file.path, self.log) for file, summary in self._summaries.items()
            )

    def undo_decision(self) -> bool:
        """Take back the last step of decisions."""
        with self.lock:
            return self.log.undo()

    def redo_decision(self) -> bool:
        """Do again the step that was taken back last."""
        with self.lock:
            return self.log.redo()

    def merge(self, request: MergeRequest) -> MergeReport:
        """Write what is accepted into the workspace, or with `dry_run` only say what would be.

        Raises the errors of `snapshot`; AppError `not-found` for a path or hunk nobody changed.
        """
        with self.lock:
            asked = self._asked(request)
            decisions = Overlay(self.log, asked)
            solved = self._solved(request.resolve, decisions)
            if request.dry_run:
                plan = self._plan(decisions, resolutions=Solved(self.log, solved))
                report = _report(
                    "", plan.written, plan.conflicts, plan.skipped, plan.notices, dry_run=True
                )
                return msgspec.structs.replace(report, open=self._open_under(decisions))
            self._record_asked(asked, solved)
            done = run_merge(lambda: self._plan(self.log), self._merges)
            self._in_force.renew()
            report = _report(done.merge, done.written, done.conflicts, done.skipped, done.notices)
            return msgspec.structs.replace(report, open=self.open_units)

    def _solved(
        self, asked: Sequence[Resolve], decisions: Decisions
    ) -> dict[tuple[bytes, str], Resolution]:
        return {
            (dispute.path, dispute.id): Resolution(chosen_in(dispute, one.choice), one.text)
            for one in asked
            for dispute in disputes_of(self._plan(decisions, one.path), one)
        }

    def _record_asked(
        self, asked: Sequence[Mark], solved: Mapping[tuple[bytes, str], Resolution]
    ) -> None:
        """Record what a merge was asked for as one undo step, like a screen."""
        by_path = {file.path: file for file in self.files.values()}
        facts = [resolution_fact(path, name, one) for (path, name), one in solved.items()]
        for mark in asked:
            facts += self._facts(by_path[mark.path], (mark,), "")
        self.log.record(asked, facts)

    def _open_under(self, decisions: Decisions) -> int:
        return sum(
            summary.open_units(file.path, decisions) for file, summary in self._summaries.items()
        )

    def _asked(self, request: MergeRequest) -> list[Mark]:
        """Return the marks that a request adds to the decisions on record; later ones win."""
        safe: list[Mark] = []
        if request.accept_safe:
            for file in self.files.values():  # one by one: all lines at once would be too much
                safe += accept_safe([self.review(file)], self.log)
        marks: list[Mark] = []
        for text in request.accept:
            for name in self._matching(text):
                marks += self.review(self.files[name]).decide("accepted")
        for hunk in request.hunks:
            marks += self._hunk(hunk)
        for text in request.reject:
            for name in self._matching(text):
                marks += self.review(self.files[name]).decide("rejected")
        final = {(mark.path, mark.unit): mark for mark in (*safe, *marks)}
        return self._without_edited(final.values())

    def _matching(self, text: str) -> list[str]:
        found = matches(text, self.files)
        if not found:
            raise AppError(
                "not-found",
                f"No changed path matches '{text}'.",
                f"See the paths: cloche changes {self._id}",
            )
        return found

    def _hunk(self, text: str) -> list[Mark]:
        found = [
            (file, unit.id)
            for file in self.files.values()
            for unit in self._summaries[file].units
            if unit.id.startswith(text)
        ]
        if len(found) != 1:
            what = "There is no hunk" if not found else f"{len(found)} hunks begin with"
            raise AppError(
                "not-found", f"{what} '{text}'.", f"See: cloche changes {self._id} --json"
            )
        file, unit = found[0]
        return self.review(file).decide("accepted", (unit,))

    def _plan(
        self, decisions: Decisions, path: str = "", resolutions: Resolutions | None = None
    ) -> MergePlan:
        """Plan a merge of everything, or of one path alone."""
        files = [self.named(path)] if path else self.files.values()
        accepted = (
            file
            for file in files
            if self._summaries[file].has(LETTERS["accepted"], file.path, decisions)
        )
        return plan_reviews(
            map(self.review, accepted),
            decisions,
            self._workspace,
            gone_dirs=self._gone_dirs,
            resolutions=resolutions or self.log,
            earlier=self._in_force.earlier,
        )

    def disputes(self, path: str = "") -> MergePlan:
        """Return a plan of what is accepted on record, for its conflicts. AppError `not-found`."""
        with self.lock:
            return self._plan(self.log, path)

    def undo(self, merge: str) -> UndoReport:
        """Take a whole merge back; files that moved on are merged or named as conflicts."""
        with self.lock:
            done = undo_merge(self._merges, self._merge_id(merge))
            self._in_force.renew()
            return UndoReport(
                done.merge, _texts(done.restored), _paths(done.conflicts), _told(done.notices)
            )

    def _merge_id(self, text: str) -> str:
        names = sorted(entry.name for entry in self._merges.iterdir() if entry.is_dir())
        found = [name for name in names if name == text] or [
            name for name in names if text and name.startswith(text)
        ]
        if len(found) != 1:
            raise AppError("not-found", f"There is no merge '{text}' in this session.", "")
        return found[0]


def _is_dir(entry: Entry | None) -> bool:
    return entry is not None and entry.kind == "dir"


def _is_merged(merged: MergedUnit | None, marks: str, edit: bytes | None) -> bool:
    """Tell whether everything that is accepted of a unit was merged, and something is."""
    accepted = LETTERS["accepted"]
    if merged is None or accepted not in marks or len(merged.marks) != len(marks):
        return False
    same = merged.edit == ("" if edit is None else blake3(edit).hexdigest())
    pairs = zip(marks, merged.marks, strict=True)
    return same and all(done == accepted for wanted, done in pairs if wanted == accepted)


def _git_mode(entry: Entry | None) -> str:
    if entry is None or entry.kind == "special":
        return ""
    if entry.kind == "dir":
        return "040000"
    if entry.kind == "link":
        return "120000"
    return "100755" if entry.mode & 0o100 else "100644"


def _texts(paths: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(to_text(path) for path in paths)


def _paths(refusals: Iterable[Refusal]) -> tuple[str, ...]:
    return _texts(refusal.path for refusal in refusals)


def _told(notices: Iterable[Refusal]) -> tuple[str, ...]:
    """Return notices as text; one about the whole merge bears the path `.`."""
    return tuple(
        item.reason if item.path == b"." else f"{to_text(item.path)}: {item.reason}"
        for item in notices
    )


def _report(
    merge: str,
    written: Iterable[bytes],
    conflicts: Iterable[Refusal],
    skipped: Iterable[Refusal],
    notices: Iterable[Refusal],
    *,
    dry_run: bool = False,
) -> MergeReport:
    left = tuple(Skipped(to_text(item.path), item.reason) for item in skipped)
    why = tuple(Skipped(to_text(item.path), item.reason) for item in conflicts)
    paths = tuple(dict.fromkeys(one.path for one in why))
    return MergeReport(merge, _texts(written), paths, left, dry_run, _told(notices), why)
