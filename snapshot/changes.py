"""The agent's net change: base tree against agent tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from snapshot.mirror import in_git
from snapshot.nested import Nested
from snapshot.paths import folders_above
from snapshot.renames import Renames

if TYPE_CHECKING:
    from collections.abc import Callable

    from snapshot.ignore import IgnoreRules
    from snapshot.manifest import Entry, Manifest
    from snapshot.mirror import AgentEntry, AgentTree

ChangeKind = Literal["added", "modified", "deleted", "renamed", "mode", "type"]

WITHHELD: Final = "the real path was withheld from the agent"
"""Note of a change at a path that the snapshot left out: what is really there is unknown to it."""

_GIT_CHATTER: Final = (b"index", b"logs", b"COMMIT_EDITMSG", b"FETCH_HEAD", b"index.lock")
"""What git writes without anything having happened (a mere `git status` renews the index)."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """One changed path; a rename is named by its new path.

    `base` is None for what was added, `agent` for what was deleted. A non-empty `note` says why the
    change can be shown but not merged. Folders are listed where nothing else shows them: an added
    or deleted empty folder, a folder in a file's place or the reverse, a new nested repository.
    """

    path: bytes
    kind: ChangeKind
    base: Entry | None = None
    agent: Entry | None = None
    old_path: bytes = b""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """All changes in path order."""

    changes: tuple[Change, ...] = ()
    ignored: int = 0
    """Changed paths that the base's rules hide."""
    git_changed: bool = False
    """Something inside a `.git` differs (commits, refs, config); never listed as files."""


def compare(
    base: Manifest,
    agent: AgentTree,
    ignore: IgnoreRules | None = None,
    read: Callable[[str], bytes | None] | None = None,
) -> ChangeSet:
    """Find what the agent changed.

    `read(digest)` gives a content where it is at hand (base or agent), for renames of files that
    were edited as well; without it only renames of equal content and of folders are found.
    """
    task = _Comparison(base, agent, ignore)
    task.gather()
    renames = Renames(task.removed, task.added)
    renames.follow_folders()
    renames.match_contents()
    if read is not None:
        renames.match_lines(read)
    changes = sorted(task.changes + _settled(renames, task), key=_order)
    return ChangeSet(tuple(changes), task.ignored, task.git_changed)


def _order(change: Change) -> bytes:
    return change.path


class _Comparison:
    """Sorts every touched path into changes, additions and removals."""

    def __init__(self, base: Manifest, agent: AgentTree, ignore: IgnoreRules | None) -> None:
        self._base, self._agent, self._ignore = base, agent, ignore
        self._holding = _folders_that_hold(agent)
        self._nested = Nested(base, agent, ignore)
        self.changes: list[Change] = []
        self.removed: dict[bytes, Entry] = {}
        self.added: dict[bytes, AgentEntry] = {}
        self.ignored = 0
        self.git_changed = False

    def gather(self) -> None:
        """Look at every path that the overlay touched or hid."""
        for path, item in self._agent.present.items():
            old = self._base.get(path)
            differs = old is None or not _same(old, item.entry)
            if differs and self._is_listed(path, item.entry):
                self._touched(path, old, item)
        for path, note in self._nested.notes.items():
            entry = self._agent.present[path].entry
            self.changes.append(Change(path, "added", None, entry, b"", note))
        for path in self._agent.gone:
            old = self._base[path]
            empty_folder = old.kind == "dir" and not any(self._base.under(path))
            if self._is_listed(path, old) and (old.kind != "dir" or empty_folder):
                self.removed[path] = old

    def _is_listed(self, path: bytes, entry: Entry) -> bool:
        """Whether a changed path is shown; if not, it is counted."""
        if in_git(path):
            self.git_changed |= entry.kind != "dir" and not _is_chatter(path)
            return False
        if self._ignore is None or not self._ignore.ignored(path, entry.kind == "dir"):
            return True
        self.ignored += entry.kind != "dir"
        return False

    def _touched(self, path: bytes, old: Entry | None, item: AgentEntry) -> None:
        new = item.entry
        repository = self._nested.above(path)
        if repository is not None:
            if new.kind != "dir":
                self._nested.count(repository)
        elif old is None:
            if new.kind != "dir" or path not in self._holding:
                self.added[path] = item
        elif old.kind != new.kind:
            self._add("type", path, old, item)
        elif _content(old) != _content(new) or item.note:
            self._add("modified", path, old, item)
        else:
            self._add("mode", path, old, item)

    def _add(self, kind: ChangeKind, path: bytes, old: Entry, item: AgentEntry) -> None:
        self.changes.append(Change(path, kind, old, item.entry, b"", self.note(path, item)))

    def note(self, path: bytes, item: AgentEntry | None) -> str:
        """Say why a change cannot be merged, or nothing."""
        if item is not None and item.note:
            return item.note
        withheld = self._ignore is not None and self._ignore.was_withheld(path)
        return WITHHELD if withheld else ""


def _settled(renames: Renames, task: _Comparison) -> list[Change]:
    """Make changes of the pairs and of what has no partner."""
    found = [
        Change(
            new,
            "renamed",
            task.removed[old],
            task.added[new].entry,
            old,
            task.note(new, task.added[new]),
        )
        for new, old in renames.pairs.items()
    ]
    for path in renames.left_added():
        item = task.added[path]
        found.append(Change(path, "added", None, item.entry, b"", task.note(path, item)))
    for path in renames.left_removed():
        found.append(Change(path, "deleted", task.removed[path], None, b"", ""))
    return found


def _folders_that_hold(agent: AgentTree) -> set[bytes]:
    """Give the folders that hold something of what the overlay touched or moved."""
    found: set[bytes] = set()
    for path in agent.present:
        for folder in folders_above(path):
            if folder in found:
                break
            found.add(folder)
    return found


def _same(old: Entry, new: Entry) -> bool:
    if old.kind != new.kind:
        return False
    return old.kind == "dir" or (_content(old) == _content(new) and old.git_mode == new.git_mode)


def _content(entry: Entry) -> object:
    """Give what makes two contents equal; a file that was not fetched equals nothing."""
    if entry.kind == "file":
        return entry.digest or object()
    return entry.target


def _is_chatter(path: bytes) -> bool:
    inside = (b"/" + path).rpartition(b"/.git/")[2]
    return inside.partition(b"/")[0] in _GIT_CHATTER
