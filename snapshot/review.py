"""The joint between changes, decisions and write-back: one changed file under review.

Callers hand in plain values (paths, modes, bytes); nothing here reads a workspace except
`plan_merge`, which compares it with what was accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from .decisions import Choice, Decisions, Mark, State
    from .hunks import Aspect, Hunk, Unit
    from .intraline import Marked
    from .writeback import MergePlan

Kind = Literal["added", "modified", "deleted", "renamed", "mode", "type"]


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


@dataclass(frozen=True, slots=True)
class FileResult:
    """What accepted decisions make of a base file; `path` None: the file is gone."""

    path: bytes | None
    content: bytes
    mode: str


class FileReview:
    """One changed file: hunks, aspects, counts and what decisions make of it."""

    file: ChangedFile
    binary: bool
    added: int
    removed: int
    risk: str
    """Empty, or one phrase on why the file can execute by side effect."""
    suspicious: bool
    """Bidirectional or invisible characters in added lines, the name or the link's target."""
    notes: tuple[str, ...]
    """Facts for chips: `240 lines: LF → CRLF`, `byte order mark added`, `not UTF-8`."""
    hunks: tuple[Hunk, ...]
    aspects: tuple[Aspect, ...]
    old_lines: list[bytes]
    """Lines with their terminators; a byte order mark is an element of its own."""
    new_lines: list[bytes]

    def __init__(self, file: ChangedFile, base: bytes | None, agent: bytes | None) -> None:
        raise NotImplementedError

    @property
    def units(self) -> tuple[Unit, ...]:
        """Aspects and then hunks: everything that can be decided. Empty with a `note`."""
        raise NotImplementedError

    def marks(self, decisions: Decisions, unit: Unit) -> str:
        """Return the marks of one unit of this file."""
        raise NotImplementedError

    def state(self, decisions: Decisions) -> State:
        """Return what the decisions about all units add up to."""
        raise NotImplementedError

    def decide(
        self, choice: Choice, hunks: Sequence[str] = (), lines: Sequence[int] = ()
    ) -> list[Mark]:
        """Translate a decision into marks; without `hunks` it is about every unit.

        Hand the result to `DecisionLog.record` (with `lines`, give `decide_lines` the log).

        Raises:
            DecisionUnknown: a unit id or a line index is not there.

        """
        raise NotImplementedError

    def decide_lines(
        self, decisions: Decisions, choice: Choice, hunk: str, lines: Sequence[int]
    ) -> Mark:
        """Return a hunk's marks with single lines changed.

        Raises:
            DecisionUnknown: the hunk or a line is not there.

        """
        raise NotImplementedError

    def result(self, decisions: Decisions) -> FileResult | None:
        """Return the base with what was accepted; None when nothing was accepted."""
        raise NotImplementedError

    def intraline(self, old: int, new: int) -> tuple[Marked, Marked]:
        """Return the differing character ranges of two lines that stand side by side."""
        raise NotImplementedError


Reader = Callable[[ChangedFile], bytes]
"""Returns the content of one side of a changed file; a link's content is its target."""


def accept_safe(reviews: Sequence[FileReview], decisions: Decisions) -> list[Mark]:
    """Return marks that accept what is open in files without a risk; rejected lines stay so."""
    raise NotImplementedError


def plan_merge(
    files: Sequence[ChangedFile],
    decisions: Decisions,
    read_base: Reader,
    read_agent: Reader,
    workspace: Path,
    *,
    gone_dirs: Collection[bytes] = (),
    allow_links: Collection[bytes] = (),
) -> MergePlan:
    """Compare what was accepted with the real workspace and plan what to write.

    Args:
        files: the changes of one generation.
        decisions: what was accepted.
        read_base: returns the base content of a file (a link's target).
        read_agent: returns the agent's content of a file.
        workspace: the real folder; it is only read.
        gone_dirs: folders of the base that the agent's tree no longer has; they go when empty.
        allow_links: paths whose link may point out of the workspace.

    """
    raise NotImplementedError
