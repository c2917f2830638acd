"""Writing accepted changes into the real workspace: all of them or none, and undone at any time.

The steps: `review.plan_merge` → `run_merge` → (any time later) `undo_merge`; `recover` at start.
Every step is in a journal in the merge's folder before it happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Refusal:
    """A path that was left out, and why in one phrase."""

    path: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge would do. Nothing of a path in `conflicts` or `skipped` is written."""

    workspace: Path
    written: tuple[bytes, ...]
    conflicts: tuple[Refusal, ...]
    skipped: tuple[Refusal, ...]
    notices: tuple[Refusal, ...]
    """Things to tell: broken hard links, names that differ only in case, auto-merged files."""


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """What a merge did; `merge` is its id, the name of its folder."""

    merge: str
    written: tuple[bytes, ...]
    conflicts: tuple[Refusal, ...]
    skipped: tuple[Refusal, ...]
    notices: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """What taking back a merge did; a path in `conflicts` was left as it is."""

    merge: str
    restored: tuple[bytes, ...]
    conflicts: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """A merge that a crash had interrupted; `rolled_back` False: it was complete already."""

    merge: str
    rolled_back: bool
    leftovers: tuple[Refusal, ...]


def run_merge(plan: Callable[[], MergePlan], merges_dir: Path) -> MergeOutcome:
    """Plan and write, once more (three times at most) if a file changes in between.

    `plan` is called under the workspace's lock, so it sees what the write will meet:
    `run_merge(lambda: plan_merge(…), folder)`.

    Raises:
        MergeAborted: nothing was written, or all of it was taken back.

    """
    raise NotImplementedError


def undo_merge(merges_dir: Path, merge: str) -> UndoOutcome:
    """Take a merge back: files that moved on are merged, or named as conflicts.

    Raises:
        DecisionUnknown: there is no such merge, or it never was completed.
        MergeAborted: nothing was restored, or all of it was taken back.

    """
    raise NotImplementedError


def recover(merges_dir: Path) -> list[Recovered]:
    """Roll back or finish what a crash interrupted; call it before anything else merges."""
    raise NotImplementedError
