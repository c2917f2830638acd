"""Out of the guest: what it says is checked, and nothing gets its name before it is whole.

A file is written beside its place and then takes it in one rename. A folder grows under a temporary
name, in a folder that only we may enter, and gets its own at the end. No link is made, none is
followed, none is written through.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import shutil
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.client.copying.channel import copy_channel
from app.client.copying.report import FORBIDDEN, LIMITS, CopyLimits, CopyReport, Progress, forbidden
from app.copy_stream import (
    BrokenFile,
    CopyRequest,
    Reader,
    Record,
    error_text,
    read_chunks,
    read_record,
)
from app.errors import AppError
from app.wire_text import to_text
from snapshot.renameat import move, sync_file_system
from snapshot.temp_names import temp_name
from vm.errors import GuestProtocol

if TYPE_CHECKING:
    from pathlib import Path

    from app.client.session import SessionClient

RESERVE: Final = 256 << 20
"""Bytes of the disk that a copy leaves free, however much the guest has to say."""

LOOK: Final = "Look what is there: cloche exec ID -- ls -la"
CHECK_EVERY: Final = 16 << 20
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Place:
    """Where a copy goes: the open folder, the name in it, the path to tell of."""

    folder: int
    name: bytes
    path: Path
    folder_meant: bool = False
    """Whether it was written with a slash at its end: then no file takes that name."""
    limits: CopyLimits = LIMITS


async def copy_out(
    client: SessionClient,
    source: bytes,
    target: Path,
    *,
    root: bool,
    progress: Progress,
    folder_meant: bool = False,
    limits: CopyLimits = LIMITS,
) -> CopyReport:
    """Copy a file or folder of the guest to `target`, or into it where that is a folder.

    With `folder_meant` (it was written `target/`) a file needs the folder to be there.
    Raises AppError; then the host is as it was.
    """
    path = destination(source, target)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        meant = folder_meant and path == target
        place = Place(folder, os.fsencode(path.name), path, meant, limits)
        async with copy_channel(client, CopyRequest(to_text(source), root)) as channel:
            return await receive(channel.stdout, place, progress)
    finally:
        os.close(folder)


def destination(source: bytes, target: Path) -> Path:
    """Return the path that the copy will have; AppError for one that it must not have."""
    if target.is_symlink():
        raise _refused(target, "is a link")
    if target.is_dir():
        name = source.rstrip(b"/").rpartition(b"/")[2]
        if name in (b"", b".", b".."):
            text = f"'{to_text(source)}' has no name of its own."
            raise AppError("usage", text, f"Say what it shall be called: {target}/NAME")
        target = target / os.fsdecode(name)
    parent = target.parent
    if parent.exists() and not parent.is_dir():
        raise _refused(parent, "is no folder")
    if not parent.is_dir():
        raise _no_folder(parent)
    if target.name in ("", ".."):
        raise _refused(target, "has no name")
    return target


def _no_folder(path: Path) -> AppError:
    return AppError(
        "not-found", f"There is no folder {path}.", f"mkdir -p {shlex.quote(str(path))}"
    )


def _refused(path: Path, why: str) -> AppError:
    return AppError("refused", f"{path} {why}; nothing is written there.", "Choose another name.")


async def receive(reader: Reader, place: Place, progress: Progress) -> CopyReport:
    """Take one copy's stream to its end."""
    report = CopyReport(target=place.path, limits=place.limits)
    first = await read_record(reader)
    if first.path:
        raise GuestProtocol("The guest began a copy in its middle.")
    if first.kind == "f":
        await _receive_file(reader, first, place, report, progress)
    elif first.kind == "d":
        await _receive_folder(reader, first, place, report, progress)
    else:
        raise _nothing(first)
    return report


def _nothing(first: Record) -> AppError:
    if first.kind == "x" and first.mode in FORBIDDEN:
        raise forbidden(first)
    if first.kind == "x":
        code = "not-found" if first.mode == 2 else "guest-error"
        return AppError(code, f"The guest answered: {error_text(first)}.", LOOK)
    what = {"l": "a link", "s": "no regular file or folder"}.get(first.kind, "nothing")
    return AppError("refused", f"What shall be copied is {what}.", "Copy what it stands for.")


async def _receive_file(
    reader: Reader, first: Record, place: Place, report: CopyReport, progress: Progress
) -> None:
    if place.folder_meant:
        raise _no_folder(place.path)
    _check_free(place, stat.S_ISREG, "is there and is no file")
    fresh = _fresh_name()
    try:
        whole = await _content(reader, first, place.folder, fresh, report, progress, sync=True)
        if not whole:
            raise AppError("guest-error", "The guest could not read the file to its end.", LOOK)
        await _end(reader)
        os.rename(fresh, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=place.folder)
        raise
    os.fsync(place.folder)


def _fresh_name() -> bytes:
    return temp_name(f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}", 0)


def _check_free(place: Place, allowed: object, why: str) -> None:
    try:
        found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if allowed is stat.S_ISREG and stat.S_ISREG(found.st_mode):
        return
    raise _refused(place.path, why)


async def _end(reader: Reader) -> None:
    if (await read_record(reader)).kind != "z":
        raise GuestProtocol("The guest sent more than it was asked for.")


async def _receive_folder(
    reader: Reader, first: Record, place: Place, report: CopyReport, progress: Progress
) -> None:
    _check_free(place, None, "is there already")
    fresh = _fresh_name()
    os.mkdir(fresh, 0o700, dir_fd=place.folder)
    try:
        inside = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place.folder)
        try:
            report.folders += 1
            await _fill(reader, inside, report, progress)
            os.fchmod(inside, first.mode | 0o700)
            await asyncio.to_thread(sync_file_system, inside)
        finally:
            os.close(inside)
        _take_name(fresh, place)
    except BaseException:
        # it holds no link, so nothing outside of it goes with it
        await asyncio.to_thread(shutil.rmtree, place.path.parent / os.fsdecode(fresh), True)
        raise
    os.fsync(place.folder)


def _take_name(fresh: bytes, place: Place) -> None:
    try:
        move(place.folder, fresh, place.folder, place.name)
    except FileExistsError as error:
        raise _refused(place.path, "is there by now") from error


async def _fill(reader: Reader, inside: int, report: CopyReport, progress: Progress) -> None:
    while (record := await read_record(reader)).kind != "z":
        report.one_more()
        try:
            await _entry(reader, record, inside, report, progress)
        except (FileNotFoundError, FileExistsError, NotADirectoryError) as error:
            text = f"The guest's list contradicts itself at {to_text(record.path)[:200]!r}."
            raise GuestProtocol(text) from error


async def _entry(
    reader: Reader, record: Record, inside: int, report: CopyReport, progress: Progress
) -> None:
    if not record.path:
        raise GuestProtocol("The guest began a copy twice.")
    if record.kind == "d":
        os.mkdir(record.path, 0o700, dir_fd=inside)
        os.chmod(record.path, record.mode | 0o700, dir_fd=inside)
        report.folders += 1
    elif record.kind == "f":
        if not await _content(reader, record, inside, record.path, report, progress):
            os.unlink(record.path, dir_fd=inside)
            report.files -= 1
            report.skip(record.path, "could not be read to its end")
    else:
        why = {"l": "is a link", "s": "is no regular file"}
        report.skip(record.path, why.get(record.kind) or error_text(record))


async def _content(
    reader: Reader,
    record: Record,
    folder: int,
    name: bytes,
    report: CopyReport,
    progress: Progress,
    *,
    sync: bool = False,
) -> bool:
    """Write a new file; False when the guest could not read it on.

    With `sync` it is on the disk then; a folder's files are written to it all at once.
    """
    file = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        unchecked = CHECK_EVERY
        async for chunk in read_chunks(reader):
            report.grow(len(chunk))
            unchecked += len(chunk)
            if unchecked >= CHECK_EVERY:
                unchecked = 0
                _check_room(file)
            view = memoryview(chunk)
            while view:
                view = view[os.write(file, view) :]
            progress(report)
        os.fchmod(file, record.mode)
        if sync:
            await asyncio.to_thread(os.fsync, file)
    except BrokenFile:
        return False
    finally:
        os.close(file)
        report.files += 1
    return True


def _check_room(file: int) -> None:
    room = os.fstatvfs(file)
    if room.f_bavail * room.f_frsize < RESERVE:
        text = f"The disk has less than {RESERVE >> 20} MiB left; nothing is kept of the copy."
        raise AppError("disk-full", text, "Free some space: df -h")
