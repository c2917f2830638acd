"""Conflicts of a merge and how the user solved them.

A conflict's id is made of its three sides. So a resolution is used only where they still are what
they were when it was chosen; if the agent or the user goes on writing there, it is open again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, get_args

from .hunks import unit_id
from .lines import split_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .merge3 import TextMerge

ConflictChoice = Literal["base", "yours", "agent", "both", "both-reversed", "text"]
CHOICES: Final[tuple[ConflictChoice, ...]] = get_args(ConflictChoice)
"""`both`: yours and then the agent's; `text`: lines of the user's own."""

WHOLE_CHOICES: Final[tuple[ConflictChoice, ...]] = ("yours", "agent")
"""What can be chosen where entries cannot be merged by lines."""

SAME_LINES: Final = "you changed the same lines"


@dataclass(frozen=True, slots=True)
class Resolution:
    """How one conflict is solved."""

    choice: ConflictChoice
    text: bytes = b""


class Resolutions(Protocol):
    """Where resolutions come from."""

    def resolution(self, path: bytes, conflict: str) -> Resolution | None:
        """Return how a conflict of a path is solved, None while it is open."""
        ...


class Unsolved:
    """No conflict is solved."""

    def resolution(self, path: bytes, conflict: str) -> Resolution | None:
        """Return None."""
        del path, conflict
        return None


class Solved:
    """Resolutions for one preview on top of those on record."""

    def __init__(self, under: Resolutions, solved: Mapping[tuple[bytes, str], Resolution]) -> None:
        self._under = under
        self._solved = solved

    def resolution(self, path: bytes, conflict: str) -> Resolution | None:
        """Return the one on top, else the one on record."""
        return self._solved.get((path, conflict)) or self._under.resolution(path, conflict)


@dataclass(frozen=True, slots=True)
class Dispute:
    """One conflict: its three sides, what can be chosen, and what was."""

    path: bytes
    id: str
    kind: Literal["lines", "whole"]
    reason: str
    base: bytes
    yours: bytes
    agent: bytes
    line: int = 0
    """1-based number of its first line on your side; 0 for a whole entry."""
    choices: tuple[ConflictChoice, ...] = CHOICES
    resolution: Resolution | None = None

    def solved(self) -> list[bytes]:
        """Return the lines that a resolution makes of it."""
        assert self.resolution is not None
        match self.resolution.choice:
            case "base":
                return split_plain(self.base)
            case "yours":
                return split_plain(self.yours)
            case "agent":
                return split_plain(self.agent)
            case "both":
                return split_plain(self.yours) + split_plain(self.agent)
            case "both-reversed":
                return split_plain(self.agent) + split_plain(self.yours)
            case "text":
                return split_plain(self.resolution.text)


def line_disputes(path: bytes, merge: TextMerge, resolutions: Resolutions) -> dict[int, Dispute]:
    """Return the conflicts of a merge by lines, by the number of their region."""
    found = [(number, merge.sides(number)) for number in merge.conflicts]
    total = Counter(sides for _, sides in found)
    seen: Counter[Sequence[bytes]] = Counter()
    disputes: dict[int, Dispute] = {}
    for number, sides in found:
        twins = b"%d/%d" % (seen[sides], total[sides]) if total[sides] > 1 else b""
        seen[sides] += 1
        name = unit_id(b"lines", path, *sides, twins)
        disputes[number] = Dispute(
            path,
            name,
            "lines",
            SAME_LINES,
            *sides,
            line=merge.line(number),
            resolution=resolutions.resolution(path, name),
        )
    return disputes
