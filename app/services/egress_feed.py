"""Follows the egress logs of all sessions: reads what is new, in bounded pieces, over rotations.

A log is two files (see `vm.egress.ledger`). An open file is read to its end before the one that
took its place is opened, so no line is lost when the ledger rotates twice while nobody looks.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from app.records import valid_id
from vm.egress.ledger import MAX_LINE, NAME, older, parse

if TYPE_CHECKING:
    from pathlib import Path

    from vm.egress.kinds import Entry

PIECE: Final = 128 << 10
"""Bytes that are read of one file at once: some 500 lines."""

MAX_LOGS: Final = 256
"""Most sessions that are followed."""

Piece = tuple[str, list["Entry"]]
"""A session and what its log said."""


class _Reader:
    """One file that goes on, perhaps under another name."""

    def __init__(self, descriptor: int) -> None:
        self._file = descriptor
        self._rest = b""
        self._skips = False
        status = os.fstat(descriptor)
        self.identity = (status.st_dev, status.st_ino)
        self._at = 0

    def read(self) -> tuple[list[Entry], bool]:
        """Return the entries of the next piece, and whether there may be more."""
        if os.fstat(self._file).st_size < self._at:  # it was cut off: from its beginning
            self._at, self._rest = 0, b""
        data = os.pread(self._file, PIECE, self._at)
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._skips and lines:
            lines, self._skips = lines[1:], False
        if len(self._rest) > MAX_LINE:
            self._rest, self._skips = b"", True
        entries = [entry for line in lines if (entry := parse(line)) is not None]
        return entries, len(data) == PIECE

    def close(self) -> None:
        os.close(self._file)


class _Log:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader: _Reader | None = None
        self._done = (0, 0)
        """Which file was read to its end last."""

    def read(self) -> tuple[list[Entry], bool]:
        """Return what came, and whether more is there already."""
        if self._reader is None:
            self._reader = self._next()
        if self._reader is None:
            return [], False
        entries, more = self._reader.read()
        if more or not self._has_successor(self._reader):
            return entries, more
        if not entries:  # only now: it may have grown until it got its successor
            self._done = self._reader.identity
            self.close()
        return entries, True

    def _next(self) -> _Reader | None:
        """Open the older file unless it is the one that was read last, else the one that grows."""
        reader = _reader(older(self._path))
        if reader is not None and reader.identity == self._done:
            reader.close()
            reader = None
        return reader or _reader(self._path)

    def _has_successor(self, reader: _Reader) -> bool:
        """Tell whether another file has the name now, so that this one will not grow."""
        try:
            status = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) != reader.identity

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class EgressFeed:
    """The logs of all sessions below one folder.

    Each call reads a bounded piece and waits for the disk: call it in a thread, once at a time.
    """

    def __init__(self, sessions: Path) -> None:
        self._sessions = sessions
        self._logs: dict[str, _Log] = {}

    def read(self) -> tuple[list[Piece], bool]:
        """Return what is new, and whether more is there already. Raises OSError."""
        self._look_for_logs()
        pieces: list[Piece] = []
        goes_on = False
        for name, log in self._logs.items():
            entries, more = log.read()
            goes_on = goes_on or more
            if entries:
                pieces.append((name, entries))
        return pieces, goes_on

    def close(self) -> None:
        """Close every file."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()

    def _look_for_logs(self) -> None:
        try:
            names = sorted(name for name in os.listdir(self._sessions) if valid_id(name))
        except FileNotFoundError:
            names = []
        for gone in self._logs.keys() - set(names):
            self._logs.pop(gone).close()
        for name in names[-MAX_LOGS:]:
            if name not in self._logs and len(self._logs) < MAX_LOGS:
                self._logs[name] = _Log(self._sessions / name / NAME)


def _reader(path: Path) -> _Reader | None:
    try:
        return _Reader(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK))
    except FileNotFoundError:
        return None
