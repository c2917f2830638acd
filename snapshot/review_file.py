"""One changed file under review: what can be decided about it, and what decisions make of it.

How a file's units make its result:

* text: one `Hunk` a group of changed lines. A new file exists once one of its lines is accepted; a
  deleted one is gone once all of its lines are.
* what has no lines to decide (empty, binary, link, folder, change of type): one `Aspect`.
* besides: `mode` (the executable bit alone) and `rename`, each decided apart from the content.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .aspects import FILE, FOLDER, LINK, aspects_of
from .compose import ACCEPTED, compose, hunk_lines
from .decisions import LETTERS, Mark, edit_in_force, state_of
from .errors import DecisionUnknown
from .hunks import Aspect, AspectKind, Hunk, Unit, build_hunks, content_id
from .lines import BOM, has_bom
from .review_facts import bom_notes, ending_notes, is_utf8, span_of
from .review_sides import ChangedFile, Sides
from .risk import HIDES_TEXT, Risk, risk_of
from .safe_text import decode, is_suspicious, safe_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Set

    from .decisions import Choice, Decisions, State
    from .risk import Tier


@dataclass(frozen=True, slots=True)
class FileResult:
    """What accepted decisions make of a base file; `path` None: the file is gone."""

    path: bytes | None
    content: bytes
    mode: str


class FileReview(Sides):
    """One changed file: hunks, aspects, counts and what decisions make of it."""

    def __init__(self, file: ChangedFile, base: bytes | None, agent: bytes | None) -> None:
        super().__init__(file, base, agent)
        self.hunks: tuple[Hunk, ...] = (
            build_hunks(file.path, self.old_lines, self.new_lines) if self.by_lines else ()
        )
        self.aspects: tuple[Aspect, ...] = (
            () if self.note else aspects_of(file, self.base, self.agent, by_lines=self.by_lines)
        )
        self.added, self.removed = self._counts()
        found = self._risk()
        self.tier: Tier = found.tier
        """How strictly it is held back; empty where no risk is known."""
        self.risk: str = found.reason
        """Empty, or one phrase on what the file can do by side effect."""
        self.suspicious = self._is_suspicious()
        """Bidirectional or invisible characters in added lines, the name or a link's target."""
        self.notes = (*([self.note] if self.note else []), *self._line_notes())
        """Facts for chips, such as `240 lines: LF → CRLF`."""

    def _risk(self) -> Risk:
        """Return what the file can do by side effect; what nobody can read is held as well."""
        file = self.file
        found = risk_of(
            file.path,
            mode=file.mode,
            old_mode=file.old_mode,
            agent=self.agent,
            base=self.base,
            old_path=file.old_path,
        )
        if self.binary and found.tier != "held":
            return Risk("held", "is too large or no text, so it cannot be read in review")
        return found

    # Units and marks

    @property
    def held(self) -> str:
        """Why a wide yes leaves the file to a decision of its own; empty where it takes it."""
        if self.tier == "held":
            return self.risk
        return HIDES_TEXT if self.suspicious else ""

    @property
    def units(self) -> tuple[Unit, ...]:
        """Aspects and then hunks: everything that can be decided. Empty with a `note`."""
        return () if self.note else (*self.aspects, *self.hunks)

    def unit(self, id: str) -> Unit:
        """Return a unit by its id.

        Raises:
            DecisionUnknown: there is none.

        """
        for unit in self.units:
            if unit.id == id:
                return unit
        raise DecisionUnknown(
            f"{safe_line(decode(self.file.path)).text} has no hunk {safe_line(id).text}.",
            "List the hunks that there are with `cloche changes ID --json`.",
        )

    def marks(self, decisions: Decisions, unit: Unit) -> str:
        """Return the marks of one unit of this file."""
        return decisions.marks(self.file.path, unit.id, unit.size)

    def state(self, decisions: Decisions) -> State:
        """Return what the decisions about all units add up to."""
        return state_of("".join(self.marks(decisions, unit) for unit in self.units))

    def decide(self, choice: Choice, hunks: Sequence[str] = ()) -> list[Mark]:
        """Translate a decision into marks; without `hunks` (unit ids) it is about every unit.

        Raises:
            DecisionUnknown: a unit id is not there.

        """
        units = [self.unit(hunk) for hunk in hunks] if hunks else self.units
        return [Mark(self.file.path, unit.id, LETTERS[choice] * unit.size) for unit in units]

    def decide_lines(
        self, decisions: Decisions, choice: Choice, hunk: str, lines: Sequence[int]
    ) -> Mark:
        """Return a hunk's marks with single lines changed.

        Raises:
            DecisionUnknown: the hunk or a line is not there.

        """
        unit = self.unit(hunk)
        marks = list(self.marks(decisions, unit))
        for line in lines:
            if not 0 <= line < len(marks):
                raise DecisionUnknown(
                    f"Hunk {hunk} has {len(marks)} changed lines; there is no number {line}.",
                    "Count changed lines from 0 in the order of the hunk's rows.",
                )
            marks[line] = LETTERS[choice]
        return Mark(self.file.path, hunk, "".join(marks))

    # Results

    def result(self, decisions: Decisions) -> FileResult | None:
        """Return the base with what was accepted; None when nothing was accepted."""
        marks = {unit.id: self.marks(decisions, unit) for unit in self.units}
        if not any(ACCEPTED in text for text in marks.values()):
            return None
        accepted: set[AspectKind] = {
            aspect.kind for aspect in self.aspects if marks[aspect.id] == ACCEPTED
        }
        if self.by_lines:
            return self._line_result(marks, accepted, self._edits(decisions, marks))
        return self._whole_result(accepted)

    def edit(self, decisions: Decisions, hunk: Unit) -> bytes | None:
        """Return the user's own lines in place of a hunk; they hold while all of it is accepted."""
        marks = self.marks(decisions, hunk)
        return edit_in_force(decisions, self.file.path, hunk.id, marks)

    def content_id(self, hunk: Hunk) -> str:
        """Return what names a hunk's changed lines wherever they stand."""
        return content_id(self.file.path, hunk, self.old_lines, self.new_lines)

    def hunk_result(self, decisions: Decisions, hunk: Hunk) -> bytes:
        """Return the lines that stand in a hunk's place as it is decided now."""
        marks, edit = self.marks(decisions, hunk), self.edit(decisions, hunk)
        return b"".join(hunk_lines(self.old_lines, self.new_lines, hunk, marks, edit))

    def _edits(self, decisions: Decisions, marks: dict[str, str]) -> dict[str, bytes]:
        found = {
            hunk.id: edit_in_force(decisions, self.file.path, hunk.id, marks[hunk.id])
            for hunk in self.hunks
        }
        return {unit: data for unit, data in found.items() if data is not None}

    def _line_result(
        self, marks: dict[str, str], accepted: Set[AspectKind], edits: dict[str, bytes]
    ) -> FileResult | None:
        """Return what accepted lines, edits, mode and name make of the base."""
        hunk_marks = "".join(marks[hunk.id] for hunk in self.hunks)
        if not self.file.old_mode and ACCEPTED not in hunk_marks:
            return None
        if not self.file.mode and set(hunk_marks) == {ACCEPTED} and not any(edits.values()):
            return FileResult(None, b"", "")
        content = compose(
            self.old_lines,
            self.new_lines,
            self.hunks,
            lambda hunk: marks[hunk.id],
            lambda hunk: edits.get(hunk.id),
        )
        return FileResult(self._path(accepted), content, self._mode(accepted))

    def _whole_result(self, accepted: Set[AspectKind]) -> FileResult | None:
        """Return what a decision about the whole content makes of the base."""
        if "deletion" in accepted or ("link" in accepted and not self.file.mode):
            return FileResult(None, b"", "")
        if not accepted.isdisjoint(("creation", "binary", "link", "type")):
            return FileResult(self._path(accepted), self.agent or b"", self._mode(accepted, True))
        if not self.file.old_mode:
            return None
        return FileResult(self._path(accepted), self.base or b"", self._mode(accepted))

    def _path(self, accepted: Set[AspectKind]) -> bytes:
        """Return where the result lies: under the new name only if the rename was accepted."""
        if self.file.old_path is None or "rename" in accepted:
            return self.file.path
        return self.file.old_path

    def _mode(self, accepted: Set[AspectKind], whole: bool = False) -> str:
        """Return the result's git mode; the executable bit needs a decision of its own."""
        file = self.file
        if whole and (file.mode in (LINK, FOLDER) or "type" in accepted):
            return file.mode
        if "mode" in accepted:
            return file.mode
        return file.old_mode or FILE

    # Facts

    def span(self, hunk: Hunk) -> tuple[int, int, int, int]:
        """Return old start, old lines, new start, new lines as in a diff without context."""
        old_bom, new_bom = has_bom(self.old_lines), has_bom(self.new_lines)
        old = span_of(hunk.old_start, hunk.old_end, old_bom)
        new = span_of(hunk.new_start, hunk.new_end, new_bom)
        return (*old, *new)

    def _counts(self) -> tuple[int, int]:
        kinds = Counter(change.kind for hunk in self.hunks for change in hunk.changes)
        return kinds["insert"] + kinds["ending"], kinds["delete"] + kinds["ending"]

    def _is_suspicious(self) -> bool:
        if is_suspicious(decode(self.file.path)):
            return True
        if not self.by_lines:
            return self.file.mode == LINK and is_suspicious(decode(self.agent or b""))
        return any(is_suspicious(decode(line)) for line in self._added_lines() if line != BOM)

    def _added_lines(self) -> Iterable[bytes]:
        changes = (change for hunk in self.hunks for change in hunk.changes)
        return (self.new_lines[x.new] for x in changes if x.new is not None)

    def _line_notes(self) -> list[str]:
        if not self.by_lines:
            return []
        shown = self.agent if self.agent is not None else self.base or b""
        modified = self.base is not None and self.agent is not None
        notes = bom_notes(self.old_lines, self.new_lines) if modified else []
        notes += ending_notes(self.hunks, self.old_lines, self.new_lines)
        return notes if is_utf8(shown) else [*notes, "not UTF-8"]
