"""Whether a real file still is what the snapshot held."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from blake3 import blake3

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.manifest import Entry

MAX_HASHED: Final = 16 << 20
"""Largest file in bytes whose content is looked at when only its time differs."""


class Drift:
    """Answers from size and time first; contents are hashed once for each state of a file."""

    def __init__(self, workspace: Path) -> None:
        self._root = os.fsencode(workspace)
        self._known: dict[tuple[bytes, int, int, str], bool] = {}

    def moved(self, path: bytes, base: Entry | None) -> bool:
        """Tell whether the file at `path` differs from `base` (None: nothing was there)."""
        try:
            found = os.lstat(os.path.join(self._root, path))
        except (FileNotFoundError, NotADirectoryError):
            return base is not None
        except OSError:
            return True  # what cannot be looked at is not what we knew
        if base is None:
            return True
        if stat.S_ISREG(found.st_mode) and base.kind == "file":
            return self._file_moved(path, found, base)
        if stat.S_ISLNK(found.st_mode) and base.kind == "link":
            return os.readlink(os.path.join(self._root, path)) != base.target
        return not (stat.S_ISDIR(found.st_mode) and base.kind == "dir")

    def is_left(self, path: bytes, kind: str, digest: str, executable: bool) -> bool:
        """Tell whether at `path` there is the file that a merge asked for, or nothing (`none`)."""
        try:
            found = os.lstat(os.path.join(self._root, path))
        except (FileNotFoundError, NotADirectoryError):
            return kind == "none"
        except OSError:
            return False
        if kind != "file" or not stat.S_ISREG(found.st_mode):
            return False
        if bool(found.st_mode & 0o100) != executable:
            return False
        return not self._differs(path, found, digest)

    def _differs(self, path: bytes, found: os.stat_result, digest: str) -> bool:
        key = (path, found.st_mtime_ns, found.st_size, digest)
        if key not in self._known:
            self._known[key] = self._content_moved(path, found.st_size, digest)
        return self._known[key]

    def _file_moved(self, path: bytes, found: os.stat_result, base: Entry) -> bool:
        if found.st_size != base.size or bool(found.st_mode & 0o100) != bool(base.mode & 0o100):
            return True
        if found.st_mtime_ns == base.mtime_ns:
            return False
        return self._differs(path, found, base.digest)

    def _content_moved(self, path: bytes, size: int, digest: str) -> bool:
        if size > MAX_HASHED:
            return True
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(os.path.join(self._root, path), flags)
        except OSError:
            return True
        with os.fdopen(descriptor, "rb") as file:
            return blake3(file.read(MAX_HASHED)).hexdigest() != digest
