"""Decisions about units, kept as an event log with unlimited undo.

Marks of a unit are a text with one letter a changed line: `o` open, `a` accepted, `r` rejected.
The log is `decisions.jsonl`: one event a line, synced before `record` returns; a torn last line
(the machine died while writing) is cut off. One process (the keeper) writes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

State = Literal["open", "accepted", "rejected", "mixed"]
Choice = Literal["open", "accepted", "rejected"]


class Mark(NamedTuple):
    """New marks for one unit of one path."""

    path: bytes
    unit: str
    marks: str


class Decisions(Protocol):
    """Where marks come from: the log, or an overlay for one merge."""

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return the marks of a unit, `size` letters of `o`, `a` and `r`."""
        ...


@dataclass(frozen=True, slots=True)
class Uniform:
    """The same choice for everything; `Uniform("accepted")` is "all of it"."""

    choice: Choice

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return `size` times the letter of the choice."""
        raise NotImplementedError


class Overlay:
    """Decisions with some marks replaced, for one merge or one preview; nothing is recorded."""

    def __init__(self, under: Decisions, marks: Iterable[Mark]) -> None:
        raise NotImplementedError

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return the replaced marks, else those underneath."""
        raise NotImplementedError


class DecisionLog:
    """The session's decisions; opening replays the file."""

    def __init__(self, path: Path) -> None:
        raise NotImplementedError

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return the marks on record; all open when there are none of that size."""
        raise NotImplementedError

    def record(self, marks: Sequence[Mark]) -> bool:
        """Append one undo step and sync it; False when it would change nothing."""
        raise NotImplementedError

    def undo(self) -> bool:
        """Take back the last step that is not taken back yet; False when there is none."""
        raise NotImplementedError

    def redo(self) -> bool:
        """Do again what was last taken back; False when there is nothing."""
        raise NotImplementedError

    @property
    def can_undo(self) -> bool:
        """Whether `undo` would do something."""
        raise NotImplementedError

    @property
    def can_redo(self) -> bool:
        """Whether `redo` would do something."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the file; closing twice is fine."""
        raise NotImplementedError


def state_of(marks: str) -> State:
    """Return the state that marks add up to; no marks at all are open."""
    raise NotImplementedError
