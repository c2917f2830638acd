"""Into the guest: walks the host's files by open folders and follows no link."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shlex
import stat
from typing import TYPE_CHECKING, Final

import asyncssh

from app.client.copying.channel import copy_channel
from app.client.copying.report import FORBIDDEN, CopyReport, Progress, forbidden
from app.copy_stream import (
    BROKEN,
    CHUNK,
    CopyRequest,
    Record,
    error_text,
    pack_length,
    pack_record,
    read_record,
)
from app.errors import AppError
from app.wire_text import to_text

if TYPE_CHECKING:
    from pathlib import Path

    from app.client.session import SessionClient

MAX_DEPTH: Final = 128
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER: Final = _OPEN | os.O_DIRECTORY


async def copy_into(
    client: SessionClient, source: Path, target: bytes, *, root: bool, progress: Progress
) -> CopyReport:
    """Copy a file or folder of the host to `target` in the guest, or into it if it is a folder.

    Each file gets its name in the guest when it is whole. Raises AppError.
    """
    report = CopyReport(target=to_text(target))
    path = _named(source)
    check_source(path)
    target = asked_of_guest(path, target)
    request = CopyRequest(to_text(target), root, into=True)
    async with copy_channel(client, request) as channel:
        sending = asyncio.create_task(_Sender(channel.stdin, report, progress).send(path))
        try:
            answer = await read_record(channel.stdout)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        # a file of ours that could not be read explains what the guest said of it
        if not sending.cancelled() and (error := sending.exception()) is not None:
            raise error
        _check_answer(answer, target)
    return report


def asked_of_guest(source: Path, target: bytes) -> bytes:
    """Return the target as the guest is told it: a file to `name/` needs the folder to be there.

    The guest itself ignores slashes at the end, but `name/.` is nothing unless `name` is a folder.
    """
    return target + b"." if target.endswith(b"/") and source.is_file() else target


def _named(source: Path) -> Path:
    """Return the source with a name of its own, whose last part is not followed."""
    if source.name in ("", ".."):
        return source.resolve()
    return source.parent.resolve() / source.name


def check_source(path: Path) -> None:
    """Raise AppError for what cannot be copied into a guest."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise AppError("not-found", f"There is no {path}.", "See: cloche cp --help") from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        what = "is a link" if stat.S_ISLNK(mode) else "is no regular file or folder"
        raise AppError("refused", f"{path} {what}.", "Copy what it stands for.")


def _check_answer(answer: Record, target: bytes) -> None:
    if answer.kind == "z":
        return
    if answer.kind == "x" and answer.mode == errno.ENOENT and answer.path == target:
        parent = to_text(target.rstrip(b"/").rpartition(b"/")[0])
        hint = f"Make it: cloche exec ID -- mkdir -p {shlex.quote(parent)}"
        raise AppError("not-found", f"There is no folder '{parent}' in the guest.", hint)
    if answer.kind == "x" and answer.mode in FORBIDDEN:
        raise forbidden(answer)
    about = f" about '{to_text(answer.path)}'" if answer.path else ""
    said = error_text(answer) if answer.kind == "x" else "something else than it was asked"
    raise AppError("guest-error", f"The guest answered{about}: {said}.", "See: cloche cp --help")


class _Sender:
    """Sends a tree; the guest's window bounds what is on its way."""

    def __init__(
        self, writer: asyncssh.SSHWriter[bytes], report: CopyReport, progress: Progress
    ) -> None:
        self._writer = writer
        self._report = report
        self._progress = progress

    async def send(self, path: Path) -> None:
        """Send `path` under its own name, then the end. A guest that hangs up ends it early."""
        parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # whoever hangs up has said why, or the reader of its answer finds out
        with contextlib.suppress(BrokenPipeError, ConnectionError, asyncssh.Error):
            try:
                await self._entry(parent, os.fsencode(path.name), os.fsencode(path.name), 0)
            finally:
                os.close(parent)
            await self._write(pack_record("z", 0, 0, b""))
            self._writer.write_eof()

    async def _entry(self, parent: int, name: bytes, path: bytes, depth: int) -> None:
        try:
            mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                self._report.skip(path, "is a link")
                return
            folder = stat.S_ISDIR(mode)
            if not (folder or stat.S_ISREG(mode)) or depth > MAX_DEPTH:
                self._report.skip(path, "is nested too deep" if folder else "is no regular file")
                return
            file = os.open(name, _FOLDER if folder else _OPEN, dir_fd=parent)
        except OSError as error:
            if depth == 0:
                raise
            self._report.skip(path, error.strerror or "cannot be read")
            return
        try:
            await (self._folder(file, path, depth) if folder else self._file(file, path))
        finally:
            os.close(file)

    async def _folder(self, folder: int, path: bytes, depth: int) -> None:
        await self._write(pack_record("d", os.fstat(folder).st_mode, 0, path))
        self._report.folders += 1
        for name in sorted(os.fsencode(name) for name in os.listdir(folder)):
            await self._entry(folder, name, path + b"/" + name, depth + 1)

    async def _file(self, file: int, path: bytes) -> None:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):  # another one since it was looked at
            self._report.skip(path, "is no regular file")
            return
        await self._write(pack_record("f", found.st_mode, found.st_size, path))
        try:
            while data := os.read(file, CHUNK):
                await self._write(pack_length(len(data)) + data)
                self._report.size += len(data)
                self._progress(self._report)
        except OSError:
            await self._write(pack_length(BROKEN))
            raise
        await self._write(pack_length(0))
        self._report.files += 1

    async def _write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()
