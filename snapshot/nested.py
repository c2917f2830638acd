"""Repositories that the agent made inside of the workspace: each is one entry of the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from snapshot.mirror import in_git
from snapshot.paths import folders_above

if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapshot.ignore import IgnoreRules
    from snapshot.manifest import Manifest
    from snapshot.mirror import AgentTree

_GIT: Final = b"/.git"


class Nested:
    """New folders with a `.git` of their own (a clone, `git init`, a worktree), counted.

    git itself takes such a folder for one thing, and merging its files without its `.git` would
    make something else of it. A folder that the base knows is none of them, even if the agent
    made a repository of it: what it changed there is changed. One that moved is no new one.
    """

    def __init__(self, base: Manifest, agent: AgentTree, ignore: IgnoreRules | None) -> None:
        self._files: dict[bytes, int] = {}
        if any(path.endswith(_GIT) for path in agent.gone):
            return
        found = (path[: -len(_GIT)] for path in agent.present if path.endswith(_GIT))
        for folder in sorted(found):
            hidden = ignore is not None and ignore.ignored(folder, True)
            known = base.get(folder) is not None or in_git(folder)
            if not known and not hidden and self.above(folder) is None:
                self._files[folder] = 0

    def above(self, path: bytes) -> bytes | None:
        """Return the new repository that holds a path, None where none does."""
        if not self._files:
            return None
        return next((folder for folder in folders_above(path) if folder in self._files), None)

    def count(self, folder: bytes) -> None:
        """Count one file of a new repository."""
        self._files[folder] += 1

    @property
    def notes(self) -> Mapping[bytes, str]:
        """What to say of each, by its path."""
        return {folder: _note(count) for folder, count in self._files.items()}


def _note(files: int) -> str:
    return f"nested repository, {files} {'file' if files == 1 else 'files'}: cloche cp copies it"
