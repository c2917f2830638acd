"""qcow2 overlays: making them, and checking that what they stand on is what we say.

A qcow2 header can name any file or URL of the host as its backing. QEMU is always given the whole
chain explicitly, and before each start the headers are read here and must say the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import struct
from typing import TYPE_CHECKING

from vm.errors import HostLacks, VMError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from vm.machine.spec import Backing, Disk, DiskFormat

QEMU_IMG_TIMEOUT_S = 30.0

# The numbers below are those of QEMU's docs/interop/qcow2.txt.
QCOW2_MAGIC = 0x514649FB
BACKING_FORMAT = 0xE2792ACA
DATA_FILE_NAME = 0x44415441
INCOMPATIBLE_CORRUPT = 1 << 1
INCOMPATIBLE_DATA_FILE = 1 << 2
MAX_BACKING_NAME = 1023
_HEADER = struct.Struct(">IIQIIQI")
_HEADER_AREA = 65536
"""Header, extensions and backing name lie in the first cluster, 64 KiB unless made otherwise."""


class BadDisk(VMError):
    """A disk is missing, damaged, or stands on something else than it should."""

    code = "bad-disk"
    way_out = "Merge what is worth keeping, then: cloche rm ID"


class DiskFull(VMError):
    """The host's disk has no room left."""

    code = "disk-full"
    way_out = "Free some space: df -h"


async def create_overlay(path: Path, backing: Backing) -> None:
    """Make a new qcow2 file (mode 0600) that stands on `backing`.

    Raises HostLacks without qemu-img, DiskFull, and BadDisk for anything else that fails.
    """
    program = shutil.which("qemu-img")
    if program is None:
        raise HostLacks("qemu-img is not installed.", "Run: sudo apt install qemu-utils")
    _reserve(path)
    words = ("create", "-q", "-f", "qcow2", "-b", str(backing.path), "-F", backing.format)
    with _removed_unless_whole(path):
        status, said = await _call(program, *words, str(path))
        if status != 0:
            raise _failure(path, said)


def _reserve(path: Path) -> None:
    """Make the file ourselves, so that it is new and nobody else can read it."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(path) from error
        raise BadDisk(
            f"{path} could not be made: {error.strerror}.", f"Look at it: ls -ld '{path.parent}'"
        ) from error


@contextlib.contextmanager
def _removed_unless_whole(path: Path) -> Generator[None]:
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _failure(path: Path, said: str) -> VMError:
    """Say what went wrong in qemu-img."""
    if "No space left" in said:
        return disk_full(path)
    message = f"qemu-img could not make {path}: {said.strip()[-300:]}"
    return BadDisk(message, "Look whether qemu-img works: cloche doctor")


def disk_full(path: Path) -> DiskFull:
    """Return the error for a file that found no room."""
    return DiskFull(f"There is no room left for {path}.", f"Free some space: df -h '{path.parent}'")


async def _call(program: str, *arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.defpath, "LC_ALL": "C"},
    )
    try:
        async with asyncio.timeout(QEMU_IMG_TIMEOUT_S):
            said, _ = await process.communicate()
    except TimeoutError:
        return 1, f"no answer within {QEMU_IMG_TIMEOUT_S:g} s"
    finally:
        if process.returncode is None:  # out of time, or the caller was cancelled
            process.kill()
            await process.communicate()
    return process.returncode or 0, said.decode(errors="replace")


def verify(disk: Disk) -> None:
    """Raise BadDisk unless the file is of its format and its header names exactly its backing."""
    _verify(disk.path, disk.format, disk.backing)


def _verify(path: Path, fmt: DiskFormat, backing: Backing | None) -> None:
    head = _read_head(path)
    if fmt == "qcow2":
        found = _backing_of(head, path)
        wanted = (os.fsencode(backing.path), backing.format.encode()) if backing else None
        if found != wanted:
            raise BadDisk(
                f"{path} stands on {found!r} and should stand on {wanted!r}.",
                "Do not use this disk; start again from a checkpoint or a new session.",
            )
    if backing is not None:
        _verify(backing.path, backing.format, backing.backing)


def _read_head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEADER_AREA)
    except OSError as error:
        raise BadDisk(f"{path} cannot be read: {error.strerror}.") from error


def _backing_of(head: bytes, path: Path) -> tuple[bytes, bytes] | None:
    """Return name and format of the backing file as the qcow2 header gives them."""
    if len(head) < 104:
        raise BadDisk(f"{path} is no qcow2 file.")
    magic, version, offset, length, _bits, _size, crypt = _HEADER.unpack_from(head)
    if magic != QCOW2_MAGIC or version not in (2, 3) or crypt != 0:
        raise BadDisk(f"{path} is no qcow2 file that Cloche made.")
    extensions = _extensions(head, version, path)
    if offset == 0:
        return None
    if length > MAX_BACKING_NAME or offset + length > len(head):
        raise BadDisk(f"{path} has a damaged header.")
    return head[offset : offset + length], extensions.get(BACKING_FORMAT, b"")


def _extensions(head: bytes, version: int, path: Path) -> dict[int, bytes]:
    position = 72
    if version == 3:
        (incompatible,) = struct.unpack_from(">Q", head, 72)
        (position,) = struct.unpack_from(">I", head, 100)
        if incompatible & (INCOMPATIBLE_CORRUPT | INCOMPATIBLE_DATA_FILE):
            raise BadDisk(f"{path} is marked corrupt or keeps its data in another file.")
    found: dict[int, bytes] = {}
    while position + 8 <= len(head):
        kind, length = struct.unpack_from(">II", head, position)
        if kind == 0:
            return found
        if kind == DATA_FILE_NAME or position + 8 + length > len(head):
            break
        found[kind] = head[position + 8 : position + 8 + length]
        position += 8 + (length + 7) // 8 * 8
    raise BadDisk(f"{path} has a damaged header.")
