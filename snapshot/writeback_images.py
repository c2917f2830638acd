"""The contents that a merge keeps, all in one archive of its folder.

A file of its own for each of thousands of contents would cost a merge more than all else: a file
system makes and syncs one large file far quicker. The archive is a plain tar, so its contents can
be had by hand even where the journal, which says where each of them begins, is lost.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from .tarstream import BLOCK, header, padding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

ARCHIVE: Final = "images.tar"
"""The archive's name in a merge's folder."""

Span = tuple[int, int]
"""Where a content begins in the archive, and how many bytes it has."""


class Images:
    """Contents by their names: `pre/N`, `pre/N.xattrs`, `post/N`, `asked/N`.

    Merges of earlier versions have a file for each name instead; those are read as well.
    """

    def __init__(self, folder: Path, index: Mapping[str, Span]) -> None:
        self.folder = folder
        self._index = index

    def read(self, name: str) -> bytes:
        """Return a content. Raises OSError, FileNotFoundError where there is none."""
        span = self._index.get(name)
        if span is None:
            return (self.folder / name).read_bytes()
        start, size = span
        fd = os.open(self.folder / ARCHIVE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.fstat(fd).st_size < start + size:
                raise OSError(errno.EIO, os.strerror(errno.EIO), self.path(name))
            return _read_at(fd, start, size)
        finally:
            os.close(fd)

    def path(self, name: str) -> str:
        """Return where a content lies, for people."""
        folder = self.folder / ARCHIVE if name in self._index else self.folder
        return f"{folder}/{name}"

    def put_out(self, name: str) -> Path:
        """Make a content a file of its own, for somebody to compare; where. Raises OSError."""
        path = self.folder / name
        if name in self._index:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_bytes(self.read(name))
        return path


def _read_at(fd: int, start: int, size: int) -> bytes:
    """Read from a place; one call to the system reads 2 GiB at most."""
    parts: list[bytes] = []
    while size > 0 and (part := os.pread(fd, size, start)):
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return b"".join(parts)


class ImageWriter(Images):
    """The archive of a merge that is under way; close it."""

    def __init__(self, folder: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(folder / ARCHIVE, flags, 0o600)
        self._end = 0
        self.index: dict[str, Span] = {}
        """What is in it, for the journal."""
        super().__init__(folder, self.index)

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """Append a content; its record stands before it once it is whole. Raises OSError."""
        start = os.lseek(self._fd, self._end + BLOCK, os.SEEK_SET)
        size = sum(self._write(chunk) for chunk in chunks)
        self._write(padding(size))
        os.pwrite(self._fd, header(name.encode(), "file", 0o600, size, 0, b""), self._end)
        self._end = start + size + len(padding(size))
        self.index[name] = (start, size)

    def _write(self, data: bytes) -> int:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
        return len(data)

    def close(self) -> None:
        """Close the archive; closing twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
