"""The values of reviewing that cross `control.sock`: comments, edits, conflicts, requests.

As in `app.protocol`: frozen msgspec structs, paths as `app.wire_text` makes them;
`bytes` are base64 in JSON.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

MAX_COMMENT: Final = 8 << 10
"""Longest comment or reason, in bytes of UTF-8."""

MAX_COMMENTS: Final = 2000
"""Comments of one session."""

MAX_EDIT: Final = 256 << 10
"""Longest text in bytes that replaces a hunk's result or a conflict."""

MAX_SIDE: Final = 64 << 10
"""Bytes of each side of a conflict in one answer; what is longer is cut and says so."""


class Comment(msgspec.Struct, frozen=True):
    """A comment of the user: on lines, a hunk, a file, or with an empty path the whole review."""

    id: str
    path: str
    text: str
    side: Literal["old", "new"] = "new"
    start: int = 0
    """1-based number of its first line as of now; 0: the whole file."""
    end: int = 0
    """Number of its last line, included."""
    hunk: str = ""
    """The hunk that it belongs to, if any."""
    quote: str = ""
    """The beginning of the lines that it was written about; not sanitised."""
    outdated: bool = False
    """The hunk or content that it was written about is not there any more."""
    sent: bool = False
    """The agent was told of it."""
    at: float = 0.0
    """When it was written, in unix seconds."""


class CommentRequest(msgspec.Struct, frozen=True):
    """A comment to write, or with `id` a new text for one.

    Without `hunk` the hunk is found by the lines; lines outside of every hunk are fine, too.
    """

    path: str
    text: str
    side: Literal["old", "new"] = "new"
    start: int = 0
    end: int = 0
    """0: the same line as `start`."""
    hunk: str = ""
    id: str = ""


class CommentsPage(msgspec.Struct, frozen=True):
    """As many comments as fit into one line; the rest is asked for by `start`."""

    comments: tuple[Comment, ...]
    total: int


class EditRequest(msgspec.Struct, frozen=True):
    """The user's own lines in place of a hunk's result; it accepts the hunk."""

    path: str
    hunk: str
    content: bytes


class HunkResult(msgspec.Struct, frozen=True):
    """What stands in a hunk's place as it is decided now (nothing accepted: the old lines)."""

    content: bytes
    proposed: bytes
    """The agent's own lines."""
    edited: bool = False


ConflictChoice = Literal["base", "yours", "agent", "both", "both-reversed", "text"]
"""What solves a conflict; `both`: yours and then the agent's."""


class Conflict(msgspec.Struct, frozen=True):
    """One place where you and the agent changed the same, or one path that cannot be merged.

    `kind` is `lines` (the three texts are the lines of one place) or `whole` (they are contents or
    links' targets of the whole entry). The id is made of the three sides: if one of them becomes
    another, so does the id, and a resolution no longer holds.
    """

    path: str
    id: str
    kind: Literal["lines", "whole"]
    reason: str
    line: int = 0
    """1-based number of the first line on your side; 0 for `whole`."""
    base: bytes = b""
    yours: bytes = b""
    agent: bytes = b""
    """What was accepted of the agent's (and your edits of it)."""
    choices: tuple[ConflictChoice, ...] = ()
    """What can be chosen here."""
    choice: ConflictChoice | Literal[""] = ""
    """What was chosen, empty while it is open."""
    text: bytes = b""
    """With the choice `text`: what was written."""
    cut: bool = False
    """Whether a side is longer than what is sent of it."""


class ConflictsPage(msgspec.Struct, frozen=True):
    """As many conflicts as fit into one line; the rest is asked for by `start`."""

    conflicts: tuple[Conflict, ...]
    total: int


class Resolve(msgspec.Struct, frozen=True):
    """How a conflict is solved; `open` takes it back. Without `conflict`: all of the path."""

    path: str
    choice: ConflictChoice | Literal["open"]
    conflict: str = ""
    text: bytes = b""


class StepReport(msgspec.Struct, frozen=True):
    """What an undo or redo of decisions was about, in numbers; all 0: there was nothing to do."""

    hunks: int = 0
    """Hunks and aspects whose decision is another one now."""
    edits: int = 0
    """Hunks that have, or lost, the user's own lines."""
    reasons: int = 0
    comments: int = 0
    solutions: int = 0
    """Conflicts that are solved otherwise now, or open."""

    def __bool__(self) -> bool:
        """Tell whether there was anything to do."""
        return self != StepReport()


class ChangeRequest(msgspec.Struct, frozen=True):
    """The prompt that asks the agent for changes, made of what it was not told of yet."""

    text: str
    """Empty when there is nothing to ask for."""
    rejected: int = 0
    """Rejected hunks in it."""
    comments: int = 0
    left_out: int = 0
    """Items that found no room; the next request holds them."""
    items: tuple[str, ...] = ()
    """Names what is in it, to be given back when it is sent."""


MAX_PATCH: Final = 640 << 10
"""Longest patch in bytes that is taken for decisions."""


class PatchReport(msgspec.Struct, frozen=True):
    """What a patch was taken for."""

    paths: tuple[str, ...]
    """The files that it names; decisions about all others stay."""
    accepted: int
    """Hunks and aspects of which something is accepted now."""
    edited: int
    """Hunks that have the user's own lines now."""


MAX_FIND: Final = 200
"""Longest text in characters that is searched for in all files."""


class FoundPlace(msgspec.Struct, frozen=True):
    """A line that holds a text, regardless of case."""

    path: str
    side: Literal["old", "new"]
    line: int
    """1-based number on its side."""
    text: str
    """The beginning of the line; not sanitised."""


class FoundPlaces(msgspec.Struct, frozen=True):
    """Where a text stands in the changed files."""

    places: tuple[FoundPlace, ...] = ()
    cut: str = ""
    """Empty, or one sentence on why there may be more."""
