"""The shapes of what the log of decisions holds beside marks.

* `comment`: key is its id, value a `Comment`.
* `reason`: key `unit_key`, value {"text"}: why a unit was rejected.
* `edit`: key `unit_key`, value {"data"}: base64 of the lines in place of a hunk's result.
* `rejected`: key `content_id`, value {"path", "unit"}: changed lines that were rejected whole.
* `resolution`: key `unit_key` of path and conflict, value {"choice", "data"}.
* `sent`: key a comment's id or a `unit_key`, value {"at", "text"}: the
  agent was told, in these words.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from .decisions import Fact, unit_key
from .safe_text import decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .conflicts import Resolution

Side = Literal["old", "new"]

MAX_QUOTE: Final = 2000
"""Bytes of a comment's lines that are remembered with it."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A user's comment on lines, a hunk, a file, or (with an empty path) the whole review.

    It belongs to what it was written about: a hunk that is gone, or a content that is another one,
    makes it outdated, and the quoted lines still tell what was meant.
    """

    id: str
    path: bytes
    text: str
    side: Side = "new"
    start: int = 0
    """1-based number of its first line; 0 for the whole file."""
    end: int = 0
    """Number of its last line, included."""
    unit: str = ""
    """The hunk that it belongs to, if any."""
    anchor: int = 0
    """Where that hunk began on this side when the comment was written."""
    digest: str = ""
    """The content of this side then."""
    quote: bytes = b""
    at: float = 0.0
    """When it was written, in unix seconds."""

    def fact(self) -> Fact:
        """Return it as the log keeps it."""
        value = asdict(self) | {"path": decode(self.path), "quote": decode(self.quote)}
        return Fact("comment", self.id, value)


class Placed(NamedTuple):
    """Where a comment stands now; an outdated one keeps the numbers that it was written with."""

    start: int
    end: int
    outdated: bool


def comment_of(value: Mapping[str, Any]) -> Comment:
    """Return a comment from the log."""
    data = dict(value)
    data["path"], data["quote"] = encode(data["path"]), encode(data["quote"])
    return Comment(**data)


def place(comment: Comment, digest: str, starts: Mapping[str, int]) -> Placed:
    """Return where a comment stands in a file.

    Args:
        comment: what was written.
        digest: the content of its side now; of no meaning for a comment on a hunk.
        starts: where each hunk of the file begins on its side now, by the hunks' ids.

    """
    if not comment.path:
        return Placed(0, 0, False)
    if not comment.unit:
        return Placed(comment.start, comment.end, digest != comment.digest)
    if comment.unit not in starts:
        return Placed(comment.start, comment.end, True)
    moved = starts[comment.unit] - comment.anchor if comment.start else 0
    return Placed(comment.start + moved, comment.end + moved, False)


def edit_fact(path: bytes, unit: str, data: bytes | None) -> Fact:
    """Return the fact that a hunk's result is replaced; None: that it is not."""
    value = None if data is None else {"data": base64.b64encode(data).decode()}
    return Fact("edit", unit_key(path, unit), value)


def resolution_fact(path: bytes, conflict: str, resolution: Resolution | None) -> Fact:
    """Return the fact how a conflict is solved; None: it is open."""
    if resolution is None:
        return Fact("resolution", unit_key(path, conflict), None)
    data = base64.b64encode(resolution.text).decode()
    value = {"choice": resolution.choice, "data": data}
    return Fact("resolution", unit_key(path, conflict), value)


def reason_fact(path: bytes, unit: str, text: str) -> Fact:
    """Return the fact why a unit was rejected; an empty text: no reason is known."""
    return Fact("reason", unit_key(path, unit), {"text": text} if text else None)


def rejected_fact(content: str, path: bytes, unit: str, rejected: bool) -> Fact:
    """Return the fact that changed lines were rejected, or no longer are."""
    value = {"path": decode(path), "unit": unit} if rejected else None
    return Fact("rejected", content, value)


def sent_fact(key: str, at: float, text: str) -> Fact:
    """Return the fact that the agent was told of a comment or a rejected unit, in these words."""
    return Fact("sent", key, {"at": at, "text": text})


def reason_of(facts: Mapping[str, Mapping[str, Any]], path: bytes, unit: str) -> str:
    """Return why a unit was rejected, empty where nobody said."""
    found = facts.get(unit_key(path, unit))
    return "" if found is None else cast("str", found["text"])
