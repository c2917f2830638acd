"""Conflicts of what is accepted with the workspace: listed with their sides, and solved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from app import protocol_review as wire
from app.errors import AppError
from app.wire_text import to_text
from snapshot.conflicts import Resolution
from snapshot.facts import resolution_fact

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from snapshot.conflicts import ConflictChoice, Dispute
    from snapshot.decisions import DecisionLog, Fact
    from snapshot.writeback import MergePlan, Refusal


class Planner(Protocol):
    """What conflicts need of the desk."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Hold it while the log is written."""
        ...

    @property
    def log(self) -> DecisionLog:
        """The log of decisions."""
        ...

    def disputes(self, path: str = "") -> MergePlan:
        """Return a plan of what is accepted, of all or of one path."""
        ...


class Disputes:
    """The conflicts of one session; blocks on disk like the desk."""

    def __init__(self, desk: Planner) -> None:
        self._desk = desk

    def all(self, path: str = "") -> tuple[wire.Conflict, ...]:
        """Return the conflicts, solved ones too; those without a choice have no sides.

        Raises AppError `not-found` for a path that did not change.
        """
        plan = self._desk.disputes(path)
        known = {dispute.path for dispute in plan.disputes}
        plain = [_plain(refusal) for refusal in plan.conflicts if refusal.path not in known]
        return (*map(_wire, plan.disputes), *plain)

    def resolve(self, asked: wire.Resolve) -> int:
        """Solve one conflict of a path, or all of them, as one undo step; how many there were.

        Raises AppError `not-found`, `usage`.
        """
        with self._desk.lock:
            facts = self._facts(asked)
            self._desk.log.record((), facts)
        return len(facts)

    def _facts(self, asked: wire.Resolve) -> list[Fact]:
        found = disputes_of(self._desk.disputes(asked.path), asked)
        if asked.choice == "open":
            return [resolution_fact(one.path, one.id, None) for one in found]
        return [
            resolution_fact(one.path, one.id, Resolution(chosen_in(one, asked.choice), asked.text))
            for one in found
        ]


def disputes_of(plan: MergePlan, asked: wire.Resolve) -> list[Dispute]:
    """Return the conflicts that are to be solved. Raises AppError `not-found`, `usage`."""
    if len(asked.text) > wire.MAX_EDIT:
        raise AppError("usage", f"A conflict's text has at most {wire.MAX_EDIT >> 10} KiB.")
    found = [one for one in plan.disputes if asked.conflict in ("", one.id)]
    if not found:
        which = f"conflict {asked.conflict}" if asked.conflict else "conflict to choose in"
        raise AppError(
            "not-found",
            f"'{asked.path}' has no {which} (any more).",
            "Look again: cloche merge ID --dry-run",
        )
    return found


def chosen_in(dispute: Dispute, choice: str) -> ConflictChoice:
    """Return a choice that can be made there. Raises AppError `usage`."""
    for one in dispute.choices:
        if one == choice:
            return one
    raise AppError(
        "usage",
        f"'{choice}' cannot be chosen here: {dispute.reason}.",
        f"Choose one of: {', '.join(dispute.choices)}",
    )


def _wire(dispute: Dispute) -> wire.Conflict:
    most = wire.MAX_SIDE
    solved = dispute.resolution
    return wire.Conflict(
        path=to_text(dispute.path),
        id=dispute.id,
        kind=dispute.kind,
        reason=dispute.reason,
        line=dispute.line,
        base=dispute.base[:most],
        yours=dispute.yours[:most],
        agent=dispute.agent[:most],
        choices=dispute.choices,
        choice="" if solved is None else solved.choice,
        text=b"" if solved is None else solved.text,
        cut=max(map(len, (dispute.base, dispute.yours, dispute.agent))) > most,
    )


def _plain(refusal: Refusal) -> wire.Conflict:
    """Return a conflict in which nothing can be chosen but to reject the file."""
    return wire.Conflict(to_text(refusal.path), "", "whole", refusal.reason)
