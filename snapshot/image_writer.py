"""The squashfs image as a stream: tar goes in through a pipe, the image comes out as a file."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import shutil
import subprocess
from typing import TYPE_CHECKING, Final, Self

from snapshot.errors import SnapshotError, ToolMissing
from snapshot.tarstream import END, OWNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BUFFER: Final = 512 << 10
"""Bytes gathered before they go into the pipe: fewer switches between the two processes."""

PIPE_BYTES: Final = 1 << 20
"""Wanted size of the pipe; the kernel's limit for ordinary users is the same."""

DEADLINE_S: Final = 300.0
"""Longest wait for mksquashfs to take more bytes, or to finish after the last one."""

_OPTIONS: Final = (
    *("-tar", "-comp", "lz4", "-noappend", "-no-recovery", "-no-xattrs", "-no-progress", "-quiet"),
    *("-force-uid", str(OWNER), "-force-gid", str(OWNER), "-mem", "512M", "-exit-on-error"),
)


def tool(name: str) -> str:
    """Find mksquashfs or unsquashfs; ToolMissing says how to get it."""
    found = shutil.which(name)
    if found is None:
        raise ToolMissing(
            f"{name} is not installed.", "Run: sudo apt-get install --yes squashfs-tools"
        )
    return found


def clean_environment() -> dict[str, str]:
    """Make what the squashfs tools see: no locale, no variable that changes times."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


def no_room(folder: Path) -> SnapshotError:
    """Make the error of a full disk."""
    return SnapshotError(
        f"The disk is full: the snapshot does not fit into {folder}.",
        f"Free some space (df -h '{folder}') or leave folders out in .clocheignore.",
    )


class ImageWriter:
    """One image that is being written; leaving the `with` block without `finish` removes it."""

    def __init__(self, image: Path, root_mode: int) -> None:
        """Start mksquashfs; `root_mode` is the permissions of the image's root folder."""
        self._image = image
        self._buffer: list[bytes] = []
        self._waiting = 0
        self._done = False
        self._errors = os.fdopen(os.memfd_create("mksquashfs"), "w+b")  # the disk may be full
        image.unlink(missing_ok=True)
        try:
            self._process = subprocess.Popen(
                [tool("mksquashfs"), "-", str(image), *_OPTIONS, "-root-mode", f"{root_mode:o}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                cwd=image.parent,
                env=clean_environment(),
                umask=0o077,
                bufsize=0,
            )
        except BaseException:
            self._errors.close()
            raise
        if self._process.stdin is None:  # cannot be: a pipe was asked for
            raise AssertionError
        self._pipe = self._process.stdin
        os.set_blocking(self._pipe.fileno(), False)
        with contextlib.suppress(OSError):  # a lower limit for pipes only costs some speed
            fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def write(self, *parts: bytes) -> None:
        """Append bytes of the tar stream. Raises SnapshotError when mksquashfs is gone."""
        size = sum(map(len, parts))
        if size >= BUFFER:
            self.flush()  # so that what is large goes as it is: joining it to the rest copies it
        self._buffer += parts
        self._waiting += size
        if self._waiting >= BUFFER:
            self.flush()

    def finish(self) -> None:
        """End the archive and wait for the image. Raises SnapshotError."""
        self.write(END)
        self.flush()
        self._pipe.close()
        if self._end() != 0:
            raise self._failure()
        self._done = True

    def _end(self) -> int:
        """Wait for the end of mksquashfs (the pidfd tells of it at once) and give its status."""
        handle = os.pidfd_open(self._process.pid)
        try:
            _await(handle, select.POLLIN, self._stuck)
        finally:
            os.close(handle)
        return self._process.wait()

    def flush(self) -> None:
        """Hand everything written so far to mksquashfs."""
        data = memoryview(self._buffer[0] if len(self._buffer) == 1 else b"".join(self._buffer))
        self._buffer.clear()
        self._waiting = 0
        try:
            while data:
                data = data[self._write_some(data) :]
        except BrokenPipeError as error:
            self._end()
            raise self._failure() from error

    def _write_some(self, data: memoryview) -> int:
        """Write what the pipe takes, waiting for room within the deadline."""
        try:
            return os.write(self._pipe.fileno(), data)
        except BlockingIOError:
            _await(self._pipe.fileno(), select.POLLOUT, self._stuck)
            return 0

    def _stuck(self) -> SnapshotError:
        return SnapshotError(
            f"mksquashfs made no progress within {DEADLINE_S:.0f} s.",
            "Look at the load and the disks of this machine and try again.",
        )

    def _failure(self) -> SnapshotError:
        self._errors.seek(0)
        text = self._errors.read(64 << 10).decode("utf-8", "replace")
        folder = self._image.parent
        if os.strerror(errno.ENOSPC) in text or _is_full(folder):
            return no_room(folder)
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "no message")
        return SnapshotError(
            f"mksquashfs failed: {last.strip()[:300]}",
            "Check that squashfs-tools 4.5 or newer with lz4 is installed: mksquashfs -version",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._errors.close()
        if not self._done:
            self._image.unlink(missing_ok=True)


def _await(descriptor: int, event: int, stuck: Callable[[], SnapshotError]) -> None:
    """Wait for an event of a descriptor; raise what `stuck` makes when it does not come."""
    waiting = select.poll()
    waiting.register(descriptor, event)
    if not waiting.poll(DEADLINE_S * 1000):
        raise stuck()


def _is_full(folder: Path) -> bool:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize < 1 << 20
