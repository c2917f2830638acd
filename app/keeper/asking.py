"""What a user's words ask of a merge: paths, patterns and names of hunks, made marks.

A path that is named is meant. A pattern is a wide yes, like "accept all" on the screen: it leaves
out what is held by its risk and what the user rejected, and that is told.
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
    kept: list[str]
    """Paths that a pattern met and of which something stays rejected."""


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
        met: dict[str, None] = {}
        if request.accept_safe:
            marks += self._safe()
        for text in request.accept:
            found = self._matches(text)
            if found.by_name:
                marks += self._whole(found.paths, "accepted")
            else:
                held |= dict.fromkeys(filter(self._held, found.paths))
                met |= dict.fromkeys(name for name in found.paths if name not in held)
                marks += self._open((n for n in found.paths if n not in held), marks)
            notes = {name: self._generation.files[name].note for name in found.paths}
            noted |= {name: note for name, note in notes.items() if note}
        for hunk in request.hunks:
            marks += self._hunk(hunk)
        for text in request.reject:
            found = self._matches(text)
            marks += self._whole(found.paths, "rejected")
            met = {name: None for name in met if name not in found.paths}
        final = {(mark.path, mark.unit): mark for mark in marks}
        kept = without_edited(final.values(), self._log)
        decisions = Overlay(self._log, kept)
        return Asked(
            kept,
            [
                Skipped(name, self._held(name))
                for name in held
                if self._has("open", name, decisions)
            ],
            [Skipped(name, note) for name, note in noted.items()],
            [name for name in met if self._has("rejected", name, decisions)],
        )

    def _safe(self) -> list[Mark]:
        return self._open((name for name in self._generation.files if not self._held(name)), ())

    def _open(self, names: Iterable[str], asked: Iterable[Mark]) -> list[Mark]:
        """Accept what is open of these files, after what is asked for already."""
        decisions = Overlay(self._log, asked)
        files = [self._generation.files[name] for name in names]
        return [
            mark
            for file in files
            for mark in accept_open(file.path, self._generation.summary(file).units, decisions)
        ]

    def _held(self, name: str) -> str:
        return self._generation.summary(self._generation.files[name]).held

    def _has(self, choice: Choice, name: str, decisions: Decisions) -> bool:
        """Tell whether something of a file is decided so."""
        file = self._generation.files[name]
        return self._generation.summary(file).has(LETTERS[choice], file.path, decisions)

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
