"""What a user's words ask of a merge: paths, patterns and names of hunks, made marks.

A path that is named is meant. A pattern is a wide yes, like "accept all" on the screen: it leaves
out what is held by its risk, and that is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pathspec import GitIgnoreSpec

from app.errors import AppError
from app.keeper.deciding import without_edited
from app.protocol import Skipped
from snapshot.decisions import LETTERS, Mark, Overlay
from snapshot.review import accept_open

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.keeper.generation import Generation
    from app.protocol import MergeRequest
    from snapshot.decisions import Choice, DecisionLog, Decisions
    from snapshot.review import ChangedFile


class Found(NamedTuple):
    """The changed paths that a text means."""

    paths: list[str]
    by_name: bool
    """Whether it is the name of the one path, no pattern."""


def matches(text: str, paths: Iterable[str]) -> Found:
    """Return the paths that `text` means, in their order; a rename goes by its new path.

    A literal path first, a gitignore pattern second. Raises AppError `usage`.
    """
    known = list(paths)
    literal = text.removeprefix("./")
    if literal in known:
        return Found([literal], by_name=True)
    try:
        spec = GitIgnoreSpec.from_lines([text])
    except ValueError as error:
        raise AppError("usage", f"'{text}' is neither a path nor a pattern: {error}.") from error
    return Found([path for path in known if spec.match_file(path)], by_name=False)


class Asked(NamedTuple):
    """What a request adds to the decisions on record."""

    marks: list[Mark]
    held: list[Skipped]
    """Paths that a pattern met and left undecided for their risk."""
    noted: list[Skipped]
    """Paths that were to be accepted and cannot be merged, and why."""


class Asking:
    """Reads requests against a generation; `session` is named in hints."""

    def __init__(self, session: str, generation: Generation, log: DecisionLog) -> None:
        self._session = session
        self._generation = generation
        self._log = log

    def asked(self, request: MergeRequest) -> Asked:
        """Return the marks that a request adds, later ones winning, and what it left out.

        Raises AppError `not-found`, `usage`.
        """
        marks: list[Mark] = []
        held: dict[str, None] = {}
        noted: dict[str, str] = {}
        if request.accept_safe:
            marks += self._safe()
        for text in request.accept:
            found = self._matches(text)
            left = {} if found.by_name else dict.fromkeys(filter(self._held, found.paths))
            held |= left
            marks += self._whole((name for name in found.paths if name not in left), "accepted")
            notes = {name: self._generation.files[name].note for name in found.paths}
            noted |= {name: note for name, note in notes.items() if note}
        for hunk in request.hunks:
            marks += self._hunk(hunk)
        for text in request.reject:
            marks += self._whole(self._matches(text).paths, "rejected")
        final = {(mark.path, mark.unit): mark for mark in marks}
        kept = without_edited(final.values(), self._log)
        undecided = self._undecided(held, Overlay(self._log, kept))
        return Asked(kept, undecided, [Skipped(name, note) for name, note in noted.items()])

    def _safe(self) -> Iterable[Mark]:
        for name, file in self._generation.files.items():
            if not self._held(name):
                units = self._generation.summary(file).units
                yield from accept_open(file.path, units, self._log)

    def _held(self, name: str) -> str:
        return self._generation.summary(self._generation.files[name]).held

    def _undecided(self, names: Iterable[str], decisions: Decisions) -> list[Skipped]:
        """Return which of these files are not wholly decided, and why they were left out."""
        return [Skipped(name, self._held(name)) for name in names if self._is_open(name, decisions)]

    def _is_open(self, name: str, decisions: Decisions) -> bool:
        file = self._generation.files[name]
        return self._generation.summary(file).has(LETTERS["open"], file.path, decisions)

    def _whole(self, names: Iterable[str], decision: Choice) -> Iterable[Mark]:
        """Decide everything about these files."""
        for name in names:
            file = self._generation.files[name]
            for unit in self._generation.summary(file).units:
                yield Mark(file.path, unit.id, LETTERS[decision] * unit.size)

    def _matches(self, text: str) -> Found:
        found = matches(text, self._generation.files)
        if not found.paths:
            raise AppError(
                "not-found",
                f"No changed path matches '{text}'.",
                f"See the paths: cloche changes {self._session}",
            )
        return found

    def _hunk(self, text: str) -> list[Mark]:
        found = list(self._units(text))
        if len(found) != 1:
            what = "There is no hunk" if not found else f"{len(found)} hunks begin with"
            raise AppError(
                "not-found", f"{what} '{text}'.", f"See: cloche changes {self._session} --json"
            )
        file, unit = found[0]
        return self._generation.review(file).decide("accepted", (unit,))

    def _units(self, text: str) -> Iterable[tuple[ChangedFile, str]]:
        for file in self._generation.files.values():
            for unit in self._generation.summary(file).units:
                if unit.id.startswith(text):
                    yield file, unit.id
