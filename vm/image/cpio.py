"""A deterministic writer of `newc` cpio archives, the format of an initramfs.

Owners are root and times zero, so equal contents give equal bytes. Parents are added where the
caller named none, for the kernel makes no directories on its own.
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_TRAILER = "TRAILER!!!"
_FIRST_INODE = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One member: `mode` includes the file type, `data` is the content or a link's target."""

    path: str
    """Relative, without a leading slash."""
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)
    """Major and minor of a device node."""


def file(path: str, data: bytes, mode: int = 0o644) -> Entry:
    """Return a regular file."""
    return Entry(path, stat.S_IFREG | mode, data)


def folder(path: str, mode: int = 0o755) -> Entry:
    """Return a directory."""
    return Entry(path, stat.S_IFDIR | mode)


def link(path: str, target: str) -> Entry:
    """Return a symbolic link to `target`."""
    return Entry(path, stat.S_IFLNK | 0o777, target.encode())


def node(path: str, major: int, minor: int, mode: int = 0o600) -> Entry:
    """Return a character device."""
    return Entry(path, stat.S_IFCHR | mode, device=(major, minor))


def archive(entries: Iterable[Entry]) -> bytes:
    """Return the whole archive, padded to 512 bytes; the last entry of a path wins."""
    chosen = {entry.path: entry for entry in entries}
    for path in list(chosen):
        for parent in _parents(path):
            chosen.setdefault(parent, folder(parent))
    out = bytearray()
    for inode, path in enumerate(sorted(chosen), _FIRST_INODE):
        out += _member(chosen[path], inode)
    out += _member(Entry(_TRAILER, 0), 0)
    return bytes(out) + b"\0" * (-len(out) % 512)


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _member(entry: Entry, inode: int) -> bytes:
    name = entry.path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
    return _padded(head) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
