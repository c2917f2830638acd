"""Client of the port `cloche.bulk`: listings of the upper dirs and contents of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UpperKind = Literal["file", "dir", "link", "whiteout", "special"]
Tree = Literal["workspace", "root"]


@dataclass(frozen=True, slots=True)
class UpperEntry:
    """One entry of an upper dir, as the guest's PID 1 saw it. Every field is the guest's word."""

    path: bytes
    kind: UpperKind
    opaque: bool
    redirect: bytes
    mode: int
    uid: int
    nlink: int
    inode: int
    size: int
    allocated: int
    mtime_ns: int
    ctime_ns: int
    target: bytes


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries of an upper dir, parents before children; `truncated` when a cap cut it short."""

    entries: list[UpperEntry]
    truncated: bool


@dataclass(frozen=True, slots=True)
class Fetched:
    """The end of a file's content: what the guest saw after the last byte was read."""

    size: int
    mtime_ns: int
    ctime_ns: int


class BulkClient:
    """One bulk link. Calls are serialised; after LinkLost or GuestProtocol make a new client."""

    @classmethod
    async def connect(cls, path: Path, token: str, deadline_s: float) -> BulkClient:
        """Open the bulk link. Raises LinkLost."""
        raise NotImplementedError

    async def list_upper(
        self, tree: Tree, max_entries: int, max_bytes: int, timeout_s: float = 60.0
    ) -> Listing:
        """List an upper dir under both caps. Raises LinkLost, GuestProtocol, GuestError."""
        raise NotImplementedError

    async def fetch(
        self,
        tree: Tree,
        path: bytes,
        inode: int,
        max_size: int,
        sink: Callable[[bytes], object],
        timeout_s: float = 60.0,
    ) -> Fetched:
        """Give a file's bytes to `sink`. Raises GuestError when it is gone, changed or too large."""
        raise NotImplementedError

    async def freeze(self, timeout_s: float = 30.0) -> None:
        """Freeze the agent's cgroup and sync."""
        raise NotImplementedError

    async def thaw(self, timeout_s: float = 10.0) -> None:
        """Thaw the agent's cgroup."""
        raise NotImplementedError

    async def set_clock(self, unix_ns: int, timeout_s: float = 10.0) -> None:
        """Set the guest's wall clock."""
        raise NotImplementedError

    async def ping(self, timeout_s: float = 10.0) -> None:
        """Return when PID 1 has answered."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the link; never raises."""
        raise NotImplementedError
