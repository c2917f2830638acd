"""The commits that only an agent has: who, when and what each changed, read with bounds.

Objects are those of the quarantine and of the user's repository; `git_store` bounds every one of
them, and what is read in all is bounded here. What a bound cuts is told, never left out in silence.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dulwich.objects import parse_tree

from .aspects import EXECUTABLE, FILE, FOLDER, LINK
from .bundle import BundleRefused, refused
from .manifest import Entry
from .mirror import AgentEntry
from .names import NameRefused, split_path
from .patterns import is_secret
from .renames import MAX_SIMILAR, MAX_SIMILAR_BYTES, Renames
from .review_file import ChangedFile, FileReview
from .safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from .git_store import Store
    from .review_file import Kind
    from .risk import Tier

MAX_COMMITS: Final = 1000
MAX_FILES: Final = 2000
"""Changed paths that are listed of one commit."""

MAX_ROWS: Final = 1_000_000
"""Rows of trees that are read in all."""

MAX_MESSAGE: Final = 16 << 10

MAX_PARENTS: Final = 256
"""Of one commit; the largest merge in Linux's history has 66."""

MAX_HEAD: Final = 1 << 20
"""Bytes of a commit before its message: a merge of signed tags carries all of these."""

MAX_PATHS: Final = 128 << 20
"""Bytes of all changed paths: in a deep folder a path has many times the bytes of its row."""

COUNT_BYTES: Final = 64 << 20
COUNT_S: Final = 10.0
"""Bytes and seconds for counting changed lines; what is left then has no numbers."""

SUBMODULE: Final = "160000"
_COMMIT, _TREE, _BLOB = 1, 2, 3
_TREES: Final = 0o040000
_MODULE: Final = b"module-"
"""Begins the name of a submodule's content, which is one line about the commit it points to."""

_MODES: Final = {0o040000: FOLDER, 0o120000: LINK, 0o160000: SUBMODULE}


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


@dataclass(frozen=True, slots=True)
class _Difference:
    """A path that differs between two trees: mode and object of either side."""

    path: bytes
    was: tuple[int, bytes] | None
    now: tuple[int, bytes] | None

    @property
    def change(self) -> str:
        return "A" if self.was is None else "D" if self.now is None else "M"

    @property
    def submodule(self) -> bool:
        return any(side is not None and _mode(side) == SUBMODULE for side in (self.was, self.now))


def _mode(side: tuple[int, bytes]) -> str:
    """Return a tree's mode as reviews name them; old repositories hold 100664 and the like."""
    return _MODES.get(side[0], EXECUTABLE if side[0] & 0o100 else FILE)


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
        self._withheld = tuple(withheld)
        self._known = frozenset(known)
        self._rows = MAX_ROWS
        self._paths = MAX_PATHS
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
        data = self._read(name, _COMMIT)
        head, _, message = data.partition(b"\n\n")
        if len(head) > MAX_HEAD:
            raise refused(f"what stands before the message of one has more than {MAX_HEAD} bytes")
        fields = [line.partition(b" ")[::2] for line in head.split(b"\n")]
        parents = [value for key, value in fields if key == b"parent"]
        if len(parents) > MAX_PARENTS:
            raise refused(f"one of them has more than {MAX_PARENTS} parents")
        author = next((value for key, value in fields if key == b"author"), b"")
        who, _, when = author.rpartition(b"> ")
        found = self._sorted(parents[0] if parents else None, name)
        listed = found[:MAX_FILES]
        withheld = [one.path for one in found if self._is_withheld(one.path)]
        seconds = when.split(b" ")[0]
        commit = AgentCommit(
            name.decode(),
            tuple(parent.decode() for parent in parents),
            who[:MAX_MESSAGE] + b">" if who else b"",
            int(seconds[:12]) if seconds.isdigit() else 0,
            message[:MAX_MESSAGE],
            tuple(map(self._file, listed)),
            len(found) > len(listed),
            tuple(withheld[:MAX_FILES]),
        )
        return commit, parents

    def _file(self, one: _Difference) -> CommitFile:
        review = None if one.submodule else self._review(_changed(one))
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
        found = self._sorted(old, new)
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
        if name.startswith(_MODULE):
            return b"Subproject commit " + name.removeprefix(_MODULE) + b"\n"
        return self._read(name, _BLOB)

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

    def _with_renames(self, found: Sequence[_Difference]) -> list[ChangedFile]:
        removed = {one.path: _entry(one.was) for one in found if one.was and one.now is None}
        added = {one.path: _entry(one.now) for one in found if one.now and one.was is None}
        if 0 < len(removed) <= MAX_SIMILAR and 0 < len(added) <= MAX_SIMILAR:
            removed, added = self._measured(removed), self._measured(added)
        renames = Renames(removed, {path: AgentEntry(entry) for path, entry in added.items()})
        renames.match_contents()
        renames.match_lines(self._at_hand)
        sides = {one.path: one for one in found}
        gone = set(renames.pairs.values())
        return [
            _changed(one, sides[renames.pairs[one.path]])
            if one.path in renames.pairs
            else _changed(one)
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

    # Trees

    def _sorted(self, old: bytes | None, new: bytes) -> list[_Difference]:
        return sorted(self._differences(old, new), key=lambda one: one.path)

    def _differences(self, old: bytes | None, new: bytes) -> Iterator[_Difference]:
        """Yield what differs between the trees of two commits; folders are entered there only."""
        before = None if old is None else self._tree_of(old)
        stack: list[tuple[bytes, bytes | None, bytes | None]] = [(b"", before, self._tree_of(new))]
        while stack:
            folder, left, right = stack.pop()
            were, are = self._tree(left), self._tree(right)
            for part in sorted(were.keys() | are.keys()):
                was, now = were.get(part), are.get(part)
                if was == now:
                    continue
                path = folder + part
                self._check(path, now)
                self._paths -= len(path)
                if self._paths < 0:
                    raise refused(f"their changed paths have more than {MAX_PATHS} bytes")
                folders = [side[1] if side and side[0] == _TREES else None for side in (was, now)]
                if any(folders):
                    stack.append((path + b"/", folders[0], folders[1]))
                plain = [side if side and side[0] != _TREES else None for side in (was, now)]
                if any(plain):
                    yield _Difference(path, plain[0], plain[1])

    def _tree_of(self, name: bytes) -> bytes:
        data = self._read(name, _COMMIT)
        return data.split(b"\n", 1)[0].removeprefix(b"tree ")

    def _tree(self, name: bytes | None) -> dict[bytes, tuple[int, bytes]]:
        if name is None:
            return {}
        data = self._read(name, _TREE)
        try:
            rows = list(parse_tree(data, 20))
        except Exception as error:  # the parser raises anything for a crafted tree
            raise refused("a tree is damaged") from error
        self._rows -= len(rows)
        if self._rows < 0:
            raise refused(f"their trees have more than {MAX_ROWS} rows")
        return {part: (mode, item) for part, mode, item in rows}

    @staticmethod
    def _check(path: bytes, now: tuple[int, bytes] | None) -> None:
        if now is None:
            return
        try:
            split_path(path)
        except NameRefused as error:
            raise refused(f"in one of them {error}") from error

    def _read(self, name: bytes, kind: int) -> bytes:
        try:
            found = self.store.read(name)
        except Exception as error:  # a damaged or crafted object makes the reader raise anything
            shown = safe_line(name.decode(errors="replace")).text
            raise refused(f"the object {shown} is not there") from error
        if found.kind != kind:
            raise refused("an object is of another kind than it must be")
        return found.data


def _entry(side: tuple[int, bytes] | None) -> Entry:
    """Return a side as renames are found by: a link or submodule is no file to them."""
    assert side is not None
    plain = _mode(side) in (FILE, EXECUTABLE)
    return Entry("file" if plain else "special", side[0] & 0o777, 1, digest=side[1].decode())


def _changed(one: _Difference, old: _Difference | None = None) -> ChangedFile:
    """Return a difference as reviews take it; `old` is where a renamed file was."""
    was = one.was if old is None else old.was
    mode, old_mode = _shown_mode(one.now), _shown_mode(was)
    return ChangedFile(
        path=one.path,
        kind="renamed" if old is not None else _kind(was, one.now),
        old_path=None if old is None else old.path,
        mode=mode,
        old_mode=old_mode,
        base=_content_name(was),
        agent=_content_name(one.now),
    )


def _kind(was: tuple[int, bytes] | None, now: tuple[int, bytes] | None) -> Kind:
    if was is None:
        return "added"
    if now is None:
        return "deleted"
    if was[1] == now[1]:
        return "mode"
    kinds = {FILE: "file", EXECUTABLE: "file"}
    before, after = _mode(was), _mode(now)
    return "modified" if kinds.get(before, before) == kinds.get(after, after) else "type"


def _shown_mode(side: tuple[int, bytes] | None) -> str:
    """Return the mode of a side; a submodule shows as the line that says where it points to."""
    if side is None:
        return ""
    mode = _mode(side)
    return FILE if mode == SUBMODULE else mode


def _content_name(side: tuple[int, bytes] | None) -> str:
    if side is None:
        return ""
    return (_MODULE * (_mode(side) == SUBMODULE) + side[1]).decode()
