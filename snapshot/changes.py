"""The agent's net change: base tree against agent tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from snapshot.ignore import IgnoreRules
    from snapshot.manifest import Entry, Manifest
    from snapshot.mirror import AgentTree

ChangeKind = Literal["added", "modified", "deleted", "renamed", "mode", "type"]


@dataclass(frozen=True, slots=True)
class Change:
    """One changed path; a rename is named by its new path.

    `base` is None for what was added, `agent` for what was deleted. A non-empty `note` says why the
    change can be shown but not merged, or (`"withheld"`) that the real file was withheld.
    """

    path: bytes
    kind: ChangeKind
    base: Entry | None = None
    agent: Entry | None = None
    old_path: bytes = b""
    note: str = ""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """All changes in path order."""

    changes: tuple[Change, ...] = ()
    ignored: int = 0
    """Changed paths that the base's rules hide."""
    git_changed: bool = False
    """Something inside a `.git` differs (commits, index); never listed as files."""


def compare(
    base: Manifest,
    agent: AgentTree,
    ignore: IgnoreRules | None = None,
    read: Callable[[str], bytes | None] | None = None,
) -> ChangeSet:
    """Find what the agent changed.

    `read(digest)` gives a content where it is at hand (base or agent), for renames of files that
    were edited as well; without it only exact renames are found.
    """
    raise NotImplementedError
