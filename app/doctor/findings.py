"""One thing that was looked at: how it is, one sentence, and the exact fix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Status = Literal["ok", "warn", "fail"]
"""ok; it works, but less well or less safely; no session starts."""

GRAVITY: Final[tuple[Status, ...]] = ("ok", "warn", "fail")

Value = str | int | bool | None
Facts = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. `id` and the names in `facts` are stable; `message` and `fix` are for people.

    `fix` is a command, or the one thing to do; it is there whenever `status` is not ok.
    """

    id: str
    status: Status
    message: str
    fix: str = ""
    facts: Mapping[str, Value] = field(default_factory=dict[str, Value])

    def as_json(self) -> dict[str, Any]:
        """Return the finding as `--json` prints it."""
        return {
            "id": self.id,
            "status": self.status,
            "message": self.message,
            "fix": self.fix,
            "facts": dict(self.facts),
        }


def worst(findings: Iterable[Finding]) -> Status:
    """Return the gravest status."""
    gravest = max((GRAVITY.index(found.status) for found in findings), default=0)
    return GRAVITY[gravest]
