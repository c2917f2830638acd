"""Git's objects, read through dulwich within a budget: names in the history, the tree of HEAD."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dulwich.errors import ChecksumMismatch, NotTreeError, ObjectFormatException
from dulwich.index import SerializedIndexEntry
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Commit, Tag, parse_tree

from snapshot.git_index import object_format
from snapshot.patterns import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OBJECT_LIMIT: Final = 16 << 20
"""Largest loose object (inflated) that is read: no tree or commit is this large."""

MAX_PATHS: Final = 1000
"""Most withheld paths of a history that are listed."""

MAX_TREE_DEPTH: Final = 512

_TREE_MODE: Final = 0o040000
_READ_ERRORS: Final = (
    *(KeyError, ValueError, OSError, AssertionError, EOFError),
    *(ChecksumMismatch, NotTreeError, ObjectFormatException),
)
"""What damaged or missing objects make the reader raise (zlib's error is turned into these)."""


@dataclass(slots=True)
class History:
    """Withheld names that the history shows."""

    paths: set[bytes] = field(default_factory=set[bytes])
    cut: bool = False


class Objects:
    """The objects of one repository."""

    def __init__(self, folder: bytes, hash_name: str) -> None:
        """`folder` is the path of its `objects` folder."""
        self._format = object_format(hash_name)
        self._store = DiskObjectStore(
            folder.decode("utf-8", "surrogateescape"),
            object_format=self._format,
            loose_object_size_limit=OBJECT_LIMIT,
        )

    def close(self) -> None:
        """Close the packs."""
        self._store.close()

    def commit(self, name: bytes) -> Commit | None:
        """Read a commit, through tags; None when it is none or cannot be read."""
        try:
            found = self._store[name]  # type: ignore[index]
            for _ in range(8):  # tags of tags
                if not isinstance(found, Tag):
                    break
                found = self._store[found.object[1]]
        except _READ_ERRORS:
            return None
        return found if isinstance(found, Commit) else None

    def tree(self, name: bytes) -> list[tuple[bytes, int, bytes]]:
        """Read a tree's rows (name, mode, object); empty when it cannot be read."""
        try:
            _, raw = self._store.get_raw(name)  # type: ignore[arg-type]
            return list(parse_tree(raw, self._format.oid_length))
        except _READ_ERRORS:
            return []

    def files(self, commit: Commit) -> Iterator[tuple[bytes, int, bytes]]:
        """Walk a commit's tree: path, mode and object of everything that is no folder."""
        stack = [(b"", commit.tree, 0)]
        while stack:
            folder, name, depth = stack.pop()
            for part, mode, item in self.tree(name):
                if mode != _TREE_MODE:
                    yield folder + part, mode, item
                elif depth < MAX_TREE_DEPTH:
                    stack.append((folder + part + b"/", item, depth + 1))


def head_entries(objects: Objects, head: bytes) -> list[SerializedIndexEntry]:
    """Make index entries from HEAD's tree, for an index that cannot be read."""
    commit = objects.commit(head)
    rows = sorted(objects.files(commit)) if commit else []
    return [
        SerializedIndexEntry(path, (0, 0), (0, 0), 0, 0, mode, 0, 0, 0, item, 0, 0)  # type: ignore[arg-type]
        for path, mode, item in rows
    ]


def scan(objects: Objects, heads: Iterable[bytes], seconds: float, commits: int) -> History:
    """Look for withheld names in every tree that `heads` reach, newest first, within the budget."""
    history = History()
    deadline = time.monotonic() + seconds
    waiting = deque(dict.fromkeys(heads))
    known = set(waiting)
    trees: set[tuple[bytes, bytes]] = set()
    while waiting and not history.cut:
        commit = objects.commit(waiting.popleft())
        commits -= 1
        if commit is None:
            continue
        history.cut = commits < 0 or not _scan_tree(objects, commit, trees, history, deadline)
        fresh = [parent for parent in commit.parents if parent not in known]
        known.update(fresh)
        waiting.extend(fresh)
    return history


def _scan_tree(
    objects: Objects,
    commit: Commit,
    seen: set[tuple[bytes, bytes]],
    history: History,
    deadline: float,
) -> bool:
    """Look at the trees of one commit that no other had; False when the budget is spent."""
    stack = [(b"", bytes(commit.tree), 0)]
    while stack:
        folder, name, depth = stack.pop()
        if (folder, name) in seen:
            continue
        seen.add((folder, name))
        if time.monotonic() > deadline or len(history.paths) >= MAX_PATHS:
            return False
        for part, mode, item in objects.tree(name):
            path = folder + part
            if is_secret(path, mode == _TREE_MODE):
                history.paths.add(path)
            elif mode == _TREE_MODE and depth < MAX_TREE_DEPTH:
                stack.append((path + b"/", item, depth + 1))
    return True
