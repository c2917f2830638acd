"""Small file operations that never leave a half-written file behind."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import TYPE_CHECKING

from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

MAX_OWN_FILE = 64 << 20
"""Largest file of ours that is read at once, in bytes; anything longer is damage."""


def write_atomic(path: Path, data: bytes | bytearray, mode: int = 0o600) -> None:
    """Replace `path` by `data`: a reader sees the old content or the new one, never a part.

    Raises OSError as the system does (a full disk, a folder that is gone).
    """
    write_pieces(path, (data,), mode)


def write_pieces(path: Path, pieces: Iterable[bytes | bytearray], mode: int = 0o600) -> None:
    """Do the same with a content that is made while it is written."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        _write_new(temporary, pieces, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def overwrite(path: Path, data: bytes) -> bool:
    """Put text in the place of `path`'s, for a disk without room for a second file.

    Only where the blocks that the file has are enough, so that the one write is whole; a shorter
    text is filled up with blanks. False when it does not fit; raises OSError as the system does.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if len(data) > found.st_blocks * 512:  # stat(2) counts in 512 bytes, whatever the disk does
            return False
        os.pwrite(descriptor, data.ljust(found.st_size), 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def _write_new(path: Path, pieces: Iterable[bytes | bytearray], mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_regular(path: Path, limit: int = MAX_OWN_FILE) -> bytes:
    """Return the content of a regular file of at most `limit` bytes, following no link.

    Raises FileNotFoundError, or AppError `unreadable` for anything else than such a file.
    """
    with open_regular(path) as descriptor:
        data = bytearray()
        while len(data) <= limit:
            chunk = os.read(descriptor, min(limit + 1 - len(data), 1 << 20))
            if not chunk:
                return bytes(data)
            data += chunk
    raise AppError(
        "unreadable", f"{path} is longer than {limit} bytes.", f"Look at it: ls -l '{path}'"
    )


@contextlib.contextmanager
def open_regular(path: Path) -> Generator[int]:
    """Yield a descriptor of a regular file; a link, pipe or device is refused unopened."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from error
    try:
        if not os.path.isfile(f"/proc/self/fd/{descriptor}"):
            raise _unreadable(path, "it is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _unreadable(path: Path, reason: str) -> AppError:
    return AppError(
        "unreadable", f"{path} cannot be read: {reason}.", f"Look at it: ls -l '{path}'"
    )
