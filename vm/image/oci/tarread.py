"""The members of a layer's tar, read once from front to back by the standard library's parser.

The parser believes what a header says of itself: it would read a long name of eight gigabytes into
memory, go backwards, and take garbage for the end. The window that it looks through allows neither.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, cast

from vm.errors import ImageRefused
from vm.image.oci.limits import MAX_ID, MAX_PATH, shown
from vm.image.oci.stream import PIECE
from vm.text import printable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import IO

    from vm.image.oci.limits import Budget
    from vm.image.oci.stream import Bytes

MAX_HEADER: Final = 1 << 20
"""Bytes of all headers of one member: names, attributes and the map of a sparse file."""

_BLOCK: Final = tarfile.BLOCKSIZE
_LATEST: Final = (1 << 32) - 1
"""The last second that squashfs can hold."""

Kind = Literal["file", "folder", "link", "hard", "fifo", "device"]

_KINDS: Final[dict[bytes, Kind]] = {
    **dict.fromkeys(tarfile.REGULAR_TYPES, "file"),
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "link",
    tarfile.LNKTYPE: "hard",
    tarfile.FIFOTYPE: "fifo",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
}


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of a layer, checked by itself: what it means is for the tree to say."""

    number: int
    """Which one of its layer, from 0."""
    name: bytes
    kind: Kind
    mode: int
    """Permissions with setuid, setgid and sticky."""
    uid: int
    gid: int
    mtime: int
    size: int
    """Bytes of a file, holes counted."""
    target: bytes
    """Where a symbolic or hard link leads."""


class _Forgets(dict[str, str]):
    """Headers for all members that follow: nobody else obeys them either."""

    def __setitem__(self, _key: str, _value: str) -> None:
        return


class _Window:
    """The archive as the parser sees it: forwards only, and few bytes at a time."""

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._place = 0
        self._last = b""
        self._again = False
        self.used = 0
        self.block = b""
        """What was read as a header last."""

    def tell(self) -> int:
        return self._place - self._again

    def seek(self, place: int) -> int:
        if place == self._place - 1 and self._last:
            self._again = True  # the parser looks whether the byte before a header is there
        elif place < self._place:
            _damaged("a header lies about a size")
        while self._place < place and self.pour(min(PIECE, place - self._place)):
            continue
        return self.tell()

    def read(self, size: int) -> bytes:
        """Return what the parser asks for; ImageRefused when headers ask for too much."""
        self.used += max(0, size)
        if not 0 <= size <= MAX_HEADER or self.used > MAX_HEADER:
            _damaged("a header is too long")
        data = self._last if self._again else b""
        self._again = False
        while len(data) < size and (more := self.pour(size - len(data))):
            data += more
        self.block = data
        return data

    def pour(self, size: int) -> bytes:
        """Return at most `size` bytes of content, none at the end of the layer."""
        data = self._source.read(size)
        self._place += len(data)
        self._last = data[-1:] or self._last
        return data


def _damaged(why: str) -> NoReturn:
    raise ImageRefused(f"The image is refused: a layer of it is no good archive ({why}).")


class LayerReader:
    """Gives the members of one layer in order; `content` is of the one that was given last."""

    def __init__(self, source: Bytes, budget: Budget) -> None:
        self._window = _Window(source)
        self._budget = budget
        self._info: tarfile.TarInfo | None = None

    def members(self) -> Iterator[Member]:
        """Yield every member. Raises ImageRefused for what is no archive or too large."""
        archive = self._open()
        number = 0
        while (info := self._next(archive)) is not None:
            self._budget.spend_entry()
            self._info = info
            yield _member(number, info, self._budget)
            number += 1
            self._window.used = 0
            self._forget(archive)

    def _open(self) -> tarfile.TarFile | None:
        try:
            archive = tarfile.TarFile(
                fileobj=cast("IO[bytes]", self._window), mode="r",
                encoding="utf-8", errors="surrogateescape", pax_headers=_Forgets(),
            )  # fmt: skip
        except _PARSING as error:
            if not self._window.block:
                return None  # an empty layer: some builders write no bytes at all
            _damaged(_why(error))
        return archive

    def _next(self, archive: tarfile.TarFile | None) -> tarfile.TarInfo | None:
        if archive is None:
            return None
        try:
            info = archive.next()
        except _PARSING as error:
            _damaged(_why(error))
        # the parser takes a broken header for the end: only zeros, or no bytes at all, are one
        if info is None and self._window.block.strip(b"\0"):
            _damaged("a header is broken")
        if info is None and 0 < len(self._window.block) < _BLOCK:
            _damaged("it ends in the middle")
        return info

    @staticmethod
    def _forget(archive: tarfile.TarFile | None) -> None:
        """Drop what the parser keeps of every member; of half a million nobody needs it."""
        if archive is not None:
            cast("Any", archive).members.clear()

    def content(self) -> Generator[bytes]:
        """Yield the bytes of the file that was given last, holes as zeros."""
        info = self._info
        assert info is not None
        self._info = None
        if self._window.tell() != info.offset_data:
            _damaged("a header lies about a size")
        if info.sparse is None:
            yield from self._pieces(info.size)
        else:
            yield from self._with_holes(info.size, cast("list[tuple[int, int]]", info.sparse))

    def _with_holes(self, size: int, stored: list[tuple[int, int]]) -> Generator[bytes]:
        place = 0
        for begin, length in stored:
            if length == 0:
                continue  # the old form of the map is filled up with them
            if begin < place or length < 0 or begin + length > size:
                _damaged("the map of a sparse file is wrong")
            yield from _zeros(begin - place)
            yield from self._pieces(length)
            place = begin + length
        yield from _zeros(size - place)

    def _pieces(self, size: int) -> Generator[bytes]:
        while size:
            data = self._window.pour(min(size, PIECE))
            if not data:
                _damaged("it ends in the middle")
            size -= len(data)
            yield data


_PARSING = (tarfile.TarError, ValueError, TypeError, IndexError, OverflowError, RecursionError)
"""What the parser raises for bytes that are no headers; RecursionError for a chain of them."""


def _why(error: BaseException) -> str:
    return printable(str(error))[:80] or type(error).__name__


def _zeros(count: int) -> Generator[bytes]:
    while count > 0:
        yield bytes(min(count, PIECE))
        count -= PIECE


def _member(number: int, info: tarfile.TarInfo, budget: Budget) -> Member:
    name, target = _raw(info.name), _raw(info.linkname)
    kind = _KINDS.get(info.type)
    if kind is None:
        _damaged(f"{shown(name)} is of an unknown kind")
    if max(len(name), len(target)) > MAX_PATH:
        _damaged(f"{shown(name, 40)}… is too long")
    if b"\0" in name + target:
        _damaged("a name holds a zero byte")
    if not (0 <= info.uid <= MAX_ID and 0 <= info.gid <= MAX_ID):
        _damaged(f"{shown(name)} has no possible owner")
    size = info.size if kind == "file" else 0
    if size < 0:
        _damaged(f"{shown(name)} has no possible size")
    budget.check_size(size)
    budget.spend_text(len(name) + len(target))
    mode = info.mode & 0o7777
    return Member(number, name, kind, mode, info.uid, info.gid, _time(info.mtime), size, target)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _time(seconds: float) -> int:
    """Return a time that squashfs can hold; what is none (NaN, before 1970) is its beginning."""
    return int(min(seconds, _LATEST)) if seconds >= 0 else 0
