"""The joint between changes, decisions and write-back.

Callers hand in plain values (paths, modes, bytes); nothing here reads a workspace except
`plan_merge`, which compares it with what was accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from blake3 import blake3

from .aspects import EXECUTABLE, FILE, FOLDER, LINK
from .decisions import LETTERS, Mark, edit_in_force
from .merged import Merged, Place, build_on, nothing_merged
from .review_file import FileResult, FileReview
from .review_sides import ChangedFile, Kind
from .review_whole import Decidable, WholeReview, accepts_all
from .writeback_ops import MergedUnit, Refusal
from .writeback_plan import MergePlan, Side, Wish, make_plan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from .conflicts import Resolutions
    from .decisions import Decisions
    from .merged import Earlier

__all__ = [
    "EXECUTABLE",
    "FILE",
    "FOLDER",
    "LINK",
    "NOTHING_TO_WRITE",
    "ChangedFile",
    "FileResult",
    "FileReview",
    "Kind",
    "Planned",
    "Reader",
    "WholeReview",
    "accept_open",
    "accept_safe",
    "accepts_all",
    "comes_to_be",
    "lacks_content",
    "plan_merge",
    "plan_reviews",
    "review_file",
]

NOTHING_TO_WRITE: Final = "its mode is accepted, but nothing of its content"
"""Why a new file is left out of which no line is accepted."""

Planned = FileReview | WholeReview
"""What a merge can be planned of."""

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
    """Return marks that accept what is open, except where a file is held by its risk.

    Rejected lines stay rejected. What builds or continuous integration run is accepted: whoever
    shows the marks names it.
    """
    safe = (review for review in reviews if not review.held)
    return [
        mark for review in safe for mark in accept_open(review.file.path, review.units, decisions)
    ]


def accept_open(path: bytes, units: Iterable[Decidable], decisions: Decisions) -> list[Mark]:
    """Return marks that accept what is open of a file; rejected lines stay rejected."""
    marks: list[Mark] = []
    for unit in units:
        known = decisions.marks(path, unit.id, unit.size)
        wanted = known.replace(LETTERS["open"], LETTERS["accepted"])
        if wanted != known:
            marks.append(Mark(path, unit.id, wanted))
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
    reviews: Iterable[Planned],
    decisions: Decisions,
    workspace: Path,
    *,
    gone_dirs: Collection[bytes] = (),
    allow_links: Collection[bytes] = (),
    resolutions: Resolutions | None = None,
    earlier: Earlier = nothing_merged,
) -> MergePlan:
    """Do what `plan_merge` does with files that are under review already.

    A file that is accepted wholly may be a `WholeReview`. `resolutions` solve conflicts, and
    `earlier` says what the last merge in force made of a path.
    """
    wishes: list[Wish] = []
    without: list[Refusal] = []
    for review in reviews:
        result = review.result(decisions)
        if result is not None:
            wishes.append(_wish(review, decisions, result, earlier(review.file.path)))
        elif lacks_content(review, decisions):
            without.append(Refusal(review.file.path, NOTHING_TO_WRITE))
    plan = make_plan(
        wishes,
        workspace,
        gone_dirs=gone_dirs,
        allow_links=allow_links,
        resolutions=resolutions,
    )
    return replace(plan, skipped=(*plan.skipped, *without))


def lacks_content(review: Planned, decisions: Decisions) -> bool:
    """Tell whether what is accepted of a file makes nothing: a mode, and none of its lines."""
    return review.result(decisions) is None and any(_accepted(review, decisions))


def comes_to_be(file: ChangedFile, accepted: Iterable[str]) -> bool:
    """Tell whether accepted units of these kinds (empty: lines) make anything of a file.

    A mode alone makes nothing of a file that is not there.
    """
    return bool(file.old_mode) or any(kind != "mode" for kind in accepted)


def _wish(
    review: Planned, decisions: Decisions, result: FileResult, earlier: Merged | None
) -> Wish:
    """Return what shall become of a file, built on what was merged of it already."""
    file = review.file
    old_path = None if not file.old_mode else file.old_path or file.path
    base = Place(old_path, _side(file.old_mode, review.base))
    wanted = Place(result.path, _side(result.mode, result.content))
    if earlier is not None:
        merged = Place(earlier.path, earlier.side)
        base, wanted = merged, build_on(base, merged, wanted)
    return Wish(
        name=file.path,
        old_path=base.path,
        new_path=wanted.path,
        base=base.side,
        result=wanted.side,
        units=tuple(_accepted(review, decisions)),
        follows="" if earlier is None else earlier.merge,
    )


def _accepted(review: Planned, decisions: Decisions) -> Iterator[MergedUnit]:
    path = review.file.path
    for unit in review.units:
        marks = decisions.marks(path, unit.id, unit.size)
        if LETTERS["accepted"] in marks:
            edit = edit_in_force(decisions, path, unit.id, marks)
            yield MergedUnit(unit.id, marks, "" if edit is None else blake3(edit).hexdigest())


def _side(mode: str, content: bytes | None) -> Side:
    """Return one side of a wish from a git mode and content."""
    if not mode:
        return Side("none")
    if mode == FOLDER:
        return Side("dir")
    if mode == LINK:
        return Side("link", content or b"")
    return Side("file", content or b"", executable=mode == EXECUTABLE)
