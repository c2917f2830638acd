"""The guest's console file: bounded, and safe to show."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE = 4 << 20
"""Bytes a console or log file may hold; a guest can print without end."""

_TAIL = 16384
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")


def tail(path: Path, lines: int = 20) -> str:
    """Return the last lines of a console, printable characters only; empty without a file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            data = file.read(_TAIL)
    except OSError:
        return ""
    return "\n".join(plain(data).splitlines()[-lines:])


def plain(data: bytes) -> str:
    """Return the lines of a console that say something, printable characters only."""
    text = _SEQUENCE.sub("", data.decode(errors="replace").replace("\r", ""))
    kept = ["".join(c for c in line if c.isprintable()) for line in text.splitlines()]
    return "\n".join(line for line in kept if line)


def trim(path: Path, limit: int = MAX_FILE) -> bool:
    """Empty a file that has grown beyond `limit`; whether it was.

    Its writers append (O_APPEND), so they go on at the new end.
    """
    try:
        if path.lstat().st_size <= limit:
            return False
        os.truncate(path, 0)
    except FileNotFoundError:
        return False
    return True
