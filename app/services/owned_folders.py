"""Folders for a while that go with the process that made them, at the next start if it was killed.

Whoever has one holds a lock on it, so a folder without a holder has nobody: a number of a process
would be used again, or mean another one in a container that shares the temporary directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SEEN: Final = 100_000
"""Names of a directory that a sweep looks at."""

MAX_SWEPT: Final = 100
"""Folders that one sweep removes; the next start goes on."""

YOUNG_S: Final = 60.0
"""A folder that changed since is left alone: its maker may be about to lock it."""

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OwnedFolder:
    """A new folder that only this user can enter."""

    def __init__(self, prefix: str, parent: Path | None = None) -> None:
        """Make it in `parent`, else in the temporary directory. Raises OSError."""
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._held = os.open(self.path, _OPEN)
        with contextlib.suppress(OSError):  # a file system without locks: then no sweep gets one
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)


def sweep(prefix: str, parent: Path | None = None) -> None:
    """Remove this user's folders with such names that nobody holds; never through a link.

    `parent` is where they lie, else the temporary directory.
    """
    with contextlib.suppress(OSError):  # of a directory that cannot be read nothing is known
        for path in list(islice(_named(prefix, parent or tempfile.gettempdir()), MAX_SWEPT)):
            with contextlib.suppress(OSError):  # it is held, or somebody else removes it
                _remove_left(path)


def _named(prefix: str, parent: Path | str) -> Iterator[Path]:
    with os.scandir(parent) as entries:
        for entry in islice(entries, MAX_SEEN):
            if entry.name.startswith(prefix) and _is_ours(entry.stat(follow_symlinks=False)):
                yield Path(entry.path)


def _is_ours(found: os.stat_result) -> bool:
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _remove_left(path: Path) -> None:
    descriptor = os.open(path, _OPEN)
    try:
        found = os.fstat(descriptor)
        if _is_ours(found) and time.time() - found.st_ctime >= YOUNG_S:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
    finally:
        os.close(descriptor)
