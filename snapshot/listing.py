"""A guest's listing of its overlay's upper dir, checked before anything is made of it.

The listing comes from PID 1, but the names in it are the agent's. A listing that no honest walk can
give (a name with a slash, a path twice, a child without its folder) is refused as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from snapshot.errors import ListingRefused
from snapshot.paths import folder_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_NAME: Final = 255
"""Longest name in bytes (Linux)."""

MAX_PATH: Final = 0xFFFF
"""Longest path in bytes: what the bulk port can carry."""

KINDS: Final = frozenset({"file", "dir", "link", "whiteout", "special"})

_HINT: Final = "The agent's disk is damaged or forged; end the session: cloche stop ID"


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


ListedT = TypeVar("ListedT", bound=Listed)


def checked(listing: Iterable[ListedT], most: int) -> Iterator[ListedT]:
    """Yield a listing of at most `most` entries in its order, each checked.

    Raises ListingRefused. None is held: a long list takes much memory.
    """
    found: set[bytes] = set()
    folders = {b""}
    for entry in listing:
        if len(found) >= most:
            raise ListingRefused(
                f"The agent changed more than {most} files and folders.",
                "Let it remove what is not needed: cloche exec ID -- rm -r DIR",
            )
        reason = _fault(entry) or _place_fault(entry.path, found, folders)
        if reason:
            raise ListingRefused(f"The guest's list of changes {reason}.", _HINT)
        found.add(entry.path)
        if entry.kind == "dir":
            folders.add(entry.path)
        yield entry


def _fault(entry: Listed) -> str:
    """Say what is wrong with one entry by itself, or nothing."""
    if entry.kind not in KINDS:
        return "holds an entry of an unknown kind"
    if len(entry.path) > MAX_PATH or not all(map(good_name, entry.path.split(b"/"))):
        return "holds a path that cannot be one"
    if min(entry.size, entry.mode, entry.allocated) < 0:
        return "holds a negative size"
    if entry.kind == "dir" and entry.redirect and not _good_redirect(entry.redirect):
        return "holds a redirect that cannot be one"
    if entry.kind == "link" and (not entry.target or b"\0" in entry.target):
        return "holds a link without a target"
    return ""


def _place_fault(path: bytes, found: set[bytes], folders: set[bytes]) -> str:
    """Say why an entry cannot follow those that came before it, or nothing."""
    if path in found:
        return "holds a path twice"
    return "" if folder_of(path) in folders else "holds a path without its folder"


def good_name(name: bytes) -> bool:
    """Whether `name` can be one part of a path."""
    return 0 < len(name) <= MAX_NAME and name not in (b".", b"..") and b"\0" not in name


def _good_redirect(text: bytes) -> bool:
    parts = text[1:].split(b"/") if text.startswith(b"/") else [text]
    return len(text) <= MAX_PATH and all(good_name(part) and b"/" not in part for part in parts)
