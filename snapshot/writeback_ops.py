"""The values of write-back: what is wished for, the operations of a plan, what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from blake3 import blake3

from .writeback_tree import NOTHING, Entry

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .conflicts import Dispute

SideKind = Literal["none", "file", "link", "dir"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A path that was left out, or something to tell about it, in one phrase."""

    path: bytes
    reason: str


def no_tick(_name: str) -> None:
    """Let a step pass, as everywhere but in tests."""


class Done(NamedTuple):
    """What is to be told of steps that were done."""

    late: list[Refusal]
    """What was written by others in the very moment of the merge."""
    notices: list[Refusal]


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a change: a file's content, a link's target, a folder or nothing."""

    kind: SideKind
    content: bytes = b""
    executable: bool = False
    known_digest: str = ""
    """The content's digest where the content itself is not at hand."""

    @property
    def digest(self) -> str:
        """blake3 of the content, hex."""
        return self.known_digest or blake3(self.content).hexdigest()

    def is_like(self, other: Side) -> bool:
        """Tell whether kind, content and executable bit are the same."""
        if (self.kind, self.executable) != (other.kind, other.executable):
            return False
        return self.kind in ("none", "dir") or self.digest == other.digest


@dataclass(frozen=True, slots=True)
class Exactly:
    """Mode, owner and extended attributes that a restored entry gets back."""

    mode: int
    uid: int
    gid: int
    xattrs: tuple[tuple[str, bytes], ...] = ()


class MergedUnit(NamedTuple):
    """A hunk or aspect of which something is accepted."""

    id: str
    marks: str
    edit: str = ""
    """Digest of the user's own lines in its place, if any."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One accepted change: `base` at `old_path` shall become `result` at `new_path`."""

    name: bytes
    """The path that reports name."""
    old_path: bytes | None
    new_path: bytes | None
    base: Side
    result: Side
    exactly: Exactly | None = None
    """On undo: what the entry had before, instead of the rules for new files."""
    group: int | None = None
    """Wishes of one group happen together or not at all."""
    units: tuple[MergedUnit, ...] = ()
    """What is accepted of the file, to be remembered with the merge."""
    follows: str = ""
    """The earlier merge whose outcome `base` is, if any."""


@dataclass(frozen=True, slots=True)
class Post:
    """What an operation leaves at its path."""

    entry: Entry = NOTHING
    content: bytes = b""
    exactly: Exactly | None = None


@dataclass(frozen=True, slots=True)
class Op:
    """One step of a merge at one path; `pre` must be found there or the merge is taken back."""

    path: bytes
    pre: Entry
    post: Entry
    content: bytes
    """A file's content or a link's target to write; empty for removals and folders."""
    temp_dir: bytes
    """The folder (b"" is the root) where its temporary name lies: same mount, there to stay."""
    wish: int
    """Number of the wish it belongs to, -1 for folders that come or go by themselves."""
    exactly: Exactly | None = None
    mergeable: bool = False
    """Whether an undo may merge lines: text before and after."""


class Touched(NamedTuple):
    """The paths of the workspace that steps change; a rename is one of each."""

    wrote: tuple[bytes, ...] = ()
    """What is there afterwards and was not so before."""
    deleted: tuple[bytes, ...] = ()


UNTOUCHED: Final = Touched()
"""What no step changes."""


def touched_by(ops: Iterable[Op]) -> Touched:
    """Return what steps leave at their paths; folders that come or go by themselves are no news."""
    before: dict[bytes, str] = {}
    after: dict[bytes, str] = {}
    for op in ops:
        if op.wish >= 0:
            before.setdefault(op.path, op.pre.kind)
            after[op.path] = op.post.kind
    return Touched(
        tuple(path for path, kind in after.items() if kind != "none"),
        tuple(path for path, kind in after.items() if kind == "none" != before[path]),
    )


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge would do. Nothing of a path in `conflicts` or `skipped` is written."""

    workspace: Path
    root: tuple[int, int]
    """Device and inode of the workspace that was compared."""
    ops: tuple[Op, ...]
    names: tuple[bytes, ...]
    """The name of each wish, by its number."""
    written: tuple[bytes, ...]
    conflicts: tuple[Refusal, ...]
    skipped: tuple[Refusal, ...]
    notices: tuple[Refusal, ...]
    """Things to tell: broken hard links, names that differ only in case, auto-merged files."""
    disputes: tuple[Dispute, ...] = ()
    """Every conflict that has sides to choose from, solved ones too."""
    wishes: tuple[Wish, ...] = ()
    """What was asked for, by its number."""

    @property
    def touched(self) -> Touched:
        """The paths that it would change."""
        return touched_by(self.ops)
