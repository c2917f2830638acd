"""What earlier merges made of a file, and how the next merge builds on it.

A merge is `diff3(base, now, base + accepted)`. Once a merge of a file is in force, what it wrote
is no edit of the user's: the next one is `diff3(merged, now, merged + accepted)`, where `merged` is
what the earlier one asked for. So accepting more of a new or renamed file, or the agent's second
version of lines that were merged, is no conflict, and a conflict that was solved stays solved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .lines import is_binary
from .merge3 import merge_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from .writeback_ops import Side

    Earlier = Callable[[bytes], "Merged | None"]


@dataclass(frozen=True, slots=True)
class Merged:
    """What the last merge in force asked for at a path, the user's own edits left out."""

    merge: str
    path: bytes | None
    """Where it lies; None: it is gone."""
    side: Side


def nothing_merged(path: bytes) -> Merged | None:
    """Return None: no merge is in force."""
    del path
    return None


@dataclass(frozen=True, slots=True)
class Place:
    """An entry and where it lies; the path is None where there is none."""

    path: bytes | None
    side: Side


def build_on(base: Place, merged: Place, wanted: Place) -> Place:
    """Return what was merged with what is accepted now; where both say something, the latter."""
    if wanted.path is None or merged.path is None:
        return wanted
    path = merged.path if wanted.path == base.path else wanted.path
    sides = (base.side, merged.side, wanted.side)
    files = {side.kind for side in sides} <= {"file", "none"}
    if not files or any(side.known_digest for side in sides):
        return Place(path, merged.side if wanted.side.is_like(base.side) else wanted.side)
    content = _joined(*(side.content for side in sides))
    executable = (
        merged.side.executable
        if wanted.side.executable == base.side.executable
        else wanted.side.executable
    )
    return Place(path, replace(wanted.side, content=content, executable=executable))


def _joined(base: bytes, merged: bytes, wanted: bytes) -> bytes:
    if any(is_binary(side) for side in (base, merged, wanted)):
        return merged if wanted == base else wanted
    merge = merge_texts(base, merged, wanted)
    return merge.content({number: merge.theirs(number) for number in merge.conflicts})
