"""The list of a tree: what lies where, of which kind, with which content.

A manifest may hold hundreds of thousands of entries and the keeper holds one for its whole life, so
the columns are kept apart in flat arrays (about 110 bytes an entry with its path) and an `Entry` is
made only when somebody asks for it. Paths are bytes, relative to the tree's root, without leading
slash; they are sorted by their bytes, so a folder's whole subtree is one range.

The file is a JSON header line followed by one JSON array a line. Names that are not UTF-8 are
written with `surrogateescape`, which JSON's own escapes carry safely.
"""

from __future__ import annotations

import json
import sys
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, Literal, cast

import msgspec

from snapshot.errors import StoreDamaged
from snapshot.whole_files import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

SCHEMA: Final = 1
"""Version of the file format; another number is refused."""

MAX_LINE: Final = 1 << 20
"""Longest line of a manifest file in bytes: a path of 64 KiB with every byte escaped fits."""

Kind = Literal["file", "dir", "link", "special"]
KINDS: Final[tuple[Kind, ...]] = ("file", "dir", "link", "special")

_TRACKED: Final = 0x80
_NO_DIGEST: Final = bytes(32)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One path of a tree.

    `mode` holds the permission bits alone (at most 0o777). `size` is in bytes (0 but for files),
    `digest` the content's blake3 as hex (files only), `target` a link's text as it stands.
    `tracked` says that git's index lists the path.
    """

    kind: Kind
    mode: int
    size: int = 0
    mtime_ns: int = 0
    digest: str = ""
    target: bytes = b""
    tracked: bool = False

    @property
    def git_mode(self) -> str:
        """The mode as git's trees write it: "100644", "100755", "120000", "040000" or ""."""
        if self.kind == "file":
            return "100755" if self.mode & 0o100 else "100644"
        return {"link": "120000", "dir": "040000"}.get(self.kind, "")


class Manifest:
    """An immutable, sorted mapping of paths to entries."""

    __slots__ = ("_digests", "_ends", "_kinds", "_modes", "_mtimes", "_names", "_sizes", "_targets")

    def __init__(self, entries: Iterable[tuple[bytes, Entry]] = ()) -> None:
        self._names = b""
        self._ends = array("Q")
        self._kinds = bytearray()
        self._modes = array("H")
        self._sizes = array("Q")
        self._mtimes = array("q")
        self._digests = b""
        self._targets: dict[int, bytes] = {}
        self._fill(sorted(entries, key=_path_of))

    def _fill(self, entries: Iterable[tuple[bytes, Entry]]) -> None:
        names, digests = bytearray(), bytearray()
        previous: bytes | None = None
        for path, entry in entries:
            if previous is not None and path <= previous:
                raise ValueError(f"{path!r} is listed twice or out of order")
            previous = path
            if entry.target:
                self._targets[len(self._ends)] = entry.target
            names += path
            self._ends.append(len(names))
            self._kinds.append(KINDS.index(entry.kind) | (_TRACKED if entry.tracked else 0))
            self._modes.append(entry.mode & 0o7777)
            self._sizes.append(entry.size)
            self._mtimes.append(entry.mtime_ns)
            digests += _digest(entry.digest)
        self._names, self._digests = bytes(names), bytes(digests)

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, bytes) and self._find(path) >= 0

    def __iter__(self) -> Iterator[bytes]:
        return map(self._path, range(len(self._ends)))

    def __getitem__(self, path: bytes) -> Entry:
        index = self._find(path)
        if index < 0:
            raise KeyError(path)
        return self._entry(index)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Manifest) and list(self.items()) == list(other.items())

    def get(self, path: bytes) -> Entry | None:
        """Give the entry of `path`, or None."""
        index = self._find(path)
        return None if index < 0 else self._entry(index)

    def items(self) -> Iterator[tuple[bytes, Entry]]:
        """Every path with its entry, in order."""
        return ((self._path(index), self._entry(index)) for index in range(len(self._ends)))

    def path_of(self, digest: str) -> bytes | None:
        """Give the first path of a file with this content, or None."""
        raw = bytes.fromhex(digest)
        at = self._digests.find(raw)
        while at >= 0:
            if at % 32 == 0 and KINDS[self._kinds[at // 32] & 0x7F] == "file":
                return self._path(at // 32)
            at = self._digests.find(raw, at + 1)
        return None

    def under(self, folder: bytes) -> Iterator[tuple[bytes, Entry]]:
        """Everything below `folder` (itself not), at any depth, in order; b"" is the root."""
        prefix = folder + b"/" if folder else b""
        for index in range(self._position(prefix), len(self._ends)):
            path = self._path(index)
            if not path.startswith(prefix):
                return
            yield path, self._entry(index)

    def children(self, folder: bytes) -> Iterator[bytes]:
        """Give the names (not paths) directly in `folder`, in order; whole subtrees are skipped."""
        prefix = folder + b"/" if folder else b""
        index = self._position(prefix)
        while index < len(self._ends):
            path = self._path(index)
            if not path.startswith(prefix):
                return
            name, slash, _ = path[len(prefix) :].partition(b"/")
            if not slash:
                yield name
                index += 1
            else:  # b"/" + 1: the first byte string after everything below `name`
                index = self._position(prefix + name + b"0")

    def save(self, path: Path) -> None:
        """Write the file atomically, readable by its owner alone."""
        with whole_file(path) as file:
            file.write(json.dumps({"manifest": SCHEMA, "count": len(self)}) + "\n")
            file.writelines(_line(name, entry) for name, entry in self.items())

    @classmethod
    def load(cls, path: Path) -> Manifest:
        """Read a file that `save` wrote; StoreDamaged when it is anything else."""
        result = cls()
        try:
            with path.open("rb") as file:
                header = json.loads(file.readline(MAX_LINE))
                if header.get("manifest") != SCHEMA:
                    raise ValueError("another schema")
                result._fill(_parse(line) for line in iter(lambda: file.readline(MAX_LINE), b""))
                if len(result) != header["count"]:
                    raise ValueError("entries are missing")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise StoreDamaged(
                f"{path} is not a list of a snapshot ({error}).",
                "Remove the session with: cloche rm ID",
            ) from error
        return result

    def _path(self, index: int) -> bytes:
        return self._names[self._ends[index - 1] if index else 0 : self._ends[index]]

    def _entry(self, index: int) -> Entry:
        kind = KINDS[self._kinds[index] & 0x7F]
        digest = self._digests[32 * index : 32 * index + 32].hex() if kind == "file" else ""
        return Entry(
            kind,
            self._modes[index],
            self._sizes[index],
            self._mtimes[index],
            digest,
            self._targets.get(index, b""),
            bool(self._kinds[index] & _TRACKED),
        )

    def _position(self, path: bytes) -> int:
        return bisect_left(range(len(self._ends)), path, key=self._path)

    def _find(self, path: bytes) -> int:
        index = self._position(path)
        return index if index < len(self._ends) and self._path(index) == path else -1


def _digest(text: str) -> bytes:
    raw = bytes.fromhex(text) if text else _NO_DIGEST
    if len(raw) != len(_NO_DIGEST):
        raise ValueError(f"{text!r} is no blake3 name")
    return raw


def _path_of(item: tuple[bytes, Entry]) -> bytes:
    return item[0]


def _line(path: bytes, entry: Entry) -> str:
    row: list[object] = [path.decode("utf-8", "surrogateescape"), entry.kind, entry.mode]
    row += [entry.size, entry.mtime_ns, entry.digest, int(entry.tracked)]
    if entry.target:
        row.append(entry.target.decode("utf-8", "surrogateescape"))
    return json.dumps(row, separators=(",", ":")) + "\n"


def _parse(line: bytes) -> tuple[bytes, Entry]:
    row = cast("list[object]", json.loads(line))
    path, kind, mode, size, mtime_ns, digest, tracked, *rest = row
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}")
    name, mode, size, mtime_ns = _text(path), _number(mode), _number(size), _number(mtime_ns)
    text = sys.intern(str(digest)) if not digest else str(digest)
    target = _text(rest[0]) if rest else b""
    return name, Entry(kind, mode, size, mtime_ns, text, target, bool(tracked))


def _text(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("a name is not text")
    return value.encode("utf-8", "surrogateescape")


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError("a number is not one")
    return value
