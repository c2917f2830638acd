"""Fitting drafts together: which folders come and go with them, and the order of all steps.

Order: removals, the deepest first; folders that became empty; new folders, the outermost first;
files; links last, so that nothing is ever written through one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .writeback_ops import Op, Post
from .writeback_tree import NOTHING, PERMISSIONS, Blocked, Entry, Tree, ancestors, split_last

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Draft:
    """One path of one wish: what is there and what shall be."""

    path: bytes
    pre: Entry
    post: Post
    mergeable: bool = False
    implied: bool = False
    """The base knew no folder here: what is there must be one that this merge empties."""

    @property
    def removes(self) -> bool:
        """Whether what is there has to go before anything new can come (folders included)."""
        if self.pre.kind == "none":
            return False
        swaps_folder = "dir" in (self.pre.kind, self.post.entry.kind)
        return self.post.entry.kind == "none" or swaps_folder

    @property
    def creates(self) -> bool:
        """Whether something is there afterwards."""
        return self.post.entry.kind != "none"


class Layout:
    """The steps of all active wishes; `refused` says which wishes do not fit, and why."""

    def __init__(
        self,
        tree: Tree,
        drafts: Mapping[int, Sequence[Draft]],
        gone_dirs: Collection[bytes],
        mask: int,
    ) -> None:
        self.tree = tree
        self.drafts = drafts
        self.gone_dirs = gone_dirs
        self.mask = mask
        self.refused: dict[int, str] = {}
        self.removed: dict[bytes, tuple[Entry, int]] = {}
        """Paths that go, with what they are and the wish they belong to."""
        self.made: set[bytes] = set()
        """Folders that come without being wished for by name."""
        self.created: dict[bytes, Draft] = {}
        self._entries: dict[bytes, Entry] = {}
        self._place()

    def ops(self) -> list[Op]:
        """Return the steps in their order."""
        removals = sorted(self.removed, key=_depth, reverse=True)
        files = [path for path in removals if self.removed[path][0].kind != "dir"]
        folders = [path for path in removals if self.removed[path][0].kind == "dir"]
        steps = [self._removal(path) for path in (*files, *folders)]
        new_dirs = [self._new_dir(path) for path in self.made]
        new_dirs += [self._creation(n, d) for n, d in self._each() if d.post.entry.kind == "dir"]
        steps += sorted(new_dirs, key=lambda op: _depth(op.path))
        for kind in ("file", "link"):
            wanted = [(n, d) for n, d in self._each() if d.post.entry.kind == kind]
            steps += [self._creation(number, draft) for number, draft in wanted]
        return steps

    def _each(self) -> Iterator[tuple[int, Draft]]:
        for number, drafts in self.drafts.items():
            for draft in drafts:
                yield number, draft

    # What goes and comes

    def _place(self) -> None:
        for number, draft in self._each():
            if draft.creates and self.created.setdefault(draft.path, draft) is not draft:
                self.refused[number] = "another accepted change comes to the same path"
        for number, draft in self._each():
            if draft.removes and draft.pre.kind != "dir":
                self.removed[draft.path] = (draft.pre, number)
        self._place_folders()
        for number, draft in self._each():
            if draft.creates:
                self._place_parents(number, draft.path)

    def _place_folders(self) -> None:
        """Let folders go that are empty once the removals are done, the deepest first."""
        wanted = {d.path: n for n, d in self._each() if d.removes and d.pre.kind == "dir"}
        implied = {d.path for _, d in self._each() if d.implied}
        needed = {above for path in self.created for above in ancestors(path)}
        optional = {path for path in self.gone_dirs if path not in needed} - wanted.keys()
        for path in sorted({*wanted, *optional}, key=_depth, reverse=True):
            left, gone = self._contents(path)
            if path in wanted and (left or (path in implied and not gone)):
                self.refused[wanted[path]] = (
                    "the folder holds files that stay" if left else "there is a folder in its place"
                )
            elif path in wanted or (gone and not left):
                self.removed[path] = (self._look(path), wanted.get(path, -1))

    def _contents(self, path: bytes) -> tuple[int, int]:
        """Return how many names of a folder stay and how many go."""
        try:
            names = self.tree.names(path)
        except Blocked:
            return 0, 0
        gone = sum(path + b"/" + name in self.removed for name in names)
        return len(names) - gone, gone

    def _place_parents(self, number: int, path: bytes) -> None:
        """See to it that every folder above a new entry is there, or refuse the wish."""
        for above in ancestors(path):
            draft = self.created.get(above)
            if draft is not None and draft.post.entry.kind != "dir":
                self.refused[number] = "its folder becomes a file"
                return
            entry = self._look(above)
            if above in self.removed or entry.kind == "none":
                if draft is None:
                    self.made.add(above)
            elif entry.kind != "dir":
                self.refused[number] = f"its folder is a {entry.kind} now"
                return

    def _look(self, path: bytes) -> Entry:
        if path not in self._entries:
            self._entries[path] = self.tree.look(path)
        return self._entries[path]

    # Steps

    def _removal(self, path: bytes) -> Op:
        entry, number = self.removed[path]
        return Op(path, entry, NOTHING, b"", self._lasting(path), number)

    def _new_dir(self, path: bytes) -> Op:
        entry = Entry("dir", PERMISSIONS & ~self.mask)
        return Op(path, NOTHING, entry, b"", self._lasting(path), -1)

    def _creation(self, number: int, draft: Draft) -> Op:
        pre = NOTHING if draft.removes else draft.pre
        return Op(
            draft.path,
            pre,
            draft.post.entry,
            draft.post.content,
            self._lasting(draft.path),
            number,
            draft.post.exactly,
            draft.mergeable,
        )

    def _lasting(self, path: bytes) -> bytes:
        """Return the nearest folder above that is there before and after."""
        folder, _ = split_last(path)
        while folder and (folder in self.removed or self._look(folder).kind != "dir"):
            folder, _ = split_last(folder)
        return folder


def _depth(path: bytes) -> tuple[int, bytes]:
    return path.count(b"/"), path
