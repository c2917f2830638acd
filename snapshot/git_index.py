"""Git's index: which names are tracked, and the guest's copy of it.

The guest's copy keeps the entries. Files that the agent does not get bear skip-worktree, so status
stays clean and no commit deletes them. An entry that the host's git would call unchanged by its
times gets the times of the image; any other gets none, and the guest's git looks at the content.
"""

from __future__ import annotations

import hashlib
import io
import stat
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from dulwich.index import (
    EXTENDED_FLAG_SKIP_WORKTREE,
    FLAG_EXTENDED,
    SerializedIndexEntry,
    SparseDirExtension,
    read_index,
    write_index,
)
from dulwich.object_format import SHA1, SHA256

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from dulwich.object_format import ObjectFormat

MAX_BYTES: Final = 512 << 20
"""Longest index file that is read (about four million entries)."""

_LONG_NAME: Final = 0xFFF
"""The reader cannot tell the end of names this long or longer."""

_FLAG_BYTES: Final = 0xFFFF
_U32: Final = 0xFFFFFFFF


class UnreadableIndex(ValueError):
    """The index has a form that cannot be carried over; the message says which."""


def object_format(name: str) -> ObjectFormat:
    """Give dulwich's description of the hash "sha1" or "sha256"."""
    return SHA256 if name == "sha256" else SHA1


@dataclass(slots=True)
class GitIndex:
    """One index; `folder` is its working tree in the workspace, with a slash or empty."""

    folder: bytes
    hash_name: str
    entries: list[SerializedIndexEntry] = field(default_factory=list[SerializedIndexEntry])
    written: tuple[int, int] = (0, 0)
    """When the index file was written (seconds, nanoseconds)."""
    _places: dict[bytes, int] = field(default_factory=dict[bytes, int])
    _clean: bytearray = field(default_factory=bytearray)

    @classmethod
    def read(cls, data: bytes, folder: bytes, hash_name: str, mtime_ns: int) -> GitIndex:
        """Read an index file. Raises UnreadableIndex."""
        file = io.BytesIO(data)
        try:
            entries = list(read_index(file, object_format(hash_name)))
        except Exception as error:  # the reader raises whatever a broken file makes it do
            raise UnreadableIndex(f"git's index is damaged ({error})") from error
        if any(len(item.name) >= _LONG_NAME for item in entries):
            raise UnreadableIndex(f"git's index holds a name of {_LONG_NAME} bytes or more")
        if _has_extension(data, file.tell(), b"link", object_format(hash_name).oid_length):
            raise UnreadableIndex("git's index is split in two files")
        return cls(folder, hash_name, entries, divmod(mtime_ns, 1_000_000_000)).prepared()

    def prepared(self) -> GitIndex:
        """Make the table of names; call it after `entries` was set."""
        self._places = {self.folder + item.name: at for at, item in enumerate(self.entries)}
        self._clean = bytearray(len(self.entries))
        return self

    def __contains__(self, path: bytes) -> bool:
        return path in self._places

    def tracked(self) -> list[bytes]:
        """Give all tracked paths, relative to the workspace."""
        return list(self._places)

    def saw(self, path: bytes, found: os.stat_result) -> None:
        """Note the state of a tracked file or link as it was captured."""
        at = self._places.get(path)
        if at is not None and _unchanged(self.entries[at], found) and self._older(found):
            self._clean[at] = 1

    def _older(self, found: os.stat_result) -> bool:
        """Whether the file is older than the index: else its times prove nothing (git: racy)."""
        return divmod(found.st_mtime_ns, 1_000_000_000) < self.written

    def render(self, left_out: Callable[[bytes], bool]) -> bytes:
        """Write the guest's index; `left_out` says which workspace paths the agent does not get."""
        file = io.BytesIO()
        entries = [
            _for_guest(item, bool(self._clean[at]), left_out(self.folder + item.name))
            for at, item in enumerate(self.entries)
        ]
        sparse = any(stat.S_ISDIR(item.mode) for item in entries)
        extensions = [SparseDirExtension()] if sparse else []
        kind = object_format(self.hash_name)
        write_index(file, entries, version=2, extensions=extensions, object_format=kind)
        data = file.getvalue()
        return data + hashlib.new(self.hash_name, data).digest()


def _pair(value: float | tuple[int, int]) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (int(value), 0)


def _unchanged(entry: SerializedIndexEntry, found: os.stat_result) -> bool:
    """Compare as git does; parts that the index does not know (zero) are not compared."""
    seconds, fraction = _pair(entry.mtime)
    changed, _ = _pair(entry.ctime)
    mtime_s, mtime_ns = divmod(found.st_mtime_ns, 1_000_000_000)
    return (
        seconds == mtime_s & _U32
        and fraction in (0, mtime_ns)
        and entry.size == found.st_size & _U32
        and entry.ino in (0, found.st_ino & _U32)
        and changed in (0, found.st_ctime_ns // 1_000_000_000 & _U32)
    )


def _for_guest(entry: SerializedIndexEntry, clean: bool, left_out: bool) -> SerializedIndexEntry:
    extended = entry.extended_flags | (EXTENDED_FLAG_SKIP_WORKTREE if left_out else 0)
    return replace(
        entry,
        ctime=(0, 0),
        mtime=(_pair(entry.mtime)[0], 0) if clean else (0, 0),
        dev=0,
        ino=0,
        uid=0,
        gid=0,
        size=entry.size if clean else 0,
        flags=entry.flags & _FLAG_BYTES & ~FLAG_EXTENDED,
        extended_flags=extended,
    )


def _has_extension(data: bytes, at: int, wanted: bytes, checksum: int) -> bool:
    """Look through the extensions from `at` on."""
    while at + 8 <= len(data) - checksum:
        if data[at : at + 4] == wanted:
            return True
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    return False
