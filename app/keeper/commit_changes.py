"""What the agent's commits changed, one by one or a whole branch: read from the quarantine.

Only commits of the last look are answered for, and only contents that a git object has; nothing
here writes, and no git runs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from app.errors import AppError
from app.protocol import FileChange
from app.protocol_commits import CommitChange, ContentPart
from app.wire_text import to_text
from snapshot.git_import import Quarantine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.protocol_commits import CommitList
    from snapshot.git_commits import CountedFile
    from snapshot.git_import import UserRepository

PART: Final = 512 << 10
"""Bytes of a content in one answer, whose base64 must fit into one line."""

_NAME: Final = re.compile(r"(module-)?[0-9a-f]{40}")


class CommitChanges:
    """Reads changes between commits and the contents of their files; not for two threads at once.

    The last change and the last content are kept: clients ask for both in parts.
    """

    def __init__(self, quarantine: Path, user: Callable[[], UserRepository]) -> None:
        self._quarantine = quarantine
        self._user = user
        self._change: tuple[tuple[str, str], CommitChange] | None = None
        self._content: tuple[str, bytes] | None = None

    def forget(self) -> None:
        """Forget what was read: the quarantine holds something else now."""
        self._change = self._content = None

    def change(self, found: CommitList, commit: str, *, whole: bool) -> CommitChange:
        """Return what a commit changed, or with `whole` all that led to it.

        A merge is compared with its first parent. Raises AppError `not-found` for a commit that is
        not listed, BundleRefused for a damaged object.
        """
        known = {one.id: one for one in found.commits}
        if commit not in known:
            text = "The agent has no such commit."
            raise AppError("not-found", text, f"List them: cloche commits {found.session}")
        parents = known[commit].parents
        base = beginning(found, commit) if whole else parents[0] if parents else ""
        if self._change is None or self._change[0] != (base, commit):
            self._change = (base, commit), self._read(base, commit)
        return self._change[1]

    def _read(self, base: str, commit: str) -> CommitChange:
        with self._opened().reader(self._user()) as reader:
            found = reader.change(base.encode() or None, commit.encode())
        files = tuple(map(_wire, found.files))
        uncounted = sum(not one.counted for one in found.files)
        return CommitChange(commit, base, files, found.left_out, uncounted)

    def content(self, name: str, start: int) -> ContentPart:
        """Return a part of a content by the name that a change gives it.

        Raises AppError `not-found` for what is no such name, BundleRefused where it cannot be read.
        """
        if not _NAME.fullmatch(name):
            raise AppError("not-found", "There is no such content.")
        if self._content is None or self._content[0] != name:
            with self._opened().reader(self._user()) as reader:
                self._content = name, reader.content(name.encode())
        data = self._content[1]
        return ContentPart(data[max(0, start) : max(0, start) + PART], len(data))

    def _opened(self) -> Quarantine:
        if not self._quarantine.is_dir():
            raise AppError(
                "not-found",
                "The commits of the last look are not there any more.",
                "Look again: cloche commits ID",
            )
        return Quarantine(self._quarantine)


def beginning(found: CommitList, commit: str) -> str:
    """Return what the first parents of a commit come from, empty where that is nothing."""
    known = {one.id: one.parents for one in found.commits}
    seen: set[str] = set()
    at = commit
    while at in known and at not in seen:
        seen.add(at)
        at = known[at][0] if known[at] else ""
    return at


def _wire(one: CountedFile) -> FileChange:
    file = one.file
    return FileChange(
        path=to_text(file.path),
        kind=file.kind,
        old_path=to_text(file.old_path or b""),
        mode=file.mode,
        old_mode=file.old_mode,
        added=one.added,
        removed=one.removed,
        binary=one.binary,
        risk=one.risk,
        tier=one.tier,
        base=file.base,
        agent=file.agent,
    )
