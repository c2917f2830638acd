"""What the guest's overlay says, resolved against the base: pure functions, no input or output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from snapshot.ignore import IgnoreRules
    from snapshot.manifest import Entry, Manifest


class Listed(Protocol):
    """One entry of the upper dir's listing (see docs/architecture.md)."""

    @property
    def path(self) -> bytes:
        """Path relative to the upper dir, without leading slash."""
        ...

    @property
    def kind(self) -> str:
        """One of file, dir, link, whiteout, special."""
        ...

    @property
    def opaque(self) -> bool:
        """Whether the folder hides what the base holds there."""
        ...

    @property
    def redirect(self) -> bytes:
        """Where the folder lay in the base (absolute or a name), or nothing."""
        ...

    @property
    def mode(self) -> int:
        """The whole st_mode."""
        ...

    @property
    def uid(self) -> int:
        """Owner."""
        ...

    @property
    def nlink(self) -> int:
        """How many names the inode has."""
        ...

    @property
    def inode(self) -> int:
        """Number of the inode in the upper file system."""
        ...

    @property
    def size(self) -> int:
        """Length in bytes."""
        ...

    @property
    def allocated(self) -> int:
        """Bytes that blocks take."""
        ...

    @property
    def mtime_ns(self) -> int:
        """Time of the last change of the content."""
        ...

    @property
    def ctime_ns(self) -> int:
        """Time of the last change of the inode."""
        ...

    @property
    def target(self) -> bytes:
        """A link's text."""
        ...


class FileKey(NamedTuple):
    """What tells one content of the guest from another without reading it."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a mirror pass, in entries and bytes."""

    entries: int = 1_000_000
    file_bytes: int = 64 << 20
    total_bytes: int = 2 << 30


@dataclass(frozen=True, slots=True)
class Fetch:
    """One content to get: any path of that inode, and the most bytes to accept."""

    path: bytes
    inode: int
    size: int
    key: FileKey


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One path of the agent's tree.

    `entry.digest` is "" for a file whose content is not here; `note` then says why. `origin` is the
    base path that a renamed folder brought here, else b"".
    """

    entry: Entry
    note: str = ""
    origin: bytes = b""


@dataclass(frozen=True, slots=True)
class AgentTree:
    """The agent's tree as its difference from the base.

    `present` holds every path that the overlay touched or moved, `gone` the base paths that are no
    more; every other path is as in the base.
    """

    base: Manifest
    present: Mapping[bytes, AgentEntry]
    gone: frozenset[bytes]

    def get(self, path: bytes) -> AgentEntry | None:
        """Tell what the agent sees at `path`."""
        raise NotImplementedError

    def items(self) -> Iterator[tuple[bytes, AgentEntry]]:
        """Walk the whole merged view, in no particular order."""
        raise NotImplementedError


def plan_fetches(
    base: Manifest,
    listing: Iterable[Listed],
    known: Mapping[FileKey, str],
    limits: Limits | None = None,
    ignore: IgnoreRules | None = None,
) -> list[Fetch]:
    """Which contents a pass must fetch, small ones first, one per inode.

    Left out: what `known` (key -> digest) has, what is ignored or inside a `.git`, special, sparse
    and too large files, and what the total quota has no room for. Raises ListingRefused.
    """
    raise NotImplementedError


def resolve(
    base: Manifest,
    listing: Iterable[Listed],
    contents: Mapping[FileKey, str],
    limits: Limits | None = None,
) -> AgentTree:
    """Make the agent's tree; `contents` maps what was mirrored to its digest.

    Raises ListingRefused.
    """
    raise NotImplementedError
