"""What the guest's overlay says, resolved against the base: pure functions, no input or output.

The upper dir of an overlay holds what differs: a whiteout hides a name of the base, an opaque
folder hides what the base holds in it, a folder with a redirect shows what the base holds at
another place (a rename), any other folder shows the base's folder of the same place. "The same
place" is meant in the base: below a renamed folder it is the old one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

import msgspec

from snapshot.errors import ListingRefused
from snapshot.listing import Listed, checked
from snapshot.manifest import Entry
from snapshot.paths import folder_of, join, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from snapshot.ignore import IgnoreRules
    from snapshot.manifest import Manifest

__all__ = [
    "AgentEntry",
    "AgentTree",
    "Fetch",
    "FileKey",
    "Limits",
    "Listed",
    "in_git",
    "plan_fetches",
    "resolve",
]

SPARSE_BYTES: Final = 1 << 20
"""Files up to this size are fetched however few blocks they have."""

SPECIAL: Final = "special file"
SPARSE: Final = "sparse file"
PENDING: Final = "its content was not fetched (yet, or the mirror's quota is used up)"

_MODES: Final = tuple(range(0o1000))
"""Permission bits by their number: each is one object, however many entries have it."""


class FileKey(NamedTuple):
    """What tells one content of the guest from another without reading it."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a mirror pass, in entries and bytes.

    `entries` bounds the listing and, apart from it, what renamed folders bring along.
    """

    entries: int = 1_000_000
    file_bytes: int = 64 << 20
    total_bytes: int = 2 << 30


@dataclass(frozen=True, slots=True)
class Fetch:
    """One content to get: a path of that inode, and the most bytes to accept."""

    path: bytes
    inode: int
    size: int
    key: FileKey


class AgentEntry(msgspec.Struct, frozen=True, gc=False):
    """One path of the agent's tree.

    `entry.digest` is "" for a file whose content is not here; `note` then says why. `origin` is
    where the path lay in the base when a renamed folder brought it along, else b"".
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
        found = self.present.get(path)
        if found is not None or path in self.gone:
            return found
        entry = self.base.get(path)
        return None if entry is None else AgentEntry(entry)

    def items(self) -> Iterator[tuple[bytes, AgentEntry]]:
        """Walk the whole merged view, in no particular order."""
        yield from self.present.items()
        for path, entry in self.base.items():
            if path not in self.present and path not in self.gone:
                yield path, AgentEntry(entry)


def in_git(path: bytes) -> bool:
    """Whether `path` is a `.git` or lies inside one."""
    return path == b".git" or path.startswith(b".git/") or b"/.git/" in path + b"/"


def file_key(entry: Listed) -> FileKey:
    """Make the key of a listed file's content."""
    return FileKey(entry.inode, entry.size, entry.mtime_ns, entry.ctime_ns)


def unfetchable(entry: Listed, limits: Limits) -> str:
    """Say why a listed file's content is never fetched, or nothing."""
    if entry.size > limits.file_bytes:
        return f"larger than {limits.file_bytes} bytes"
    if entry.size > SPARSE_BYTES and entry.allocated < entry.size // 2:
        return SPARSE
    return ""


def plan_fetches(
    base: Manifest,
    listing: Iterable[Listed],
    known: Mapping[FileKey, str],
    limits: Limits | None = None,
    ignore: IgnoreRules | None = None,
) -> list[Fetch]:
    """Name the contents that a pass must fetch, small ones first, one per inode.

    Left out: what `known` (key -> digest) has, what is ignored or inside a `.git`, special, sparse
    and too large files, and what the total quota has no room for. After the transfer the guest
    tells size and times anew: only if they still make `key` is the content that of this listing.
    Raises ListingRefused.
    """
    del base  # metadata is never believed: an equal size and time does not mean an equal content
    limits = limits or Limits()
    wanted: dict[FileKey, bytes] = {}
    used: dict[FileKey, int] = {}
    for entry in checked(listing, limits.entries):
        path = entry.path
        if entry.kind != "file" or unfetchable(entry, limits):
            continue
        key = file_key(entry)
        if key in known:
            used[key] = entry.size
        elif key not in wanted and not in_git(path) and not (ignore and ignore.ignored(path)):
            wanted[key] = path
    return _within(limits.total_bytes - sum(used.values()), wanted)


def _within(room: int, wanted: dict[FileKey, bytes]) -> list[Fetch]:
    """Take as many contents as fit, small ones first."""
    plan: list[Fetch] = []
    for key, path in sorted(wanted.items(), key=lambda item: (item[0].size, item[1])):
        room -= key.size
        if room < 0:
            break
        plan.append(Fetch(path, key.inode, key.size, key))
    return plan


def resolve(
    base: Manifest,
    listing: Iterable[Listed],
    contents: Mapping[FileKey, str],
    limits: Limits | None = None,
) -> AgentTree:
    """Make the agent's tree; `contents` maps what was mirrored to its digest.

    Raises ListingRefused.
    """
    limits = limits or Limits()
    resolver = _Resolver(base, contents, limits)
    resolver.run(checked(listing, limits.entries))
    gone = resolver.hidden.difference(resolver.present)
    return AgentTree(base, resolver.present, frozenset(gone))


class _Place(NamedTuple):
    """One folder of the upper dir and the base folder that shines through.

    `in_place`: the base's own folder at that path is what is seen (nothing above it was moved or
    hidden), so what the upper dir does not mention there is as in the base.
    """

    path: bytes
    lower: bytes | None
    in_place: bool


class _Resolver:
    """Walks the listing once: parents come before what is in them."""

    def __init__(self, base: Manifest, contents: Mapping[FileKey, str], limits: Limits) -> None:
        self._base, self._contents, self._limits = base, contents, limits
        self._places = {b"": _Place(b"", b"", True)}
        self._covered: dict[bytes, set[bytes]] = {}
        """The names in each folder that shows another one of the base."""
        self._brought = 0
        self.present: dict[bytes, AgentEntry] = {}
        self.hidden: set[bytes] = set()

    def run(self, listing: Iterable[Listed]) -> None:
        for entry in listing:
            self._take(self._places[folder_of(entry.path)], entry)
        for path, names in self._covered.items():
            self._bring_others(self._places[path], names)

    def _take(self, place: _Place, entry: Listed) -> None:
        if place.path in self._covered:
            self._covered[place.path].add(name_of(entry.path))
        if entry.kind == "dir":
            self._sub_folder(place, entry)
            return
        if place.in_place:
            self._hide(entry.path)
        if entry.kind != "whiteout":
            self.present[entry.path] = self._leaf(place, entry)

    def _bring_others(self, place: _Place, names: set[bytes]) -> None:
        """Show what the listing does not mention of the base folder that shines through."""
        assert place.lower is not None
        for name in self._base.children(place.lower):
            if name not in names:
                self._bring(join(place.lower, name), join(place.path, name))

    def _sub_folder(self, place: _Place, entry: Listed) -> None:
        lower = self._lower(place, entry)
        in_place = place.in_place and lower == entry.path
        if place.in_place and not in_place:
            self._hide(entry.path)
        origin = lower if lower is not None and not in_place else b""
        made = Entry("dir", _MODES[entry.mode & 0o777], 0, entry.mtime_ns)
        self.present[entry.path] = AgentEntry(made, "", origin)
        self._places[entry.path] = _Place(entry.path, lower, in_place)
        if lower is not None and not in_place:
            self._covered[entry.path] = set()

    def _lower(self, place: _Place, entry: Listed) -> bytes | None:
        """Find the base folder that shines through an upper folder."""
        if entry.opaque:
            return None
        if entry.redirect.startswith(b"/"):
            lower = entry.redirect[1:]
        elif place.lower is None:
            return None
        else:
            lower = join(place.lower, entry.redirect or name_of(entry.path))
        found = self._base.get(lower)
        return lower if found is not None and found.kind == "dir" else None

    def _leaf(self, place: _Place, entry: Listed) -> AgentEntry:
        """Make the entry of a file, link or special file."""
        mode = _MODES[entry.mode & 0o777]
        origin = b""
        if place.lower is not None and not place.in_place:
            lower = join(place.lower, name_of(entry.path))
            found = self._base.get(lower)
            origin = lower if found is not None and found.kind == entry.kind else b""
        if entry.kind == "file":
            digest = self._contents.get(file_key(entry), "")
            note = "" if digest else unfetchable(entry, self._limits) or PENDING
            made = Entry("file", mode, entry.size, entry.mtime_ns, digest)
            return AgentEntry(made, note, origin)
        kind = cast("Literal['link', 'special']", entry.kind)
        target = entry.target if kind == "link" else b""
        note = SPECIAL if kind == "special" else ""
        return AgentEntry(Entry(kind, mode, 0, entry.mtime_ns, "", target), note, origin)

    def _hide(self, path: bytes) -> None:
        """Take the base's `path` and everything below it out of sight."""
        entry = self._base.get(path)
        if entry is not None:
            self.hidden.add(path)
            if entry.kind == "dir":
                self.hidden.update(below for below, _ in self._base.under(path))

    def _bring(self, source: bytes, target: bytes) -> None:
        """Show the base's `source` and everything below it at `target`."""
        self._put(source, target, self._base[source])
        if self._base[source].kind == "dir":
            for path, entry in self._base.under(source):
                self._put(path, target + path[len(source) :], entry)

    def _put(self, source: bytes, target: bytes, entry: Entry) -> None:
        self._brought += 1
        if self._brought > self._limits.entries:
            raise ListingRefused(
                f"Renamed folders of the guest bring along more than {self._limits.entries} files.",
                "The agent's disk is damaged or forged; end the session: cloche stop ID",
            )
        self.present[target] = AgentEntry(entry, "", source)
