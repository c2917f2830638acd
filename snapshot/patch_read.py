"""Reading a patch that a user edited: strict, byte for byte, and checked by an independent parser.

`unidiff` confirms what hunks say (see `patch.read_elsewhere`); names, removals and line ends are
read here, for it does not decode quoted names, takes an emptied file for a removed one, and
refuses contents that are not UTF-8 when it is given bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import SnapshotError
from .lines import split_plain
from .patch import read_elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_HUNK: Final = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_ESCAPES: Final = {
    b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92,
}  # fmt: skip
_ESCAPED: Final = re.compile(rb"\\([abtnvfr\"\\]|[0-3][0-7]{2})")
_REFUSED: Final = (b"GIT binary patch", b"Binary files ", b"diff --cc ", b"diff --combined ")


class PatchRefused(SnapshotError):
    """A patch that cannot be taken for decisions; nothing was recorded."""

    code = "patch-refused"


def refuse(why: str) -> PatchRefused:
    """Return the error that says why a patch is not taken."""
    return PatchRefused(
        f"The patch is not taken: {why}.",
        "Begin anew with: cloche review ID --export patch > mine.patch",
    )


class PatchHunk(NamedTuple):
    """One hunk: where its old lines begin (0-based), and its lines with their marks."""

    start: int
    lines: tuple[tuple[bytes, bytes], ...]


@dataclass(slots=True)
class FilePatch:
    """What a patch says about one file; a path is None where there is none on that side."""

    old: bytes | None = None
    new: bytes | None = None
    renamed: bool = False
    mode: bool = False
    """Whether the executable bit changes."""
    named: bool = False
    """Whether its `---` and `+++` lines were there."""
    hunks: list[PatchHunk] = field(default_factory=list[PatchHunk])
    anew: list[PatchHunk] | None = None
    """What is made once the old entry is gone: git's way to say that a file became a link."""


def read_patch(data: bytes) -> list[FilePatch]:
    """Read a patch in git's dialect, or a plain unified diff.

    Raises:
        PatchRefused: it is none, or it says something that lines cannot.

    """
    reader = _Reader(split_plain(data))
    files = reader.read()
    if not files:
        raise refuse("there is no change in it")
    marks = [mark for file in files for hunk in file.hunks for mark, _ in hunk.lines]
    facts = read_elsewhere(data)
    if facts is None or (facts.added, facts.removed) != (marks.count(b"+"), marks.count(b"-")):
        raise refuse("another parser reads it otherwise; perhaps a line is cut")
    return _joined(files)


def _joined(files: Iterable[FilePatch]) -> list[FilePatch]:
    """Join a removal with the creation that follows it under the same name."""
    joined: list[FilePatch] = []
    for file in files:
        last = joined[-1] if joined else None
        if last is not None and last.new is None and last.old and _creates(file, last.old):
            joined[-1] = replace(last, new=file.new, mode=file.mode, anew=file.hunks)
        else:
            joined.append(file)
    return joined


def _creates(file: FilePatch, name: bytes) -> bool:
    return file.old is None and file.new == name


class _Reader:
    """Walks the lines once."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines
        self._at = 0
        self._files: list[FilePatch] = []

    def read(self) -> list[FilePatch]:
        """Return the files, in their order."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.startswith(_REFUSED):
                raise refuse(f"line {self._at + 1} is about a binary file or a merge")
            if line.startswith(b"diff --git "):
                name = _git_name(line[11:].rstrip(b"\n"))
                self._files.append(FilePatch(name, name))
            elif line.startswith(b"--- ") and self._next(b"+++ "):
                self._names(line)
                continue
            elif self._files:
                self._header(line)
                if line.startswith(b"@@ "):
                    self._files[-1].hunks.append(self._hunk(line))
                    continue
            self._at += 1
        return self._files

    def _next(self, start: bytes) -> bool:
        return self._at + 1 < len(self._lines) and self._lines[self._at + 1].startswith(start)

    def _names(self, line: bytes) -> None:
        if not self._files or self._files[-1].hunks or self._files[-1].named:
            self._files.append(FilePatch())
        file = self._files[-1]
        file.named = True
        new = self._lines[self._at + 1]
        if not file.renamed:
            file.old, file.new = _name(line[4:], b"a/"), _name(new[4:], b"b/")
        self._at += 2

    def _header(self, line: bytes) -> None:
        file = self._files[-1]
        for start in (b"rename from ", b"rename to "):
            if line.startswith(start):
                name = _unquoted(line[len(start) :].rstrip(b"\n"))
                file.renamed = True
                if start == b"rename from ":
                    file.old = name
                else:
                    file.new = name
        if line.startswith(b"new file mode "):
            file.old = None
        if line.startswith(b"deleted file mode "):
            file.new = None
        file.mode = file.mode or line.startswith((b"new mode ", b"new file mode 100755"))

    def _hunk(self, line: bytes) -> PatchHunk:
        found = _HUNK.match(line)
        if found is None:
            raise refuse(f"line {self._at + 1} is no header of a hunk")
        number = self._at + 1
        old, new = (int(found[2] or 1), int(found[4] or 1))
        start = int(found[1]) - (old > 0)
        self._at += 1
        lines: list[tuple[bytes, bytes]] = []
        while old > 0 or new > 0 or self._marks_no_newline():
            mark, rest = self._line(number)
            if mark == b"\\":
                lines[-1] = (lines[-1][0], lines[-1][1].removesuffix(b"\n"))
                continue
            old -= mark in b" -"
            new -= mark in b" +"
            lines.append((mark, rest))
        if old < 0 or new < 0:
            raise refuse(f"the hunk of line {number} has another length than its header says")
        return PatchHunk(start, tuple(lines))

    def _marks_no_newline(self) -> bool:
        return self._at < len(self._lines) and self._lines[self._at].startswith(b"\\ ")

    def _line(self, number: int) -> tuple[bytes, bytes]:
        line = self._lines[self._at] if self._at < len(self._lines) else b""
        if line[:1] not in (b" ", b"+", b"-", b"\\"):
            raise refuse(f"the hunk of line {number} has another length than its header says")
        self._at += 1
        return line[:1], line[1:]


def _git_name(text: bytes) -> bytes | None:
    """Return the name in a `diff --git` line where both sides have the same, else None."""
    half = (len(text) - 1) // 2
    left, blank, right = text[:half], text[half : half + 1], text[half + 1 :]
    names = [_unquoted(side) for side in (left, right)]
    same = names[0].removeprefix(b"a/") == names[1].removeprefix(b"b/")
    return names[0].removeprefix(b"a/") if same and blank == b" " else None


def _name(text: bytes, prefix: bytes) -> bytes | None:
    """Return a name of a `---` or `+++` line without its prefix; None for /dev/null."""
    text = text.rstrip(b"\n")
    if not text.startswith(b'"'):
        text = text.split(b"\t", 1)[0]
    name = _unquoted(text)
    return None if name == b"/dev/null" else name.removeprefix(prefix)


def _unquoted(text: bytes) -> bytes:
    if not (text.startswith(b'"') and text.endswith(b'"') and len(text) > 1):
        return text
    return _ESCAPED.sub(_byte, text[1:-1])


def _byte(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes((_ESCAPES[code] if code in _ESCAPES else int(code, 8),))


def apply_patch(lines: Sequence[bytes], patch: FilePatch) -> list[bytes]:
    """Return the lines that a patch makes of a file.

    Raises:
        PatchRefused: what stands there is something else.

    """
    made = apply_hunks(lines, patch.hunks)
    if patch.anew is None:
        return made
    if made:
        raise refuse("it makes a file anew of which lines are left")
    return apply_hunks((), patch.anew)


def apply_hunks(lines: Sequence[bytes], hunks: Sequence[PatchHunk]) -> list[bytes]:
    """Return the lines with hunks applied exactly where they say.

    Raises:
        PatchRefused: what stands there is something else.

    """
    result: list[bytes] = []
    done = 0
    for hunk in hunks:
        if hunk.start < done:
            raise refuse("its hunks overlap or are out of order")
        result += lines[done : hunk.start]
        done = hunk.start
        for mark, line in hunk.lines:
            if mark != b"+":
                if done >= len(lines) or lines[done] != line:
                    raise refuse(f"it does not fit the snapshot at line {done + 1}")
                done += 1
            if mark != b"-":
                result.append(line)
    return result + list(lines[done:])
