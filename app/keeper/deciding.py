"""Deciding about what changed: by file, hunk or line, with own lines, and by a patch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from app.errors import AppError
from app.keeper.importing import file_of, report_of, taken
from app.keeper.remarks import checked_text
from app.protocol_review import MAX_EDIT, MAX_PATCH, HunkResult, StepReport
from snapshot.decisions import LETTERS, Mark, Uniform, state_of
from snapshot.facts import edit_fact, reason_fact, rejected_fact
from snapshot.hunks import Hunk
from snapshot.patch_read import read_patch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.keeper.generation import Generation
    from app.protocol import Decide
    from app.protocol_review import EditRequest, PatchReport
    from snapshot.decisions import DecisionLog, Fact, Stepped
    from snapshot.review import ChangedFile


class Deciding:
    """Every method that changes something is one undo step of the log. Hold the desk's lock."""

    def __init__(self, generation: Generation, log: DecisionLog) -> None:
        self._generation = generation
        self._log = log

    def decide(self, decisions: Sequence[Decide]) -> bool:
        """Record decisions. Raises DecisionUnknown, AppError `not-found`."""
        marks: list[Mark] = []
        facts: list[Fact] = []
        for decision in decisions:
            made = self._marks(decision)
            if decision.decision == "accepted" and not decision.hunks:
                made = without_edited(made, self._log)
            reason = checked_text(decision.reason) if decision.reason else ""
            facts += self.facts(self._generation.named(decision.path), made, reason)
            marks += made
        return self._log.record(marks, facts)

    def _marks(self, decision: Decide) -> list[Mark]:
        file = self._generation.named(decision.path)
        if decision.lines and len(decision.hunks) == 1:
            review, hunk = self._generation.review(file), decision.hunks[0]
            return [review.decide_lines(self._log, decision.decision, hunk, decision.lines)]
        # the lines themselves are not needed: comparing thousands of files takes long
        sizes = {unit.id: unit.size for unit in self._generation.summary(file).units}
        wanted = decision.hunks or tuple(sizes)
        if not sizes.keys() >= set(wanted):
            return self._generation.review(file).decide(decision.decision, decision.hunks)
        letter = LETTERS[decision.decision]
        return [Mark(file.path, unit, letter * sizes[unit]) for unit in wanted]

    def facts(self, file: ChangedFile, marks: Iterable[Mark], reason: str = "") -> list[Fact]:
        """Return what new marks say besides: why, what is to be remembered, that no edit holds."""
        contents = {unit.id: unit.content for unit in self._generation.summary(file).units}
        facts: list[Fact] = []
        for mark in marks:
            whole = state_of(mark.marks) == "rejected"
            facts += [
                reason_fact(file.path, mark.unit, reason if "r" in mark.marks else ""),
                rejected_fact(contents[mark.unit], file.path, mark.unit, whole),
                edit_fact(file.path, mark.unit, None),
            ]
        return facts

    def edit(self, asked: EditRequest) -> bool:
        """Replace a hunk's result by the user's own lines, which accepts it.

        Raises DecisionUnknown, AppError `not-found`, `usage`.
        """
        file = self._generation.named(asked.path)
        hunk = self._lines_of(file, asked.hunk)
        if len(asked.content) > MAX_EDIT:
            raise AppError("usage", f"An edited hunk has at most {MAX_EDIT >> 10} KiB.")
        marks = self._generation.review(file).decide("accepted", (hunk.id,))
        facts = self.facts(file, marks)[:-1]
        return self._log.record(marks, [*facts, edit_fact(file.path, hunk.id, asked.content)])

    def hunk_result(self, path: str, hunk: str) -> HunkResult:
        """Return what stands in a hunk's place as it is decided now.

        Raises DecisionUnknown, AppError `not-found`, `usage`.
        """
        file = self._generation.named(path)
        review, found = self._generation.review(file), self._lines_of(file, hunk)
        proposed = review.hunk_result(Uniform("accepted"), found)
        now = review.hunk_result(self._log, found)
        return HunkResult(now, proposed, review.edit(self._log, found) is not None)

    def _lines_of(self, file: ChangedFile, hunk: str) -> Hunk:
        """Return a unit that is made of lines. Raises DecisionUnknown, AppError `usage`."""
        unit = self._generation.review(file).unit(hunk)
        if not isinstance(unit, Hunk):
            raise AppError("usage", "Only lines of text can be edited, not a fact about a file.")
        return unit

    def import_patch(self, data: bytes) -> PatchReport:
        """Decide the files that a patch names so that they become what it makes of them.

        A rejected hunk that the patch leaves out stays rejected.

        Raises PatchRefused, AppError `usage`.
        """
        if len(data) > MAX_PATCH:
            raise AppError("usage", f"A patch has at most {MAX_PATCH >> 10} KiB.")
        marks: list[Mark] = []
        facts: list[Fact] = []
        edits: list[Fact] = []
        paths: list[bytes] = []
        for patch in read_patch(data):
            file = file_of(patch, self._generation.files.values())
            made, fresh = taken(patch, self._generation.review(file))
            kept = [mark for mark in made if self._is_news(mark)]
            paths.append(file.path)
            marks += kept
            facts += self.facts(file, kept)
            edits += [edit for edit in fresh if edit.value is not None]
        self._log.record(marks, [*facts, *edits])
        return report_of(paths, marks, edits)

    def _is_news(self, mark: Mark) -> bool:
        """Tell whether new marks say more than that what is not accepted is not accepted."""
        known = self._log.marks(mark.path, mark.unit, len(mark.marks))
        accepted = LETTERS["accepted"]
        return accepted in mark.marks or accepted in known


def step_report_of(step: Stepped | None) -> StepReport:
    """Return what clients are told of a step that was taken back or done again."""
    if step is None:
        return StepReport()
    kinds = Counter(fact.kind for fact in step.facts)
    return StepReport(
        len(step.marks), kinds["edit"], kinds["reason"], kinds["comment"], kinds["resolution"]
    )


def without_edited(marks: Iterable[Mark], log: DecisionLog) -> list[Mark]:
    """Leave out hunks that are accepted with the user's own lines: a wide yes means these."""
    return [
        mark
        for mark in marks
        if log.edit(mark.path, mark.unit) is None
        or log.marks(mark.path, mark.unit, len(mark.marks)) != mark.marks
    ]
