"""Git's objects, read within a budget: names in the history, the tree of HEAD."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from dulwich.index import SerializedIndexEntry
from dulwich.objects import Commit, ShaFile, Tag, parse_tree

from snapshot.git_index import object_format
from snapshot.git_store import Store
from snapshot.patterns import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from snapshot.git_dir import Dir

MAX_PATHS: Final = 1000
"""Most withheld paths of a history that are listed."""

MAX_TREE_DEPTH: Final = 512

_TREE_MODE: Final = 0o040000

MAX_FILES: Final = 1_000_000
"""Most files of a tree that stand in for an index; crafted trees can name far more."""


@dataclass(slots=True)
class History:
    """Withheld names that the history shows."""

    paths: set[bytes] = field(default_factory=set[bytes])
    cut: bool = False


class Node(NamedTuple):
    """What is wanted of a commit."""

    tree: bytes
    parents: tuple[bytes, ...]


class TooManyFiles(Exception):
    """A tree names more than MAX_FILES files."""


class Objects:
    """The objects of one repository."""

    def __init__(self, folders: Sequence[Dir], hash_name: str) -> None:
        """`folders` are its `objects` folders, open as long as this is."""
        self._format = object_format(hash_name)
        self._store = Store(folders, self._format)

    def close(self) -> None:
        """Close the packs."""
        self._store.close()

    def commit(self, name: bytes) -> Node | None:
        """Read a commit, through tags; None when it is none or cannot be read."""
        try:
            found = self._parsed(name)
            for _ in range(8):  # tags of tags
                if not isinstance(found, Tag):
                    break
                found = self._parsed(found.object[1])
            if isinstance(found, Commit):
                return Node(bytes(found.tree), tuple(map(bytes, found.parents)))
        except Exception:  # a damaged or crafted object makes the reader raise anything
            return None
        return None

    def tree(self, name: bytes) -> list[tuple[bytes, int, bytes]]:
        """Read a tree's rows (name, mode, object); empty when it cannot be read."""
        try:
            return list(parse_tree(self._store.read(name).data, self._format.oid_length))
        except Exception:  # a damaged or crafted object makes the reader raise anything
            return []

    def _parsed(self, name: bytes) -> ShaFile:
        raw = self._store.read(name)
        return ShaFile.from_raw_string(raw.kind, raw.data, object_format=self._format)

    def files(self, commit: Node) -> Iterator[tuple[bytes, int, bytes]]:
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
    """Make index entries from HEAD's tree, for an index that cannot be read.

    Raises TooManyFiles.
    """
    commit = objects.commit(head)
    rows = sorted(islice(objects.files(commit), MAX_FILES + 1)) if commit else []
    if len(rows) > MAX_FILES:
        raise TooManyFiles
    return [
        SerializedIndexEntry(path, (0, 0), (0, 0), 0, 0, mode, 0, 0, 0, item, 0, 0)  # type: ignore[arg-type]  # dulwich has a type of its own for names
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
        commits -= 1
        if commits < 0 or time.monotonic() > deadline:
            history.cut = True
            break
        commit = objects.commit(waiting.popleft())
        if commit is None:
            continue
        history.cut = not _scan_tree(objects, commit, trees, history, deadline)
        fresh = [parent for parent in commit.parents if parent not in known]
        known.update(fresh)
        waiting.extend(fresh)
    return history


def _scan_tree(
    objects: Objects,
    commit: Node,
    seen: set[tuple[bytes, bytes]],
    history: History,
    deadline: float,
) -> bool:
    """Look at the trees of one commit that no other had; False when the budget is spent."""
    stack = [(b"", commit.tree, 0)]
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
