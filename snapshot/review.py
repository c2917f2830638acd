"""The joint between changes, decisions and write-back.

Callers hand in plain values (paths, modes, bytes); nothing here reads a workspace except
`plan_merge`, which compares it with what was accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .decisions import LETTERS, Mark
from .review_file import (
    EXECUTABLE,
    FILE,
    FOLDER,
    LINK,
    ChangedFile,
    FileResult,
    FileReview,
    Kind,
)
from .writeback_plan import MergePlan, Side, Wish, make_plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from .decisions import Decisions

__all__ = [
    "EXECUTABLE",
    "FILE",
    "FOLDER",
    "LINK",
    "ChangedFile",
    "FileResult",
    "FileReview",
    "Kind",
    "Reader",
    "accept_safe",
    "plan_merge",
    "plan_reviews",
    "review_file",
]

Reader = Callable[[ChangedFile], bytes]
"""Returns the content of one side of a changed file; a link's content is its target."""


def review_file(file: ChangedFile, read_base: Reader, read_agent: Reader) -> FileReview:
    """Read the sides that a file has and put it under review."""
    if file.note:
        return FileReview(file, None, None)
    base = read_base(file) if _is_read(file.old_mode) else b""
    agent = read_agent(file) if _is_read(file.mode) else b""
    return FileReview(file, base, agent)


def _is_read(mode: str) -> bool:
    return mode in (FILE, EXECUTABLE, LINK)


def accept_safe(reviews: Sequence[FileReview], decisions: Decisions) -> list[Mark]:
    """Return marks that accept what is open in files without a risk; rejected lines stay so."""
    marks: list[Mark] = []
    for review in reviews:
        if review.risk or review.suspicious:
            continue
        for unit in review.units:
            known = review.marks(decisions, unit)
            wanted = known.replace(LETTERS["open"], LETTERS["accepted"])
            if wanted != known:
                marks.append(Mark(review.file.path, unit.id, wanted))
    return marks


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

    Raises:
        WorkspaceRefused: the workspace is not there or cannot be opened.

    """
    reviews = [review_file(file, read_base, read_agent) for file in files]
    return plan_reviews(reviews, decisions, workspace, gone_dirs=gone_dirs, allow_links=allow_links)


def plan_reviews(
    reviews: Iterable[FileReview],
    decisions: Decisions,
    workspace: Path,
    *,
    gone_dirs: Collection[bytes] = (),
    allow_links: Collection[bytes] = (),
) -> MergePlan:
    """Do what `plan_merge` does with files that are under review already."""
    wishes = [
        Wish(
            name=review.file.path,
            old_path=None
            if not review.file.old_mode
            else (review.file.path if review.file.old_path is None else review.file.old_path),
            new_path=result.path,
            base=_side(review.file.old_mode, review.base),
            result=_side(result.mode, result.content),
        )
        for review in reviews
        if (result := review.result(decisions)) is not None
    ]
    return make_plan(wishes, workspace, gone_dirs=gone_dirs, allow_links=allow_links)


def _side(mode: str, content: bytes | None) -> Side:
    """Return one side of a wish from a git mode and content."""
    if not mode:
        return Side("none")
    if mode == FOLDER:
        return Side("dir")
    if mode == LINK:
        return Side("link", content or b"")
    return Side("file", content or b"", executable=mode == EXECUTABLE)
