"""Comments on what changed: written, moved along with their hunks, outdated, never lost."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from app import protocol_review as wire
from app.errors import AppError
from app.wire_text import to_bytes, to_text
from app.wording import counted
from snapshot.decisions import Fact
from snapshot.facts import MAX_QUOTE, Comment, comment_of, place
from snapshot.safe_text import decode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from app.keeper.summaries import Summary
    from snapshot.decisions import DecisionLog
    from snapshot.facts import Side
    from snapshot.review import ChangedFile, FileReview


class Shelf(Protocol):
    """What comments need of the desk; its methods are called with the lock held."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Hold it for everything that touches the log or a file."""
        ...

    @property
    def log(self) -> DecisionLog:
        """The log of decisions."""
        ...

    @property
    def files(self) -> Mapping[str, ChangedFile]:
        """The changed files of this generation by their names."""
        ...

    def summary(self, file: ChangedFile) -> Summary:
        """Return what is kept of a file."""
        ...

    def review(self, file: ChangedFile) -> FileReview:
        """Return a file with its lines."""
        ...

    def named(self, path: str) -> ChangedFile:
        """Return a changed file. Raises AppError `not-found`."""
        ...


class Remarks:
    """The comments of one session; blocks on disk like the desk."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def all(self) -> tuple[wire.Comment, ...]:
        """Return every comment: by path, then by line, then by age."""
        with self._shelf.lock:
            found = [self._wire(comment) for comment in self.known()]
        return tuple(sorted(found, key=lambda one: (one.path, one.start, one.at)))

    def known(self) -> list[Comment]:
        """Return the comments as they were written, the oldest first."""
        return [comment_of(value) for value in self._shelf.log.facts("comment").values()]

    def counts(self) -> dict[bytes, int]:
        """Return how many comments there are on each path."""
        counts: dict[bytes, int] = {}
        for comment in self.known():
            counts[comment.path] = counts.get(comment.path, 0) + 1
        return counts

    def write(self, asked: wire.CommentRequest) -> wire.Comment:
        """Record a comment, or a new text for one, as one undo step.

        Raises AppError `usage`, `not-found`, DecisionUnknown.
        """
        with self._shelf.lock:
            text = checked_text(asked.text)
            comment = self._again(asked.id, text) if asked.id else self._new(asked, text)
            self._shelf.log.record((), (comment.fact(),))
            return self._wire(comment)

    def remove(self, id: str) -> None:
        """Take a comment away, as one undo step. Raises AppError `not-found`."""
        with self._shelf.lock:
            self._shelf.log.record((), (Fact("comment", self._known(id).id, None),))

    def _known(self, id: str) -> Comment:
        facts = self._shelf.log.facts("comment")
        found = [key for key in facts if key == id] or [
            key for key in facts if id and key.startswith(id)
        ]
        if len(found) != 1:
            what = "There is no comment" if not found else f"{len(found)} comments begin with"
            raise AppError("not-found", f"{what} '{id}'.", "List them: cloche comment ID --list")
        return comment_of(facts[found[0]])

    def _again(self, id: str, text: str) -> Comment:
        return replace(self._known(id), text=text, at=time.time())

    def _new(self, asked: wire.CommentRequest, text: str) -> Comment:
        if len(self._shelf.log.facts("comment")) >= wire.MAX_COMMENTS:
            raise AppError(
                "usage",
                f"A session has at most {wire.MAX_COMMENTS} comments.",
                "Remove one: cloche comment ID --remove COMMENT",
            )
        made = Comment(secrets.token_hex(4), to_bytes(asked.path), text, asked.side, at=time.time())
        if not asked.path:
            return made
        return self._anchored(made, asked, self._shelf.named(asked.path))

    def _anchored(self, made: Comment, asked: wire.CommentRequest, file: ChangedFile) -> Comment:
        """Return the comment with its lines, the hunk that they belong to, and a quote."""
        review, summary = self._shelf.review(file), self._shelf.summary(file)
        unit = review.unit(asked.hunk).id if asked.hunk else ""
        start, end = _span(asked)
        if unit and not start:
            start, end = _span_of_unit(summary, unit, asked.side)
        lines = review.old_lines if asked.side == "old" else review.new_lines
        count = review.line_number(asked.side, len(lines) - 1) or 0 if lines else 0
        if end > count:
            raise _no_such_line(file, end, count)
        if not unit and start:
            unit = _unit_at(summary, asked.side, start, end)
        skipped = len(lines) - count
        quote = b"".join(lines[start - 1 + skipped : end + skipped]) if start else b""
        return replace(
            made,
            start=start,
            end=end,
            unit=unit,
            anchor=_starts(summary, asked.side).get(unit, 0),
            digest=file.base if asked.side == "old" else file.agent,
            quote=quote[:MAX_QUOTE],
        )

    def _wire(self, comment: Comment) -> wire.Comment:
        start, end, outdated = self.placed(comment)
        sent = self._shelf.log.facts("sent").get(comment.id)
        return wire.Comment(
            id=comment.id,
            path=to_text(comment.path),
            text=comment.text,
            side=comment.side,
            start=start,
            end=end,
            hunk=comment.unit,
            quote=to_text(comment.quote),
            outdated=outdated,
            sent=sent is not None and sent["text"] == comment.text,
            at=comment.at,
        )

    def placed(self, comment: Comment) -> tuple[int, int, bool]:
        """Return first and last line of a comment as of now, and whether it is outdated."""
        file = self._shelf.files.get(to_text(comment.path))
        if file is None:
            return (comment.start, comment.end, bool(comment.path))
        digest = file.base if comment.side == "old" else file.agent
        return place(comment, digest, _starts(self._shelf.summary(file), comment.side))


def checked_text(text: str) -> str:
    """Return a comment's or reason's text without blank ends. Raises AppError `usage`."""
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise AppError("usage", "A comment needs a text.", "cloche comment ID PATH:LINE TEXT")
    if len(text.encode(errors="surrogatepass")) > wire.MAX_COMMENT:
        raise AppError("usage", f"A comment has at most {wire.MAX_COMMENT >> 10} KiB.")
    return text.encode(errors="replace").decode()


def _no_such_line(file: ChangedFile, line: int, count: int) -> AppError:
    return AppError(
        "usage",
        f"That side of the file has {counted(count, 'line')}; there is no line {line}.",
        f"See them: cloche diff ID {decode(file.path)}",
    )


def _span(asked: wire.CommentRequest) -> tuple[int, int]:
    start, end = asked.start, asked.end or asked.start
    if start < 0 or end < start:
        raise AppError(
            "usage", f"There are no lines {start} to {end}.", "Count lines from 1: PATH:4-7"
        )
    return start, end


def _starts(summary: Summary, side: Side) -> dict[str, int]:
    """Return where each unit begins on a side."""
    at = 0 if side == "old" else 2
    return {unit.id: unit.numbers[at] for unit in summary.units}


def _span_of_unit(summary: Summary, wanted: str, side: Side) -> tuple[int, int]:
    """Return a hunk's lines on a side; 0, 0 where it has none there."""
    at = 0 if side == "old" else 2
    for unit in summary.units:
        if unit.id == wanted and unit.numbers[at + 1]:
            start, count = unit.numbers[at : at + 2]
            return start, start + count - 1
    return 0, 0


def _unit_at(summary: Summary, side: Side, start: int, end: int) -> str:
    """Return the hunk that holds lines of a side, empty where none does."""
    at = 0 if side == "old" else 2
    for unit in summary.units:
        first, count = unit.numbers[at : at + 2]
        if count and first <= start and end < first + count:
            return unit.id
    return ""
