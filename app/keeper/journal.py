"""The journal of a session: one JSON line for each change of state, never rewritten."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import is_full

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

LIMIT: Final = 1 << 20
"""Size in bytes at which the journal is begun anew; the old one stays as `journal.jsonl.old`."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened and when (unix seconds)."""

    time: float
    event: str
    message: str = ""


class Journal:
    """Appends lines; each is one write, so a kill leaves whole lines.

    On a full disk a line is left out, never half written: the journal tells what happened, and
    nothing stands on it.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "journal.jsonl"
        self._old = folder / "journal.jsonl.old"
        self._file = self._open()

    def _open(self) -> int:
        if self._path.exists() and self._path.stat().st_size > LIMIT:
            os.replace(self._path, self._old)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._path, flags, 0o600)

    def write(self, event: str, message: str = "") -> None:
        """Append one line."""
        line = msgspec.json.encode(Line(time.time(), event, message)) + b"\n"
        end = os.fstat(self._file).st_size
        if end > LIMIT:
            self._begin_anew()
            end = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, line)
        except OSError as error:
            if not is_full(error):
                raise
            written = 0
        if written < len(line):
            log.warning("no room in the journal for: %s %s", event, message)
            os.ftruncate(self._file, end)

    def _begin_anew(self) -> None:
        try:
            fresh = self._open()
        except OSError as error:  # it goes on in the old one, and the next line tries again
            log.warning("the journal is not begun anew: %s", error)
            return
        os.close(self._file)
        self._file = fresh

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)
