"""Renames that never replace what they did not expect, and syncing of a whole file system.

`renameat2` and `syncfs` of Linux are called through the C library. Some file systems know neither
exchange nor no-replace (`Unsupported`); then hard links give the nearest thing.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Final

_NOREPLACE: Final = 1
"""RENAME_NOREPLACE of <linux/fs.h>."""

_EXCHANGE: Final = 2
"""RENAME_EXCHANGE of <linux/fs.h>."""

_UNSUPPORTED: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)

_libc = ctypes.CDLL(None, use_errno=True)


class Unsupported(OSError):
    """The kernel or this file system has no such rename."""


def exchange(from_fd: int, old: bytes, to_fd: int, new: bytes) -> None:
    """Swap two existing names in one step.

    Raises:
        Unsupported: not possible here.
        OSError: a name is missing or may not be changed.

    """
    _renameat2(from_fd, old, to_fd, new, _EXCHANGE)


def move(from_fd: int, old: bytes, to_fd: int, new: bytes) -> bool:
    """Rename; fails with FileExistsError where the new name is taken.

    Where the file system cannot promise that, a hard link can (for files and links), and a new
    folder of that name proves that there was none. Returns whether it was one step.
    """
    try:
        _renameat2(from_fd, old, to_fd, new, _NOREPLACE)
    except Unsupported:
        _move_by_link(from_fd, old, to_fd, new)
        return False
    return True


def _move_by_link(from_fd: int, old: bytes, to_fd: int, new: bytes) -> None:
    try:
        os.link(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)
    except (IsADirectoryError, PermissionError):
        # EPERM: a folder cannot be linked; an empty one in its place is replaced by the rename
        os.mkdir(new, dir_fd=to_fd)
    else:
        os.unlink(old, dir_fd=from_fd)
        return
    os.rename(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd)


def _renameat2(from_fd: int, old: bytes, to_fd: int, new: bytes, flags: int) -> None:
    function = getattr(_libc, "renameat2", None)
    if function is None:
        raise Unsupported(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if function(from_fd, old, to_fd, new, flags) == 0:
        return
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        raise Unsupported(number, os.strerror(number), old)
    raise OSError(number, os.strerror(number), old)


def sync_file_system(fd: int) -> None:
    """Write everything of the file system behind `fd` to its disk.

    Raises:
        OSError: an earlier or this write failed.

    """
    if _libc.syncfs(fd):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
