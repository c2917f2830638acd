"""Looking at and walking a real folder without ever following a link.

Every path starts at one open descriptor of the workspace and is walked component by component
with `O_NOFOLLOW`, so a folder that becomes a link in between ends the walk, never leads outside.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from blake3 import blake3

from .errors import WorkspaceRefused

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

EntryKind = Literal["none", "file", "link", "dir", "special"]

OPEN_DIR: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Without O_NONBLOCK a FIFO put in place of a file would hold the merge for ever."""

PERMISSIONS: Final = 0o777
_CHUNK: Final = 1 << 20
_BLOCKED: Final = (errno.ENOTDIR, errno.ELOOP)
BECAME_OTHER: Final = (errno.EINVAL, errno.ELOOP, errno.ENXIO)
"""A link, file or socket took the place of what was there a moment before."""

_LOOKS: Final = 3


class Blocked(Exception):
    """A folder on the way to a path is not there as a plain folder."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one name in a folder is."""

    kind: EntryKind
    mode: int = 0
    """Permission bits, set-id and sticky bits included; 0 for links."""
    digest: str = ""
    """blake3 of a file's content or a link's target, hex."""
    size: int = 0
    uid: int = 0
    gid: int = 0
    links: int = 1
    identity: tuple[int, int] = (0, 0)
    """Device and inode."""

    @property
    def executable(self) -> bool:
        """Whether its owner may execute it."""
        return bool(self.mode & stat.S_IXUSR)

    def is_same(self, other: Entry) -> bool:
        """Return whether two entries have the same kind, content and mode."""
        if self.kind != other.kind or self.digest != other.digest:
            return False
        return self.kind != "file" or self.mode == other.mode


NOTHING: Final = Entry("none")


class Tree:
    """One folder, held open; close it with `close` or a `with`."""

    def __init__(self, root: Path) -> None:
        try:
            self.fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise WorkspaceRefused(
                f"The workspace {root} cannot be opened: {error.strerror}.",
                f"Make it readable, then try again: ls -ld {root}",
            ) from error
        self.root = root
        status = os.fstat(self.fd)
        self.identity = (status.st_dev, status.st_ino)

    def __enter__(self) -> Tree:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder; closing twice is fine."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    @contextlib.contextmanager
    def folder(self, path: bytes) -> Generator[int]:
        """Hold the folder at `path` (b"" is the root) open while the block runs.

        Raises:
            Blocked: it, or a folder on the way, is missing, a link or not a folder.

        """
        fd = os.dup(self.fd)
        try:
            for part in path.split(b"/") if path else ():
                below = _open_below(fd, part)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    def look(self, path: bytes) -> Entry:
        """Return what is at `path`; nothing where its folder is not a plain one."""
        folder, name = split_last(path)
        try:
            with self.folder(folder) as fd:
                return look_at(fd, name)
        except Blocked:
            return NOTHING

    def read(self, path: bytes, limit: int) -> bytes:
        """Return a file's content or a link's target.

        Raises:
            Blocked: its folder is not a plain one.
            OSError: it is not there, not readable or larger than `limit` bytes.

        """
        folder, name = split_last(path)
        with self.folder(folder) as fd:
            if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                return os.readlink(name, dir_fd=fd)
            with os.fdopen(os.open(name, OPEN_FILE, dir_fd=fd), "rb") as file:
                data = file.read(limit + 1)
        if len(data) > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        return data

    def names(self, path: bytes) -> set[bytes]:
        """Return the names in a folder.

        Raises:
            Blocked: it is not a plain folder.

        """
        with self.folder(path) as fd:
            return {os.fsencode(name) for name in os.listdir(fd)}


def _open_below(fd: int, part: bytes) -> int:
    try:
        return os.open(part, OPEN_DIR, dir_fd=fd)
    except FileNotFoundError as error:
        raise Blocked(part) from error
    except OSError as error:
        if error.errno in _BLOCKED:
            raise Blocked(part) from error
        raise


def split_last(path: bytes) -> tuple[bytes, bytes]:
    """Return the folder (b"" for the root) and the last component of a path."""
    folder, _, name = path.rpartition(b"/")
    return folder, name


def ancestors(path: bytes) -> list[bytes]:
    """Return the folders above a path, the outermost first, without the root."""
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def look_at(fd: int, name: bytes) -> Entry:
    """Return what `name` in an open folder is, without following it.

    What keeps becoming something else while it is looked at counts as special.
    """
    for _ in range(_LOOKS):
        try:
            return _look_once(fd, name)
        except FileNotFoundError:
            return NOTHING
        except OSError as error:
            if error.errno not in BECAME_OTHER:
                raise
    return Entry("special")


def _look_once(fd: int, name: bytes) -> Entry:
    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(name, dir_fd=fd)
        return _entry("link", status, blake3(target).hexdigest(), len(target))
    if stat.S_ISDIR(status.st_mode):
        return _entry("dir", status, "", 0)
    if not stat.S_ISREG(status.st_mode):
        return _entry("special", status, "", 0)
    file_fd = os.open(name, OPEN_FILE, dir_fd=fd)
    try:
        status = os.fstat(file_fd)
        if not stat.S_ISREG(status.st_mode):
            return _entry("special", status, "", 0)
        return _entry("file", status, digest_of(file_fd), status.st_size)
    finally:
        os.close(file_fd)


def digest_of(fd: int) -> str:
    """Return the blake3 digest of an open file from its start, hex."""
    digest = blake3()
    at = 0
    while chunk := os.pread(fd, _CHUNK, at):
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest()


def _entry(kind: EntryKind, status: os.stat_result, digest: str, size: int) -> Entry:
    mode = 0 if kind == "link" else stat.S_IMODE(status.st_mode)
    identity = (status.st_dev, status.st_ino)
    return Entry(kind, mode, digest, size, status.st_uid, status.st_gid, status.st_nlink, identity)


def file_mask() -> int:
    """Return this process's umask without touching it (setting it would race with threads)."""
    try:
        with open("/proc/self/status", "rb") as file:
            for line in file:
                if line.startswith(b"Umask:"):
                    return int(line.split()[1], 8)
    except OSError:
        # Without /proc the mask cannot be read; the strictest usual one is safe.
        return 0o077
    return 0o077
