"""Hunks: groups of changed lines with an id that outlives a refresh.

A *unit* is what a decision is about: a `Hunk` (one mark a changed line) or an `Aspect` of the
whole file (one mark). Ids are derived from content alone, so a unit that is the same in the next
generation keeps its decision and any other starts open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

ChangeKind = Literal["delete", "insert", "ending"]
"""`ending`: the same text with another line ending (or none), decided as one."""

AspectKind = Literal["creation", "deletion", "binary", "link", "type", "mode", "rename"]


class Change(NamedTuple):
    """One decidable changed line; `old` and `new` are 0-based indexes into the sides' lines."""

    kind: ChangeKind
    old: int | None
    new: int | None


class Pair(NamedTuple):
    """Two lines that stand beside each other inside a hunk, with the index of their changes."""

    old: int | None
    new: int | None
    old_change: int | None
    new_change: int | None


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring changes; `old_start:old_end` and `new_start:new_end` hold no outer context."""

    id: str
    index: int
    old_start: int
    old_end: int
    new_start: int
    new_end: int
    changes: tuple[Change, ...]
    """In the order of the rows; a decision's `lines` are indexes into it."""
    pairs: tuple[Pair, ...]
    """Every row of the hunk, unchanged lines between its changes included."""

    @property
    def size(self) -> int:
        """Number of marks a decision about this hunk has."""
        return len(self.changes)


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something about the whole file that is decided at once."""

    id: str
    kind: AspectKind
    label: str
    """One phrase for the screen, such as `100644 → 100755`; not sanitised."""

    @property
    def size(self) -> int:
        """Number of marks a decision about this aspect has: one."""
        return 1


Unit = Hunk | Aspect
