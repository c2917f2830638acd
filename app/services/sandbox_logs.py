"""What a sandbox's program prints: its beginning in memory, and all of it on disk when it is long.

A stream that fits into its head leaves no file. A longer one is kept whole, to a cap, in
`$XDG_STATE_HOME/cloche/sandboxes/<id>/`; old ones go when a new sandbox is started.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from typing import TYPE_CHECKING, Final

from app.client.sandboxes import logs_folder
from app.paths import private_folder
from app.records import valid_id

if TYPE_CHECKING:
    from pathlib import Path

    from app.paths import Paths

HEAD: Final = 64 << 10
"""Bytes of each stream that a report holds."""

LOG_CAP: Final = 64 << 20
"""Bytes of each stream that its log holds."""

KEPT_RUNS: Final = 20
KEPT_BYTES: Final = 1 << 30
"""Most that the logs of all earlier runs may take; the oldest go first."""

MIN_AGE_S: Final = 60.0
"""A younger run's logs stay: somebody may be about to read them."""

RESERVE: Final = 256 << 20
"""Bytes of the disk that a log leaves free, however much the guest prints."""

CHECK_EVERY: Final = 4 << 20


class Captured:
    """One stream of a program, taken as it comes."""

    def __init__(self, log: Path, cap: int = LOG_CAP) -> None:
        self._path = log
        self._cap = cap
        self._head = bytearray()
        self._file: int | None = None
        self._logged = self._checked = 0
        self._full = False
        self.total = 0
        """Bytes in all, also of those that are kept nowhere."""
        self.problem = ""
        """Why the log is not whole though it is below its cap."""

    @property
    def head(self) -> str:
        """The first HEAD bytes as text."""
        return bytes(self._head).decode(errors="replace")

    @property
    def truncated(self) -> bool:
        """Whether the head is not all of it."""
        return self.total > len(self._head)

    @property
    def log(self) -> str | None:
        """The path of the log; None when the head is all of it, or no log could be made."""
        return str(self._path) if self._logged else None

    async def write(self, data: bytes) -> None:
        """Take the next piece."""
        before = len(self._head)
        self._head += data[: HEAD - before]
        self.total += len(data)
        if not self.truncated or self._full:
            return
        try:
            if self._file is None:
                self._file = self._make()
                self._append(bytes(self._head[:before]))
            self._append(data)
        except OSError as error:
            self._stop(f"The log could not be written: {error.strerror}.")

    def _make(self) -> int:
        private_folder(self._path.parent.parent)
        private_folder(self._path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self._path, flags, 0o600)

    def _append(self, data: bytes) -> None:
        assert self._file is not None
        self._check_room(len(data))
        view = memoryview(data)[: self._cap - self._logged]
        while view and not self._full:
            written = os.write(self._file, view)
            self._logged += written
            view = view[written:]
        self._full = self._full or self._logged >= self._cap

    def _check_room(self, size: int) -> None:
        self._checked -= size
        if self._checked < 0 and self._file is not None:
            self._checked = CHECK_EVERY
            room = os.fstatvfs(self._file)
            if room.f_bavail * room.f_frsize < RESERVE:
                self._stop(f"The log ends where less than {RESERVE >> 20} MiB were free.")

    def _stop(self, problem: str) -> None:
        """Log no more; what the program prints is still counted, and its head kept."""
        self._full, self.problem = True, problem

    def close(self) -> None:
        """Say at the log's end what it lacks."""
        if self._file is None:
            return
        if self._logged < self.total:
            left = self.total - self._logged
            note = f"\n[cloche: the log ends here; {left} more bytes were printed]\n"
            with contextlib.suppress(OSError):  # a full disk, of which `problem` tells
                os.write(self._file, note.encode())
        os.close(self._file)
        self._file = None

    def discard(self) -> None:
        """Close and remove the log, of which no report will tell."""
        self.close()
        if self._logged:
            with contextlib.suppress(OSError):  # the next start removes what cannot go now
                self._path.unlink()
                self._path.parent.rmdir()


def prune(paths: Paths, now: float | None = None) -> None:
    """Remove logs of earlier runs: beyond KEPT_RUNS, or older ones beyond KEPT_BYTES in all."""
    folder = logs_folder(paths, "")
    try:
        runs = sorted(filter(valid_id, os.listdir(folder)), reverse=True)  # ids sort by age
    except FileNotFoundError:
        return
    oldest = (time.time() if now is None else now) - MIN_AGE_S
    size = 0
    for place, name in enumerate(runs):
        with contextlib.suppress(FileNotFoundError):  # another client removes them as well
            run = folder / name
            size += sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(run))
            keep = place < KEPT_RUNS and size <= KEPT_BYTES
            if not keep and run.lstat().st_mtime < oldest:
                shutil.rmtree(run)
