"""Taking a patch that the user edited for decisions: all of it, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.protocol_review import PatchReport
from app.wire_text import to_text
from snapshot.decisions import LETTERS, Mark
from snapshot.facts import edit_fact
from snapshot.lines import split_plain
from snapshot.patch_read import apply_patch, refuse
from snapshot.safe_text import safe_name
from snapshot.selection import select

if TYPE_CHECKING:
    from collections.abc import Iterable

    from snapshot.decisions import Fact
    from snapshot.patch_read import FilePatch
    from snapshot.review import ChangedFile, FileReview


def file_of(patch: FilePatch, files: Iterable[ChangedFile]) -> ChangedFile:
    """Return the changed file that a part of a patch is about. Raises PatchRefused."""
    names = {patch.new, patch.old} - {None}
    for file in files:
        if file.path in names or (file.old_path or b"") in names:
            return file
    shown = ", ".join(safe_name(name or b"").text for name in sorted(names, key=repr))
    raise refuse(f"the agent did not change {shown}")


def taken(patch: FilePatch, review: FileReview) -> tuple[list[Mark], list[Fact]]:
    """Return marks and edits that make of a file what a patch makes of it. Raises PatchRefused."""
    file, name = review.file, safe_name(review.file.path).text
    if review.note:
        raise refuse(f"{name} cannot be merged: {review.note}")
    content = b"".join(apply_patch(split_plain(review.base or b""), patch))
    if not review.by_lines:
        if content != (review.agent or b""):
            raise refuse(f"{name} is not decided by lines")
        return _aspects(patch, review), []
    selected = select(review, content)
    if selected is None:
        raise refuse(f"it changes lines of {name} that the agent did not change")
    marks = [Mark(file.path, one.hunk.id, one.marks) for one in selected]
    edits = [edit_fact(file.path, one.hunk.id, one.edit) for one in selected]
    return marks + _aspects(patch, review), edits


def _aspects(patch: FilePatch, review: FileReview) -> list[Mark]:
    wanted = {"mode": patch.mode, "rename": patch.renamed}
    path = review.file.path
    return [
        Mark(path, unit.id, LETTERS["accepted" if wanted.get(unit.kind, True) else "open"])
        for unit in review.aspects
    ]


def report_of(paths: list[bytes], marks: list[Mark], edits: list[Fact]) -> PatchReport:
    """Return what is told of an import."""
    accepted = sum(LETTERS["accepted"] in mark.marks for mark in marks)
    return PatchReport(
        tuple(to_text(path) for path in paths),
        accepted,
        sum(edit.value is not None for edit in edits),
    )
