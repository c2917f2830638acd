"""The commits that only an agent has: who, when and what each changed, read with bounds.

Objects are those of the quarantine and of the user's repository; `git_store` bounds every one of
them, `git_trees` and this module what is read in all. What a bound cuts is told, never left out in
silence.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .bundle import BundleRefused, refused
from .git_trees import BLOB, COMMIT, MODULE, Difference, Trees, changed, entry_of
from .manifest import Entry
from .mirror import AgentEntry
from .patterns import is_secret
from .renames import MAX_SIMILAR, MAX_SIMILAR_BYTES, Renames
from .review_file import FileReview

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .git_store import Store
    from .review_sides import ChangedFile
    from .risk import Tier

MAX_COMMITS: Final = 1000
MAX_FILES: Final = 2000
"""Changed paths that are listed of one commit."""

MAX_MESSAGE: Final = 16 << 10

MAX_PARENTS: Final = 256
"""Of one commit; the largest merge in Linux's history has 66."""

MAX_HEAD: Final = 1 << 20
"""Bytes of a commit before its message: a merge of signed tags carries all of these."""

COUNT_BYTES: Final = 64 << 20
COUNT_S: Final = 10.0
"""Bytes and seconds for counting changed lines; what is left then has no numbers."""


@dataclass(frozen=True, slots=True)
class CommitFile:
    """One path that a commit changed against its first parent."""

    path: bytes
    change: str
    """`A` added, `M` modified, `D` deleted."""
    submodule: bool = False
    added: int | None = None
    removed: int | None = None
    """Changed lines; None where they were not counted or there are none to count."""


@dataclass(frozen=True, slots=True)
class AgentCommit:
    """One commit of the agent; its texts are the agent's, not sanitised."""

    id: str
    parents: tuple[str, ...]
    author: bytes
    at: int
    """Author's time in unix seconds, as the agent wrote it."""
    message: bytes
    files: tuple[CommitFile, ...]
    cut: bool
    """Whether it changed more paths than are listed."""
    withheld: tuple[bytes, ...]
    """Paths that were withheld from the agent, or look like secrets, also beyond the listed."""


@dataclass(frozen=True, slots=True)
class CountedFile:
    """One file of a change between two commits, with what its review says."""

    file: ChangedFile
    counted: bool = False
    """False where a bound or a damaged object forbade to read it: the rest says nothing then."""
    added: int = 0
    removed: int = 0
    binary: bool = False
    risk: str = ""
    tier: Tier = ""


@dataclass(frozen=True, slots=True)
class CommitChange:
    """What changed between two commits, in path order."""

    files: tuple[CountedFile, ...]
    left_out: int = 0
    """Changed paths beyond those that are listed."""


class Budget:
    """How much may still be read of files' contents."""

    def __init__(self, room: int = COUNT_BYTES, seconds: float = COUNT_S) -> None:
        self._room = room
        self._deadline = time.monotonic() + seconds

    def take(self, size: int) -> None:
        """Note that something was read."""
        self._room -= size

    @property
    def is_left(self) -> bool:
        """Whether another file may be read."""
        return self._room > 0 and time.monotonic() < self._deadline


class CommitReader:
    """Reads commits that nobody but the agent has seen."""

    def __init__(
        self,
        store: Store,
        withheld: Collection[bytes] = (),
        known: Collection[bytes] = (),
        budget: Budget | None = None,
    ) -> None:
        self.store = store
        self._trees = Trees(store)
        self._withheld = tuple(withheld)
        self._known = frozenset(known)
        self._budget = Budget() if budget is None else budget

    # Commits

    def commits(self, heads: Sequence[bytes]) -> list[AgentCommit]:
        """Return the new commits, each after its children.

        Raises:
            BundleRefused: there are too many, or one of them is damaged or crafted.

        """
        waiting, seen, found = deque(dict.fromkeys(heads)), set(self._known), list[AgentCommit]()
        while waiting:
            name = waiting.popleft()
            if name in seen:
                continue
            seen.add(name)
            if len(found) >= MAX_COMMITS:
                raise refused(f"there are more than {MAX_COMMITS} new ones")
            commit, parents = self._commit(name)
            found.append(commit)
            waiting += parents
        return found

    def _commit(self, name: bytes) -> tuple[AgentCommit, list[bytes]]:
        parents, author, at, message = _parts(self._trees.read(name, COMMIT))
        found = self._trees.between(parents[0] if parents else None, name)
        listed = found[:MAX_FILES]
        withheld = [one.path for one in found if self._is_withheld(one.path)]
        commit = AgentCommit(
            name.decode(),
            tuple(parent.decode() for parent in parents),
            author,
            at,
            message,
            tuple(map(self._file, listed)),
            len(found) > len(listed),
            tuple(withheld[:MAX_FILES]),
        )
        return commit, parents

    def _file(self, one: Difference) -> CommitFile:
        review = None if one.submodule else self._review(changed(one))
        if review is None or not review.by_lines:
            return CommitFile(one.path, one.change, one.submodule)
        return CommitFile(one.path, one.change, False, review.added, review.removed)

    def _is_withheld(self, path: bytes) -> bool:
        beneath = any(path == one or path.startswith(one + b"/") for one in self._withheld)
        return beneath or is_secret(path, False)

    # What changed

    def change(self, old: bytes | None, new: bytes) -> CommitChange:
        """Return what changed from one commit (None: from nothing) to another.

        Raises:
            BundleRefused: an object is damaged, or is not there.

        """
        found = self._trees.between(old, new)
        listed = found[:MAX_FILES]
        files = tuple(map(self._counted, self._with_renames(listed)))
        return CommitChange(files, len(found) - len(listed))

    def _counted(self, file: ChangedFile) -> CountedFile:
        review = self._review(file)
        if review is None:
            return CountedFile(file)
        numbers = (review.added, review.removed, review.binary, review.risk, review.tier)
        return CountedFile(file, True, *numbers)

    def content(self, name: bytes) -> bytes:
        """Return a content by the name that a `ChangedFile` gives it.

        Raises:
            BundleRefused: it is damaged, too large or not there.

        """
        if name.startswith(MODULE):
            return b"Subproject commit " + name.removeprefix(MODULE) + b"\n"
        return self._trees.read(name, BLOB)

    def _review(self, file: ChangedFile) -> FileReview | None:
        """Compare both sides of a file, where there is room for it and both can be read."""
        sides = [self._at_hand(name) if name else b"" for name in (file.base, file.agent)]
        if None in sides:
            return None
        return FileReview(file, *sides)

    def _at_hand(self, name: str) -> bytes | None:
        """Return a content while the budget lasts; None for one that cannot be read."""
        if not self._budget.is_left:
            return None
        try:
            data = self.content(name.encode())
        except BundleRefused:
            return None
        self._budget.take(len(data))
        return data

    def _with_renames(self, found: Sequence[Difference]) -> list[ChangedFile]:
        removed = {one.path: entry_of(one.was) for one in found if one.was and one.now is None}
        added = {one.path: entry_of(one.now) for one in found if one.now and one.was is None}
        if 0 < len(removed) <= MAX_SIMILAR and 0 < len(added) <= MAX_SIMILAR:
            removed, added = self._measured(removed), self._measured(added)
        renames = Renames(removed, {path: AgentEntry(entry) for path, entry in added.items()})
        renames.match_contents()
        renames.match_lines(self._at_hand)
        sides = {one.path: one for one in found}
        gone = set(renames.pairs.values())
        return [
            changed(one, sides[renames.pairs[one.path]])
            if one.path in renames.pairs
            else changed(one)
            for one in found
            if one.path not in gone
        ]

    def _measured(self, entries: dict[bytes, Entry]) -> dict[bytes, Entry]:
        """Return entries with the sizes of their contents, which trees do not tell."""
        sized: dict[bytes, Entry] = {}
        for path, entry in entries.items():
            data = self._at_hand(entry.digest) if entry.kind == "file" else b""
            size = MAX_SIMILAR_BYTES + 1 if data is None else len(data)
            sized[path] = Entry(entry.kind, entry.mode, size, digest=entry.digest)
        return sized


def _parts(data: bytes) -> tuple[list[bytes], bytes, int, bytes]:
    """Return parents, author, author's time and message of a commit. Raises BundleRefused."""
    head, _, message = data.partition(b"\n\n")
    if len(head) > MAX_HEAD:
        raise refused(f"what stands before the message of one has more than {MAX_HEAD} bytes")
    fields = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    parents = [value for key, value in fields if key == b"parent"]
    if len(parents) > MAX_PARENTS:
        raise refused(f"one of them has more than {MAX_PARENTS} parents")
    author = next((value for key, value in fields if key == b"author"), b"")
    who, _, when = author.rpartition(b"> ")
    seconds = when.split(b" ")[0]
    at = int(seconds[:12]) if seconds.isdigit() else 0
    return parents, who[:MAX_MESSAGE] + b">" if who else b"", at, message[:MAX_MESSAGE]
