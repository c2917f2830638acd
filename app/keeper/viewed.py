"""Which changed files the user marked as viewed, each in one state of its contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from app.files import read_regular, write_atomic

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.review import ChangedFile

MAX_MARKS: Final = 100_000
"""Most files that are marked; beyond them the oldest marks go."""


class Viewed:
    """The marks of one session, on disk after each change. Not safe between threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marks: dict[str, str] = {}
        if path.exists():
            self._marks = msgspec.json.decode(read_regular(path), type=dict[str, str])

    def holds(self, name: str, file: ChangedFile) -> bool:
        """Tell whether the file was marked as it is now; a changed one is not."""
        return self._marks.get(name) == _state_of(file)

    def mark(self, name: str, file: ChangedFile, *, viewed: bool) -> None:
        """Mark a file in its present state, or take the mark away."""
        self._marks.pop(name, None)
        if viewed:
            self._marks[name] = _state_of(file)
        while len(self._marks) > MAX_MARKS:
            del self._marks[next(iter(self._marks))]
        write_atomic(self._path, msgspec.json.encode(self._marks))


def _state_of(file: ChangedFile) -> str:
    return " ".join((file.old_mode, file.mode, file.base, file.agent))
