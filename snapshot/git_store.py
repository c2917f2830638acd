"""Reading git objects that anybody may have made.

A repository comes with its workspace, so its objects are untrusted: a loose object may be a pipe or
a link to a device, and a few packed bytes may stand for terabytes. Only regular files below the
opened folders are read, and no object, delta or sum of them above a bound is ever inflated.
Alternates are those of the caller: what `info/alternates` says is not read here.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import stat
import zlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

from dulwich.pack import apply_delta as _apply  # pyright: ignore[reportUnknownVariableType]
from dulwich.pack import load_pack_index_file

from snapshot.walk import FILE_FLAGS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from dulwich.object_format import ObjectFormat
    from dulwich.pack import PackIndex

    from snapshot.git_dir import Dir

OBJECT_LIMIT: Final = 16 << 20
"""Largest object (inflated) that is read: no tree or commit is this large."""

CHAIN_BYTES: Final = 4 * OBJECT_LIMIT
"""Most bytes that are inflated for one object out of its chain of deltas."""

MAX_CHAIN: Final = 4096
"""Longest chain of deltas; git itself makes none of more than 4095."""

MAX_PACKS: Final = 4096
_CACHED: Final = 32 << 20
"""Bytes of bases that are kept: the deltas of neighbouring trees stand on the same ones."""

_SLACK: Final = 1 << 12
_OFFSET_DELTA: Final = 6
_NAMED_DELTA: Final = 7
_KINDS: Final = {b"commit": 1, b"tree": 2, b"blob": 3, b"tag": 4}
_NUMBER_BYTES: Final = 10
_PACK: Final = re.compile(rb"(pack-[0-9a-f]{40,64})\.idx")


class BadObject(ValueError):
    """What is stored is no object that is read here."""


class Raw(NamedTuple):
    """An object: its kind as git numbers them, and its bytes."""

    kind: int
    data: bytes


class Store:
    """The objects of some `objects` folders; the folders stay the caller's."""

    def __init__(self, folders: Sequence[Dir], shape: ObjectFormat) -> None:
        """Open the packs; one that cannot be opened is as if it were not there."""
        self._folders = folders
        self._packs: list[_Pack] = []
        for folder in folders:
            self._packs += _open_packs(folder, shape)

    def read(self, name: bytes) -> Raw:
        """Read an object by its name in hex. Raises KeyError, or anything for a crafted one."""
        raw = bytes.fromhex(name.decode("ascii"))
        for pack in self._packs:
            with contextlib.suppress(KeyError):
                return pack.read(raw)
        for folder in self._folders:
            data = folder.read(name[:2] + b"/" + name[2:], OBJECT_LIMIT)
            if data is not None:
                return _loose(data)
        raise KeyError(name)

    def close(self) -> None:
        """Close the packs; closing twice is allowed."""
        for pack in self._packs:
            pack.close()
        self._packs.clear()


class _Head(NamedTuple):
    """The beginning of a packed object: `size` is what its stream inflates to."""

    kind: int
    size: int
    at: int
    base: int | None
    """Where the base of a delta lies."""


class _Pack:
    """One pack and its index."""

    def __init__(self, index: PackIndex, data: mmap.mmap, oid_length: int) -> None:
        self._index, self._data, self._oid_length = index, data, oid_length
        self._cache: OrderedDict[int, Raw] = OrderedDict()
        self._cached = 0

    def read(self, name: bytes) -> Raw:
        return self._resolve(int(self._index.object_offset(name)))  # type: ignore[arg-type]  # dulwich has a type of its own for names

    def close(self) -> None:
        self._index.close()
        self._data.close()

    def _resolve(self, at: int) -> Raw:
        """Follow the deltas down to something whole, then apply them on the way back."""
        chain: list[tuple[int, bytes]] = []
        room = CHAIN_BYTES
        while at not in self._cache:
            head = self._head(at)
            room -= head.size
            if head.size > OBJECT_LIMIT or room < 0 or len(chain) >= MAX_CHAIN:
                raise BadObject("an object is larger than any that is read")
            data = _inflate(self._data, head.at, head.size)
            if head.base is None:
                self._keep(at, Raw(head.kind, data))
                break
            chain.append((at, data))
            at = head.base
        found = self._cache[at]
        self._cache.move_to_end(at)
        for place, delta in reversed(chain):
            size = _result_size(delta)
            room -= size
            if size > OBJECT_LIMIT or room < 0:
                raise BadObject("a delta makes more than is read")
            found = Raw(found.kind, _applied(found.data, delta))
            self._keep(place, found)
        return found

    def _keep(self, at: int, found: Raw) -> None:
        self._cache[at] = found
        self._cached += len(found.data)
        while self._cached > _CACHED and len(self._cache) > 1:
            self._cached -= len(self._cache.popitem(last=False)[1].data)

    def _head(self, at: int) -> _Head:
        if not 0 < at < len(self._data):
            raise BadObject("an offset lies outside of its pack")
        byte = self._data[at]
        kind, size, shift, place = byte >> 4 & 7, byte & 15, 4, at + 1
        while byte & 0x80:
            byte = self._data[place]
            size |= (byte & 0x7F) << shift
            shift, place = shift + 7, place + 1
            if shift > 7 * _NUMBER_BYTES:
                raise BadObject("a number is too long")
        if kind == _OFFSET_DELTA:
            back, place = self._offset(place)
            if not 0 < back < at:
                raise BadObject("a delta stands on nothing")
            return _Head(kind, size, place, at - back)
        if kind == _NAMED_DELTA:
            name = self._data[place : place + self._oid_length]
            base = int(self._index.object_offset(name))  # type: ignore[arg-type]  # dulwich has a type of its own for names
            return _Head(kind, size, place + self._oid_length, base)
        if kind not in _KINDS.values():
            raise BadObject("an object is of no kind")
        return _Head(kind, size, place, None)

    def _offset(self, place: int) -> tuple[int, int]:
        """Read how far back the base lies (git's own kind of number), and where that ends."""
        byte = self._data[place]
        value = byte & 0x7F
        for count in range(1, _NUMBER_BYTES):
            if not byte & 0x80:
                return value, place + count
            byte = self._data[place + count]
            value = ((value + 1) << 7) | (byte & 0x7F)
        raise BadObject("a number is too long")


def _inflate(data: mmap.mmap | bytes, at: int, size: int) -> bytes:
    """Inflate exactly `size` bytes."""
    stream = zlib.decompressobj()
    # whoever stored bytes uncompressed needed a few more of them than they are
    found = stream.decompress(data[at : at + size + (size >> 6) + _SLACK], size + 1)
    if len(found) != size:
        raise BadObject("an object is longer or shorter than it says")
    return found


def _applied(base: bytes, delta: bytes) -> bytes:
    pieces: list[bytes] = _apply(base, delta)  # pyright: ignore[reportUnknownVariableType]
    return b"".join(pieces)  # pyright: ignore[reportUnknownArgumentType]


def _result_size(delta: bytes) -> int:
    """Read what a delta says that it makes: the second of the numbers that it begins with."""
    at = size = 0
    for _ in range(2):  # the base's size, then the result's
        size = shift = 0
        while True:
            byte = delta[at]
            size |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if not byte & 0x80:
                break
            if shift > 7 * _NUMBER_BYTES:
                raise BadObject("a number is too long")
    return size


def _loose(data: bytes) -> Raw:
    stream = zlib.decompressobj()
    whole = stream.decompress(data, OBJECT_LIMIT + 1)
    head, mark, body = whole.partition(b"\0")
    word, _, size = head.partition(b" ")
    if not mark or word not in _KINDS or len(body) > OBJECT_LIMIT or int(size) != len(body):
        raise BadObject("a loose object is none, or larger than any that is read")
    return Raw(_KINDS[word], body)


def _open_packs(objects: Dir, shape: ObjectFormat) -> Iterator[_Pack]:
    folder = objects.enter(b"pack")
    if folder is None:
        return
    try:
        names = [match[1] for name in folder.names() if (match := _PACK.fullmatch(name))]
        for name in names[:MAX_PACKS]:
            pack = _open_pack(folder, name, shape)
            if pack is not None:
                yield pack
    finally:
        folder.close()


def _open_pack(folder: Dir, name: bytes, shape: ObjectFormat) -> _Pack | None:
    data = _mapped(folder, name + b".pack")
    if data is None:
        return None
    try:
        with (
            _regular(folder, name + b".idx") as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            index = load_pack_index_file(os.fsdecode(name), file, shape)
            return _Pack(index, data, shape.oid_length)
    except Exception:  # a damaged or crafted index makes the reader raise anything
        data.close()
        return None


def _mapped(folder: Dir, name: bytes) -> mmap.mmap | None:
    try:
        with _regular(folder, name) as descriptor:
            return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return None


@contextlib.contextmanager
def _regular(folder: Dir, name: bytes) -> Generator[int]:
    """Open a regular file in `folder`; OSError for a link, a pipe or a device."""
    descriptor = os.open(name, FILE_FLAGS, dir_fd=folder.descriptor)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{name!a} is no regular file")
        yield descriptor
    finally:
        os.close(descriptor)
