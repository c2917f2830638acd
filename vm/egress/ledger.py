"""The egress log of a session: one JSON object a line, bounded on disk, everything counted.

`egress.jsonl` holds the newest lines and `egress.jsonl.1` those before; each is at most half of the
cap. A file begins with the totals of all that came before it, so nothing that left the files leaves
the counts. A guest that makes more noise than RATE lines a second is counted, not written.

Names come from the guest: they are written as visible ASCII.
"""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vm.egress.kinds import Entry
from vm.egress.lookups import LookUps
from vm.egress.names import MAX_NAME, printable
from vm.egress.totals import Totals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME: Final = "egress.jsonl"
CAP: Final = 8 << 20
"""Most bytes that both files take."""

MAX_LINE: Final = 8 << 10
"""Longest line in bytes that is written or read."""

MAX_TEXT: Final = 512
"""Longest other text of an entry in characters."""

RATE: Final = 200.0
"""Lines a second that are written in the long run; none needs more who reads them."""

BURST: Final = 2000.0
"""Lines that may come at once."""


class Ledger:
    """Appends to one session's log; it never raises because of a full disk and never waits."""

    def __init__(self, path: Path, cap: int = CAP) -> None:
        """Open the log, or go on with the one that is there. Raises OSError."""
        self._path = path
        self._half = cap // 2
        self._asked = LookUps()
        self.totals, self._size = _recount(path, self._asked)
        self._tokens = BURST
        self._at = 0.0
        self._skipped = 0
        self._torn = _is_torn(path)
        self._file = _open(path)
        if self._size == 0:
            self._write_totals()

    def __call__(self, entry: Entry) -> None:
        """Count an entry, and write it unless there are too many."""
        entry = _clean(entry)
        if self._may_write(entry.at):
            self._note_skipped(entry.at)
            self._write(msgspec.json.encode(entry))
        else:
            self._skipped += 1
            self.totals.unwritten += 1
        # last: the totals that begin a new file are those before the entry
        self.totals.add(entry, again=self._asked.again(entry))

    def close(self) -> None:
        """Close the file; what was skipped last is noted."""
        if self._file >= 0:
            self._note_skipped(self._at)
            os.close(self._file)
            self._file = -1

    def _may_write(self, at: float) -> bool:
        passed = max(0.0, at - self._at)
        self._at = max(self._at, at)
        self._tokens = min(BURST, self._tokens + passed * RATE)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _note_skipped(self, at: float) -> None:
        if not self._skipped:
            return
        line = msgspec.json.encode({"kind": "unwritten", "at": at, "count": self._skipped})
        self._skipped = 0
        if self._overflows(line):
            self._rotate()  # the new file's totals hold what was skipped
        else:
            self._write(line)

    def _write_totals(self) -> None:
        self._write(msgspec.json.encode({"kind": "totals", "totals": self.totals}))

    def _write(self, line: bytes) -> None:
        if self._overflows(line):
            self._rotate()
        data = b"\n" * self._torn + line + b"\n"
        try:
            written = os.write(self._file, data)
        except OSError:  # no room: the counts go on, and so does the guest's connection
            self.totals.unwritten += 1
            return
        self._size += written
        self._torn = written < len(data)
        self.totals.unwritten += self._torn

    def _overflows(self, line: bytes) -> bool:
        return self._size > 0 and self._size + len(line) + 2 > self._half

    def _rotate(self) -> None:
        try:
            os.replace(self._path, older(self._path))
            fresh = _open(self._path)
        except OSError:  # the old file goes on: its end is cut off instead of its beginning
            self._size = 0
            os.ftruncate(self._file, 0)
        else:
            os.close(self._file)
            self._file, self._size, self._torn = fresh, 0, False
        self._write_totals()


def older(path: Path) -> Path:
    """Return the name of the file that holds what came before."""
    return path.with_name(f"{path.name}.1")


def read_totals(path: Path) -> Totals:
    """Return the counts of a log; all zero where there is none."""
    return _recount(path, LookUps())[0]


def read_entries(path: Path) -> Iterator[Entry]:
    """Yield what both files hold, oldest first; lines that are none of ours are passed over."""
    for one in (older(path), path):
        for line in _lines(one):
            entry = parse(line)
            if entry is not None:
                yield entry


def parse(line: bytes) -> Entry | None:
    """Return the entry that a line holds; None for totals, notes and damage."""
    if len(line) > MAX_LINE:
        return None
    try:
        return msgspec.json.decode(line, type=Entry)
    except msgspec.MsgspecError:
        return None


def _clean(entry: Entry) -> Entry:
    """Bound and make printable all text of an entry."""
    texts: dict[str, Any] = {
        one.name: _text(one.name, value)
        for one in fields(entry)
        if isinstance(value := getattr(entry, one.name), str)
    }
    return replace(entry, **texts)


def _text(name: str, value: str) -> str:
    if name in ("host", "address", "qtype"):
        return printable(value, MAX_NAME)
    if value.isprintable() and len(value) <= MAX_TEXT:
        return value
    return " ".join(printable(word, MAX_NAME) for word in value[:MAX_TEXT].split(" "))


def _recount(path: Path, asked: LookUps) -> tuple[Totals, int]:
    """Return the counts and the size of the file that goes on."""
    totals, size = Totals(), 0
    for line in _lines(path):
        size += len(line) + 1
        entry = parse(line)
        if entry is not None:
            totals.add(entry, again=asked.again(entry))
            continue
        note = _note(line)
        if note is not None and note.totals is not None:
            totals = note.totals
        elif note is not None:
            totals.entries += note.count
            totals.unwritten += note.count
    return totals, size


class _Note(msgspec.Struct):
    """A line that is no entry."""

    kind: str
    totals: Totals | None = None
    count: int = 0


def _note(line: bytes) -> _Note | None:
    try:
        return msgspec.json.decode(line, type=_Note)
    except msgspec.MsgspecError:
        return None


def _lines(path: Path) -> Iterator[bytes]:
    """Yield a file's lines without their ends, at most MAX_LINE + 1 bytes at once."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        while line := file.readline(MAX_LINE + 2):
            yield line.rstrip(b"\n")


def _is_torn(path: Path) -> bool:
    """Tell whether the last line has no end: whoever wrote it was killed meanwhile."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            if file.tell() == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except FileNotFoundError:
        return False


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)
