"""The guest's console file: bounded, and safe to show."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from vm.text import printable

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE = 4 << 20
"""Bytes a console or log file may hold; a guest can print without end."""

KEPT = 256 << 10
"""Bytes of a log's end that are kept when it is emptied."""

_TAIL = 16384
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)")


def tail(path: Path, lines: int = 20) -> str:
    """Return the last lines of a console, printable characters only; empty without a file."""
    data = _end(path)
    if len(data) < _TAIL:  # it may have been emptied just now
        data = (_end(older(path)) + data)[-_TAIL:]
    return "\n".join(plain(data).splitlines()[-lines:])


def _end(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read(_TAIL)
    except OSError:
        return b""


def plain(data: bytes) -> str:
    """Return the lines of a console that say something, printable characters only."""
    text = _SEQUENCE.sub("", data.decode(errors="replace").replace("\r", ""))
    kept = [printable(line) for line in text.splitlines()]
    return "\n".join(line for line in kept if line)


def older(path: Path) -> Path:
    """Return where the end of a log is kept that had grown too long."""
    return path.with_name(f"{path.name}.old")


def trim(path: Path, limit: int | None = None) -> bool:
    """Empty a file that has grown beyond `limit` (MAX_FILE), its end kept; whether it was.

    Its writers append (O_APPEND), so they go on at the new end. What they write between the copy
    and the cut is lost; a disk that is full keeps nothing from being cut.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        size = os.fstat(descriptor).st_size
        if size <= (MAX_FILE if limit is None else limit):
            return False
        try:
            _keep(older(path), os.pread(descriptor, KEPT, max(0, size - KEPT)))
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
    return True


def _keep(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
