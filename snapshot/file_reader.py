"""Reading one file of a tree that may change meanwhile, into the image and past the hash.

What is hashed is what is written, always: a file that changes while it is read is read again, and
if it will not hold still, what was read last is both in the image and in the manifest.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import time
from typing import IO, TYPE_CHECKING, Final

from blake3 import blake3

from snapshot.errors import DISK_FULL
from snapshot.manifest import Entry
from snapshot.tarstream import header, padding
from snapshot.walk import FILE_FLAGS, refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from snapshot.image_writer import ImageWriter

SMALL: Final = 4 << 20
"""Files up to this many bytes are read whole before anything is written."""

CHUNK: Final = 1 << 20

TRIES: Final = 3
"""How often a file that changes is read before its last state is taken as it is."""

FRESH_S: Final = 2.0
"""A large file that was written this short ago may still be being written: it is copied first."""

PERMISSIONS: Final = 0o777
"""Setuid, setgid and sticky bits stay behind."""


_NOT_A_FILE: Final = frozenset({errno.ELOOP, errno.ENXIO})
"""A link or a socket has taken the file's place."""


class Torn(Exception):
    """A large file changed after its first bytes were already in the image."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path)
        self.path = path


class Skip(Exception):
    """The path is not captured; the message says why ("" when it is simply gone)."""


class FileReader:
    """Reads files and hands them to the image."""

    def __init__(
        self, writer: ImageWriter, spool: Path, limit: int, moving: set[bytes] | None
    ) -> None:
        """Read for `writer`; files over `limit` bytes are skipped.

        `spool` is a folder for copies, `moving` the large files that changed in an earlier try and
        are copied before they are written (None: every large file is).
        """
        self._writer = writer
        self._spool = spool
        self._limit = limit
        self._moving = moving
        self.unstable: list[bytes] = []
        self.hash_seconds = 0.0

    def file(
        self, directory: int, name: str | bytes, path: bytes, *, bounded: bool = True
    ) -> tuple[Entry, os.stat_result]:
        """Capture one regular file. Raises Skip, Torn, WorkspaceRefused."""
        try:
            descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
        except OSError as error:
            raise _cannot_open(path, error) from error
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise Skip("special file")
            if bounded and found.st_size > self._limit:
                raise Skip(f"larger than {self._limit} bytes")
            if found.st_size <= SMALL:
                return self._small(descriptor, found, path)
            return self._large(descriptor, found, path)
        except OSError as error:
            if error.errno in DISK_FULL:  # our copy of it found no room
                raise
            raise refused(path, error) from error
        finally:
            os.close(descriptor)

    def data(self, path: bytes, data: bytes, mode: int, mtime_ns: int, tracked: bool) -> Entry:
        """Put bytes that are already here into the image."""
        size = len(data)
        self._writer.write(header(path, "file", mode, size, mtime_ns, b""), data, padding(size))
        started = time.perf_counter()
        digest = blake3(data).hexdigest()
        self.hash_seconds += time.perf_counter() - started
        return Entry("file", mode, size, mtime_ns, digest, b"", tracked)

    def _small(
        self, descriptor: int, found: os.stat_result, path: bytes
    ) -> tuple[Entry, os.stat_result]:
        data = os.read(descriptor, found.st_size + 1)
        after = os.fstat(descriptor)
        if len(data) != found.st_size or not _same(found, after):
            data, after = self._again(descriptor, path)
        mode = after.st_mode & PERMISSIONS
        return self.data(path, data, mode, after.st_mtime_ns, False), after

    def _again(self, descriptor: int, path: bytes) -> tuple[bytes, os.stat_result]:
        """Read a file that changed (or came in pieces) from its start until it holds still."""
        data, found = b"", os.fstat(descriptor)
        for _ in range(TRIES):
            found = os.fstat(descriptor)
            data = b"".join(_chunks(descriptor, min(found.st_size, SMALL) + 1))
            after = os.fstat(descriptor)
            if len(data) == after.st_size and _same(found, after):
                return data, after
        self.unstable.append(path)
        return data, found

    def _large(
        self, descriptor: int, found: os.stat_result, path: bytes
    ) -> tuple[Entry, os.stat_result]:
        moving = self._moving is None or path in self._moving
        if moving or time.time() - found.st_mtime < FRESH_S:
            return self._copied(descriptor, path)
        entry = self._stream(_chunks(descriptor, found.st_size), found, path)
        if not _same(found, os.fstat(descriptor)):
            raise Torn(path)
        return entry, found

    def _copied(self, descriptor: int, path: bytes) -> tuple[Entry, os.stat_result]:
        """Copy a file that is being written until a copy is whole, then use the copy."""
        with tempfile.TemporaryFile(dir=self._spool) as copy:
            found = os.fstat(descriptor)
            for attempt in range(TRIES):
                found = os.fstat(descriptor)
                _refill(copy, _chunks(descriptor, min(found.st_size, self._limit)))
                if _same(found, os.fstat(descriptor)):
                    break
                if attempt == TRIES - 1:
                    self.unstable.append(path)
            copy.flush()
            return self._stream(_chunks(copy.fileno(), found.st_size), found, path), found

    def _stream(self, chunks: Iterator[bytes], found: os.stat_result, path: bytes) -> Entry:
        """Write exactly `found.st_size` bytes: what is missing becomes zeros, hashed as well."""
        mode, size = found.st_mode & PERMISSIONS, found.st_size
        self._writer.write(header(path, "file", mode, size, found.st_mtime_ns, b""))
        digest = blake3()
        left = size
        while left:
            chunk = next(chunks, b"") or bytes(min(left, CHUNK))
            left -= len(chunk)
            self._writer.write(chunk)
            started = time.perf_counter()
            digest.update(chunk)
            self.hash_seconds += time.perf_counter() - started
        self._writer.write(padding(size))
        return Entry("file", mode, size, found.st_mtime_ns, digest.hexdigest())


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (
        one.st_mtime_ns == other.st_mtime_ns
        and one.st_size == other.st_size
        and one.st_ctime_ns == other.st_ctime_ns
    )


def _chunks(descriptor: int, size: int) -> Iterator[bytes]:
    """Read at most `size` bytes from the file's start."""
    at = 0
    while at < size and (chunk := os.pread(descriptor, min(CHUNK, size - at), at)):
        at += len(chunk)
        yield chunk


def _refill(copy: IO[bytes], chunks: Iterator[bytes]) -> None:
    copy.seek(0)
    copy.truncate()
    for chunk in chunks:
        copy.write(chunk)


def _cannot_open(path: bytes, error: OSError) -> Exception:
    """Say what it means that a listed file cannot be opened."""
    if isinstance(error, FileNotFoundError):
        return Skip("")
    if error.errno in _NOT_A_FILE:
        return Skip("special file")
    return refused(path, error)
