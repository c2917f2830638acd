"""What is accepted as a patch, for the command line and the screen: exact bytes for `git apply`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.wire_text import to_bytes, to_text
from snapshot.decisions import LETTERS
from snapshot.patch import export_patch
from snapshot.review import ChangedFile, FileReview, lacks_content
from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.protocol import Changes, FileChange
    from app.services.ports import SessionPort

MAX_COPIED: Final = 64 << 10
"""Bytes of a patch that go to a clipboard: terminals drop sequences that are much longer."""


class Recorded:
    """The decisions of a list of changes, with the edits that were fetched."""

    def __init__(self, changes: Changes, edits: dict[tuple[bytes, str], bytes]) -> None:
        self._marks = {
            (to_bytes(file.path), hunk.id): hunk.marks
            for file in changes.files
            for hunk in file.hunks
        }
        self._edits = edits

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return the marks of a unit."""
        found = self._marks.get((path, unit), "")
        return found if len(found) == size else LETTERS["open"] * size

    def edit(self, path: bytes, unit: str) -> bytes | None:
        """Return the user's own lines in place of a hunk."""
        return self._edits.get((path, unit))


async def load_review(read: Callable[[str], Awaitable[bytes]], file: FileChange) -> FileReview:
    """Fetch both sides of a changed file by `read` and compare them."""
    base = await read(file.base) if file.base else None
    agent = await read(file.agent) if file.agent else None
    changed = ChangedFile(
        path=to_bytes(file.path),
        kind=file.kind,
        old_path=to_bytes(file.old_path) if file.old_path else None,
        mode=file.mode,
        old_mode=file.old_mode,
        base=file.base,
        agent=file.agent,
        note=file.note,
    )
    return FileReview(changed, base, agent)


async def accepted_patch(session: SessionPort, changes: Changes) -> tuple[bytes, list[str]]:
    """Return what is accepted as a patch, and the shown names that a patch cannot carry."""
    taken = [file for file in changes.files if file.decision in ("accepted", "mixed")]
    kept = [file for file in taken if not (file.binary or file.note)]
    reviews = [await load_review(session.blob, file) for file in kept]
    edits = {
        (to_bytes(file.path), hunk.id): (await session.hunk_result(file.path, hunk.id)).content
        for file in changes.files
        for hunk in file.hunks
        if hunk.edited
    }
    decisions = Recorded(changes, edits)
    without = {to_text(review.file.path) for review in reviews if lacks_content(review, decisions)}
    left_out = [
        safe_name(to_bytes(file.path)).text
        for file in taken
        if file not in kept or file.path in without
    ]
    return export_patch(reviews, decisions), left_out
