"""A changed file of which everything is accepted: what comes of it without comparing its lines.

All of a file's hunks and aspects together make the agent's side, byte for byte, with its name and
mode. So a merge needs no diff where nothing is left out and nothing was edited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from .compose import ACCEPTED
from .review_file import FileResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .decisions import Decisions
    from .review_sides import ChangedFile


class Decidable(Protocol):
    """A hunk or aspect as far as marks are concerned."""

    @property
    def id(self) -> str:
        """What names it."""
        ...

    @property
    def size(self) -> int:
        """How many marks it has."""
        ...


def accepts_all(path: bytes, units: Sequence[Decidable], decisions: Decisions) -> bool:
    """Tell whether all that there is to decide is accepted as the agent wrote it."""
    return bool(units) and all(
        decisions.marks(path, unit.id, unit.size) == ACCEPTED * unit.size
        and decisions.edit(path, unit.id) is None
        for unit in units
    )


class WholeReview:
    """Stands for a `FileReview` in a merge of decisions of which `accepts_all` is true.

    Args:
        file: what changed.
        base: content of the base side, None where there is none.
        agent: content of the agent's side, None where there is none.
        units: what can be decided about it, as its `FileReview` has it.

    """

    def __init__(
        self,
        file: ChangedFile,
        base: bytes | None,
        agent: bytes | None,
        units: Sequence[Decidable],
    ) -> None:
        self.file = file
        self.base = (base or b"") if file.old_mode else None
        self.agent = (agent or b"") if file.mode else None
        self.units = units

    def result(self, decisions: Decisions) -> FileResult:
        """Return the agent's side; the decisions are known to accept all of it."""
        del decisions
        if self.agent is None:
            return FileResult(None, b"", "")
        return FileResult(self.file.path, self.agent, self.file.mode)
