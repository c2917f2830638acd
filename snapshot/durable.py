"""Lines and names that outlive a power cut."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def append_line(fd: int, value: Mapping[str, object]) -> None:
    """Append one line of JSON to a log of nobody else, and sync it.

    A line that does not fit is cut off again: what is written after half a line could not be told
    from it. Raises OSError; the file is then as it was.
    """
    line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    size = os.fstat(fd).st_size
    try:
        written = 0
        while written < len(line):
            written += os.write(fd, line[written:])
        os.fsync(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise


def sync_path(path: str | os.PathLike[str]) -> None:
    """Make a file, or the names in a folder, durable; a link is not followed. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
