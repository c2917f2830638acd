"""Both sides of one changed file, and the lines that they have."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from .aspects import EXECUTABLE, FILE, FOLDER, LINK
from .intraline import Marked, changed_ranges
from .lines import has_bom, is_binary, split, stem
from .review_facts import has_mixed_endings
from .safe_text import decode

Kind = Literal["added", "modified", "deleted", "renamed", "mode", "type"]

MAX_TEXT: Final = 32 << 20
"""Bytes of a side above which a file is decided as a whole, like a binary one."""

_MEMORY: Final = 4096
"""Line pairs whose inner differences are remembered."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One changed path between the base and the agent's tree.

    Modes are octal text as in git's trees: 100644, 100755, 120000 (link), 040000 (folder), ""
    where the side is not there. `base` and `agent` are blake3 hex digests of the contents ("" where
    there is none); a link's content is its target.
    """

    path: bytes
    kind: Kind
    old_path: bytes | None = None
    mode: str = ""
    old_mode: str = ""
    base: str = ""
    agent: str = ""
    note: str = ""
    """Why the file is listed but cannot be merged (special, sparse, too large), else empty."""


class Sides:
    """The contents of a changed file, and its lines where it has any.

    Args:
        file: what changed; its modes say which sides there are.
        base: content of the base side, None where there is none.
        agent: content of the agent's side, None where there is none.

    """

    def __init__(self, file: ChangedFile, base: bytes | None, agent: bytes | None) -> None:
        self.file = file
        self.note = file.note or self._strange_note()
        """Why nothing can be decided about it, else empty."""
        self.base = (base or b"") if file.old_mode else None
        self.agent = (agent or b"") if file.mode else None
        self.binary = self._is_binary()
        """Whether the content is decided as a whole because it is no text."""
        self.by_lines = self._has_lines()
        """Whether single lines are decided."""
        self.old_lines: list[bytes] = split(self.base or b"") if self.by_lines else []
        """Lines with their terminators; a byte order mark is an element of its own."""
        self.new_lines: list[bytes] = split(self.agent or b"") if self.by_lines else []
        self.mixed_endings = self.by_lines and has_mixed_endings(self.base, self.agent)
        """Whether line endings differ inside of the file, so that each is worth a mark."""
        self._remember = lru_cache(_MEMORY)(self._intraline)

    def line_number(self, side: Literal["old", "new"], index: int | None) -> int | None:
        """Return the 1-based number of a line; None for a byte order mark and for no line."""
        if index is None:
            return None
        bom = has_bom(self.old_lines if side == "old" else self.new_lines)
        return index + 1 - bom or None

    def line_index(self, side: Literal["old", "new"], number: int) -> int:
        """Return the index of a line by its 1-based number; the inverse of `line_number`."""
        return number - 1 + has_bom(self.old_lines if side == "old" else self.new_lines)

    def text(self, side: Literal["old", "new"]) -> str:
        """Return a side's text for highlighting; line n of it is element n of the side's lines.

        A byte order mark, which is an element of its own, becomes an empty line.
        """
        lines = self.old_lines if side == "old" else self.new_lines
        bom = has_bom(lines)
        return ("\n" if bom else "") + decode(b"".join(lines[bom:]))

    def intraline(self, old: int, new: int) -> tuple[Marked, Marked]:
        """Return the differing character ranges of two lines that stand side by side."""
        return self._remember(old, new)

    def _intraline(self, old: int, new: int) -> tuple[Marked, Marked]:
        return changed_ranges(decode(stem(self.old_lines[old])), decode(stem(self.new_lines[new])))

    def _modes(self) -> set[str]:
        return {self.file.old_mode, self.file.mode} - {""}

    def _strange_note(self) -> str:
        known = {FILE, EXECUTABLE, LINK, FOLDER}
        return "" if self._modes() <= known else "it is neither a file nor a link nor a folder"

    def _is_binary(self) -> bool:
        sides = [side for side in (self.base, self.agent) if side is not None]
        files = self._modes() <= {FILE, EXECUTABLE}
        return files and any(is_binary(side) or len(side) > MAX_TEXT for side in sides)

    def _has_lines(self) -> bool:
        """Return whether there are lines on some side, and only files on both."""
        return (
            not self.note
            and not self.binary
            and self._modes() <= {FILE, EXECUTABLE}
            and bool(self.base or self.agent)
        )
