"""One changed file as a document for the diff pane: contents fetched, compared off the loop."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from snapshot.content_kind import described
from snapshot.find import Places
from snapshot.lines import has_bom
from snapshot.moved import moved_runs
from snapshot.review import ChangedFile, FileReview
from snapshot.rows import RowModel
from snapshot.safe_text import decode, safe_name
from widgets.diff_model import DiffDocument

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from app.protocol import FileChange
    from snapshot.hunks import Aspect
    from widgets.diff_model import Side


@dataclass(frozen=True)
class LoadedFile:
    """A file that can be shown."""

    path: str
    """As the keeper names it, not as it is shown."""
    key: str
    """Names the contents; the same key means the same document."""
    document: DiffDocument
    units: tuple[str, ...]
    """Ids of what can be decided: aspects, then hunks."""
    review: FileReview

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each unit stands, by its id."""
        return {unit: index for index, unit in enumerate(self.units)}

    def is_coloured(self, side: Side) -> bool:
        """Tell whether the colours of a side are known already."""
        return len(self.document.spans.get(side, ())) >= self.document.lines[side == "new"] > 0

    def text_of(self, side: Side) -> tuple[str, int]:
        """Return a side's text for a lexer, and the index of its first line.

        A byte order mark is an element of its own in the review and no text. A byte that is no
        UTF-8 is one question mark: it keeps its column, and the text can go to another process.
        """
        lines = self.review.old_lines if side == "old" else self.review.new_lines
        first = int(has_bom(lines))
        text = decode(b"".join(lines[first:]))
        return text.encode("utf-8", "replace").decode(), first


def key_of(change: FileChange) -> str:
    """Return what names the contents of a changed file."""
    parts = (change.path, change.kind, change.old_path, change.mode, change.old_mode)
    return "\0".join((*parts, change.base, change.agent, change.note))


async def load_file(read: Callable[[str], Awaitable[bytes]], change: FileChange) -> LoadedFile:
    """Fetch both sides of a changed file by `read` and compare them in a thread."""
    base = await read(change.base) if change.base else None
    agent = await read(change.agent) if change.agent else None
    return await asyncio.to_thread(build, change, base, agent)


def build(change: FileChange, base: bytes | None, agent: bytes | None) -> LoadedFile:
    """Compare two contents; everything in the result is safe to print."""
    file = ChangedFile(
        path=os.fsencode(change.path),
        kind=change.kind,
        old_path=os.fsencode(change.old_path) if change.old_path else None,
        mode=change.mode,
        old_mode=change.old_mode,
        base=change.base,
        agent=change.agent,
        note=change.note,
    )
    review = FileReview(file, base, agent)
    return LoadedFile(
        path=change.path,
        key=key_of(change),
        document=document_of(change, review),
        units=tuple(unit.id for unit in review.units),
        review=review,
    )


def document_of(change: FileChange, review: FileReview) -> DiffDocument:
    """Return the pane's view of a compared file."""
    decidable = bool(review.units)
    hunks = review.hunks if decidable else ()
    aspects = review.aspects if decidable else ()
    return DiffDocument(
        key=key_of(change),
        rows=RowModel(review),
        aspects=tuple(_aspect_text(aspect) for aspect in aspects),
        notes=_notes(change, review),
        hunk_sizes=tuple(len(hunk.pairs) for hunk in hunks),
        lines=(len(review.old_lines), len(review.new_lines)),
        intraline=review.intraline,
        partner=_partners(review),
        find=Places(review),
        only_space=_OnlySpace(review),
        moved=_moved(review),
    )


def _aspect_text(aspect: Aspect) -> str:
    text = f"{aspect.kind}  {aspect.label}"
    if aspect.kind == "mode":
        text += "  (executable)" if aspect.label.endswith("755") else "  (no longer executable)"
    return safe_name(text).text


def _notes(change: FileChange, review: FileReview) -> tuple[str, ...]:
    notes = [f"Cannot be merged: {change.note}."] if change.note else []
    if change.drift and not change.merged:
        notes.append("You changed this file since the snapshot; a merge joins both or reports it.")
    if review.suspicious:
        notes.append("Hidden or reordering characters: the text may read otherwise than it is.")
    notes += [note for note in review.notes if note != change.note]
    if review.binary:
        sides = (("snapshot", review.base), ("agent", review.agent))
        notes += [f"{name}: {described(data)}" for name, data in sides if data is not None]
    return tuple(safe_name(note).text for note in notes)


class _partners:
    """Finds the line that stands beside another one; layouts without pairs need it for marks."""

    def __init__(self, review: FileReview) -> None:
        self._review = review
        self._pairs: dict[Side, dict[int, int]] | None = None

    def __call__(self, side: Side, line: int) -> int | None:
        if self._pairs is None:
            pairs = [
                (pair.old, pair.new)
                for hunk in self._review.hunks
                for pair in hunk.pairs
                if pair.old is not None and pair.new is not None
            ]
            self._pairs = {"old": dict(pairs), "new": {new: old for old, new in pairs}}
        return self._pairs[side].get(line)


class _OnlySpace:
    """Finds the changed lines that differ from their partners in white space alone."""

    def __init__(self, review: FileReview) -> None:
        self._review = review
        self._lines: set[tuple[Side, int]] | None = None

    def __call__(self, side: Side, line: int) -> bool:
        if self._lines is None:
            self._lines = set(self._found())
        return (side, line) in self._lines

    def _found(self) -> Iterator[tuple[Side, int]]:
        old, new = self._review.old_lines, self._review.new_lines
        for hunk in self._review.hunks:
            for pair in hunk.pairs:
                left = b"" if pair.old is None else old[pair.old]
                right = b"" if pair.new is None else new[pair.new]
                if b"".join(left.split()) == b"".join(right.split()):
                    if pair.old is not None:
                        yield "old", pair.old
                    if pair.new is not None:
                        yield "new", pair.new


def _moved(review: FileReview) -> dict[tuple[Side, int], str]:
    """Return what is said beside lines that moved."""
    said: dict[tuple[Side, int], str] = {}
    for run in moved_runs(review.hunks, review.old_lines, review.new_lines):
        said["old", run.old] = f"moved to {review.line_number('new', run.new)}"
        said["new", run.new] = f"moved from {review.line_number('old', run.old)}"
        for n in range(1, run.lines):
            said["old", run.old + n] = said["new", run.new + n] = ""
    return said
