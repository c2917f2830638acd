"""Laying contents ready: new ones under temporary names, old ones in the merge's folder."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from .writeback_tree import OPEN_FILE, PERMISSIONS, Entry, digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .writeback_ops import Exactly, Op

_CHUNK: Final = 1 << 20
_MAX_ATTRIBUTES: Final = 256 << 10
"""Bytes of extended attributes that are kept of one entry."""

_NEVER: Final = ("security.capability", "security.ima", "security.evm")
"""Attributes that hold for the old content only: a capability must not pass to new bytes."""

_REFUSED: Final = (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENODATA, errno.EINVAL)


def copy_out(
    folder_fd: int, name: bytes, keep: Callable[[Iterable[bytes]], object]
) -> tuple[Entry, dict[str, bytes]]:
    """Hand a file's content, or a link's target, to `keep` in pieces.

    Returns what was handed over, to be compared with what was expected, and its attributes.
    """
    status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        link = os.readlink(name, dir_fd=folder_fd)
        keep((link,))
        return Entry("link", 0, blake3(link).hexdigest()), {}
    fd = os.open(name, OPEN_FILE, dir_fd=folder_fd)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return Entry("special"), {}
        digest = blake3()
        keep(_pieces(fd, digest))
        mode = stat.S_IMODE(status.st_mode)
        return Entry("file", mode, digest.hexdigest()), attributes_of(fd)
    finally:
        os.close(fd)


def _pieces(fd: int, digest: blake3) -> Iterator[bytes]:
    """Read a file from its start, and hash what was read."""
    at = 0
    while chunk := os.pread(fd, _CHUNK, at):
        digest.update(chunk)
        yield chunk
        at += len(chunk)


def attributes_of(fd: int) -> dict[str, bytes]:
    """Return the extended attributes that pass on to a new content."""
    found: dict[str, bytes] = {}
    size = 0
    try:
        for name in os.listxattr(fd):
            if name not in _NEVER:
                value = os.getxattr(fd, name)
                size += len(value)
                if size <= _MAX_ATTRIBUTES:
                    found[name] = value
    except OSError as error:
        if error.errno not in _REFUSED:
            raise
    return found


def stage(folder_fd: int, temp: bytes, op: Op, attributes: Mapping[str, bytes]) -> None:
    """Make what a step puts in place, complete with mode, owner and attributes.

    Raises:
        OSError: no space, no permission, or what was read back is not what was written.

    """
    match op.post.kind:
        case "dir":
            os.mkdir(temp, 0o700, dir_fd=folder_fd)
            fd = os.open(temp, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder_fd)
            try:
                _finish(fd, op, attributes)
            finally:
                os.close(fd)
        case "link":
            os.symlink(op.content, temp, dir_fd=folder_fd)
        case _:
            _stage_file(folder_fd, temp, op, attributes)


def _stage_file(folder_fd: int, temp: bytes, op: Op, attributes: Mapping[str, bytes]) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temp, flags, 0o600, dir_fd=folder_fd)
    try:
        view = memoryview(op.content)
        while view:
            view = view[os.write(fd, view[:_CHUNK]) :]
        if digest_of(fd) != op.post.digest:
            raise OSError(errno.EIO, os.strerror(errno.EIO), op.path)
        _finish(fd, op, attributes)
    finally:
        os.close(fd)


def _finish(fd: int, op: Op, attributes: Mapping[str, bytes]) -> None:
    """Set owner, attributes and mode, in this order: each may change what was set before."""
    exactly = op.exactly
    wanted = (exactly.uid, exactly.gid) if exactly else (op.pre.uid, op.pre.gid)
    if exactly or op.pre.kind == "file":
        _give(fd, *wanted)
    for name, value in (dict(exactly.xattrs) if exactly else attributes).items():
        try:
            os.setxattr(fd, name, value)
        except OSError as error:
            if error.errno not in _REFUSED:
                raise
    os.fchmod(fd, _allowed_mode(fd, op, exactly))


def _give(fd: int, uid: int, gid: int) -> None:
    """Give a file to its old owner as far as this user may."""
    status = os.fstat(fd)
    if (status.st_uid, status.st_gid) == (uid, gid):
        return
    try:
        os.fchown(fd, uid, gid)
    except PermissionError:
        # Only root may give files away; the merge then leaves them to whoever merges.
        return


def _allowed_mode(fd: int, op: Op, exactly: Exactly | None) -> int:
    """Return the mode to set: set-id bits only come back to the owner who had them."""
    if exactly is None:
        return op.post.mode & PERMISSIONS
    status = os.fstat(fd)
    if (status.st_uid, status.st_gid) == (exactly.uid, exactly.gid):
        return op.post.mode
    return op.post.mode & PERMISSIONS
