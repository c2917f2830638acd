"""What stays in memory of a file's review when its lines are let go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapshot.decisions import LETTERS
from snapshot.hunks import Hunk

if TYPE_CHECKING:
    from snapshot.decisions import Decisions
    from snapshot.review import FileReview
    from snapshot.risk import Tier


@dataclass(frozen=True, slots=True)
class UnitSummary:
    """One hunk or aspect: how many marks it has, where it is, and what it is."""

    id: str
    size: int
    numbers: tuple[int, int, int, int]
    """1-based as in a diff without context; all 0 for an aspect."""
    aspect: str
    content: str
    """What names the changed lines wherever they stand; for an aspect its id."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a file's review says without its lines."""

    added: int
    removed: int
    binary: bool
    risk: str
    tier: Tier
    held: str
    """Why a wide yes leaves the file to a decision of its own, else empty."""
    units: tuple[UnitSummary, ...]

    def has(self, letter: str, path: bytes, decisions: Decisions) -> bool:
        """Tell whether any mark of the file is `letter`."""
        return any(letter in decisions.marks(path, unit.id, unit.size) for unit in self.units)

    def open_units(self, path: bytes, decisions: Decisions) -> int:
        """Count the units in which something is not decided."""
        letter = LETTERS["open"]
        return sum(letter in decisions.marks(path, unit.id, unit.size) for unit in self.units)


def summary_of(review: FileReview) -> Summary:
    """Take from a review what is kept of it."""
    units = tuple(
        UnitSummary(unit.id, unit.size, review.span(unit), "", review.content_id(unit))
        if isinstance(unit, Hunk)
        else UnitSummary(unit.id, unit.size, (0, 0, 0, 0), unit.kind, unit.id)
        for unit in review.units
    )
    counts = review.added, review.removed
    return Summary(*counts, review.binary, review.risk, review.tier, review.held, units)
