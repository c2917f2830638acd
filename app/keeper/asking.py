"""What a user's words ask of a merge: paths, patterns and names of hunks, made marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from app.errors import AppError
from app.keeper.deciding import without_edited
from snapshot.review import accept_safe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from app.keeper.generation import Generation
    from app.protocol import MergeRequest
    from snapshot.decisions import Choice, DecisionLog, Mark
    from snapshot.review import ChangedFile


def matches(text: str, paths: Iterable[str]) -> list[str]:
    """Return the paths that `text` means, in their order; a rename goes by its new path.

    A literal path first, a gitignore pattern second. Raises AppError `usage`.
    """
    known = list(paths)
    literal = text.removeprefix("./")
    if literal in known:
        return [literal]
    try:
        spec = GitIgnoreSpec.from_lines([text])
    except ValueError as error:
        raise AppError("usage", f"'{text}' is neither a path nor a pattern: {error}.") from error
    return [path for path in known if spec.match_file(path)]


class Asking:
    """Reads requests against a generation; `session` is named in hints."""

    def __init__(self, session: str, generation: Generation, log: DecisionLog) -> None:
        self._session = session
        self._generation = generation
        self._log = log

    def marks(self, request: MergeRequest) -> list[Mark]:
        """Return the marks that a request adds to the decisions on record; later ones win.

        Raises AppError `not-found`, `usage`.
        """
        marks: list[Mark] = []
        if request.accept_safe:
            for file in self._generation.files.values():  # all lines at once would be too much
                marks += accept_safe([self._generation.review(file)], self._log)
        for text in request.accept:
            marks += self._decided(text, "accepted")
        for hunk in request.hunks:
            marks += self._hunk(hunk)
        for text in request.reject:
            marks += self._decided(text, "rejected")
        final = {(mark.path, mark.unit): mark for mark in marks}
        return without_edited(final.values(), self._log)

    def _decided(self, text: str, decision: Choice) -> list[Mark]:
        found = matches(text, self._generation.files)
        if not found:
            raise AppError(
                "not-found",
                f"No changed path matches '{text}'.",
                f"See the paths: cloche changes {self._session}",
            )
        files = (self._generation.files[name] for name in found)
        return [mark for file in files for mark in self._generation.review(file).decide(decision)]

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
