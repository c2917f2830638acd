"""What differs between the trees of two commits, read with bounds.

A crafted repository names the same tree again and again, so what is read is bounded in all, not by
the tree. Objects come from `git_store`, which bounds every one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dulwich.objects import parse_tree

from .aspects import EXECUTABLE, FILE, FOLDER, LINK
from .bundle import refused
from .manifest import Entry
from .names import NameRefused, split_path
from .review_sides import ChangedFile
from .safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .git_store import Store
    from .review_sides import Kind

MAX_ROWS: Final = 1_000_000
"""Rows of trees that are read in all."""

MAX_PATHS: Final = 128 << 20
"""Bytes of all changed paths: in a deep folder a path has many times the bytes of its row."""

COMMIT, TREE, BLOB = 1, 2, 3
"""Kinds of objects, as packs number them."""

SUBMODULE: Final = "160000"
MODULE: Final = b"module-"
"""Begins the name of a submodule's content, which is one line about the commit it points to."""

Side = tuple[int, bytes]
"""A row of a tree: its mode, and the name of its object in hexadecimal digits."""

_FOLDER: Final = 0o040000
_MODES: Final = {_FOLDER: FOLDER, 0o120000: LINK, 0o160000: SUBMODULE}


@dataclass(frozen=True, slots=True)
class Difference:
    """A path that differs between two trees; a side is None where it is not there."""

    path: bytes
    was: Side | None
    now: Side | None

    @property
    def change(self) -> str:
        """`A` added, `M` modified, `D` deleted."""
        return "A" if self.was is None else "D" if self.now is None else "M"

    @property
    def submodule(self) -> bool:
        """Whether either side is a commit of another repository."""
        return any(side is not None and _mode(side) == SUBMODULE for side in (self.was, self.now))


def _mode(side: Side) -> str:
    """Return a tree's mode as reviews name them; old repositories hold 100664 and the like."""
    return _MODES.get(side[0], EXECUTABLE if side[0] & 0o100 else FILE)


class Trees:
    """Reads objects of a store; one reader for all commits, for its bounds are about all."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows = MAX_ROWS
        self._paths = MAX_PATHS

    def read(self, name: bytes, kind: int) -> bytes:
        """Return an object of one of the kinds COMMIT, TREE, BLOB.

        Raises:
            BundleRefused: it is damaged, too large, of another kind or not there.

        """
        try:
            found = self._store.read(name)
        except Exception as error:  # a damaged or crafted object makes the reader raise anything
            shown = safe_line(name.decode(errors="replace")).text
            raise refused(f"the object {shown} is not there") from error
        if found.kind != kind:
            raise refused("an object is of another kind than it must be")
        return found.data

    def between(self, old: bytes | None, new: bytes) -> list[Difference]:
        """Return what differs between two commits (None: nothing at all), in path order.

        Raises:
            BundleRefused: an object is damaged or not there, or a bound is passed.

        """
        return sorted(self._differences(old, new), key=lambda one: one.path)

    def _differences(self, old: bytes | None, new: bytes) -> Iterator[Difference]:
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
                path = self._counted(folder + part, now)
                folders = [side[1] if side and side[0] == _FOLDER else None for side in (was, now)]
                if any(folders):
                    stack.append((path + b"/", folders[0], folders[1]))
                plain = [side if side and side[0] != _FOLDER else None for side in (was, now)]
                if any(plain):
                    yield Difference(path, plain[0], plain[1])

    def _tree_of(self, name: bytes) -> bytes:
        data = self.read(name, COMMIT)
        return data.split(b"\n", 1)[0].removeprefix(b"tree ")

    def _tree(self, name: bytes | None) -> dict[bytes, Side]:
        if name is None:
            return {}
        data = self.read(name, TREE)
        try:
            rows = list(parse_tree(data, 20))
        except Exception as error:  # the parser raises anything for a crafted tree
            raise refused("a tree is damaged") from error
        self._rows -= len(rows)
        if self._rows < 0:
            raise refused(f"their trees have more than {MAX_ROWS} rows")
        return {part: (mode, item) for part, mode, item in rows}

    def _counted(self, path: bytes, now: Side | None) -> bytes:
        """Return a path that is safe to name and fits into what may be read in all."""
        try:
            if now is not None:
                split_path(path)
        except NameRefused as error:
            raise refused(f"in one of them {error}") from error
        self._paths -= len(path)
        if self._paths < 0:
            raise refused(f"their changed paths have more than {MAX_PATHS} bytes")
        return path


def entry_of(side: Side | None) -> Entry:
    """Return a side as renames are found by: a link or submodule is no file to them."""
    assert side is not None
    plain = _mode(side) in (FILE, EXECUTABLE)
    return Entry("file" if plain else "special", side[0] & 0o777, 1, digest=side[1].decode())


def changed(one: Difference, old: Difference | None = None) -> ChangedFile:
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


def _kind(was: Side | None, now: Side | None) -> Kind:
    if was is None:
        return "added"
    if now is None:
        return "deleted"
    if was[1] == now[1]:
        return "mode"
    kinds = {FILE: "file", EXECUTABLE: "file"}
    before, after = _mode(was), _mode(now)
    return "modified" if kinds.get(before, before) == kinds.get(after, after) else "type"


def _shown_mode(side: Side | None) -> str:
    """Return the mode of a side; a submodule shows as the line that says where it points to."""
    if side is None:
        return ""
    mode = _mode(side)
    return FILE if mode == SUBMODULE else mode


def _content_name(side: Side | None) -> str:
    if side is None:
        return ""
    return (MODULE * (_mode(side) == SUBMODULE) + side[1]).decode()
