"""Applying a chosen subset of changed lines, exactly.

The result is a join of slices of both sides, never an application of patch text: all accepted
gives the new bytes, nothing accepted the old ones, and everything between keeps each untouched
line byte for byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lines import has_bom, join, split_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .hunks import Hunk

ACCEPTED = "a"
"""Letter of an accepted line in a unit's marks."""


def compose(
    old: Sequence[bytes],
    new: Sequence[bytes],
    hunks: Sequence[Hunk],
    marks: Callable[[Hunk], str],
    edit: Callable[[Hunk], bytes | None] = lambda _: None,
) -> bytes:
    """Return the old side with the accepted lines of every hunk applied.

    Where `edit` returns lines they stand in the hunk's place as they are.
    """
    result: list[bytes] = []
    done = 0
    for hunk in hunks:
        result += old[done : hunk.old_start]
        result += hunk_lines(old, new, hunk, marks(hunk), edit(hunk))
        done = hunk.old_end
    result += old[done:]
    return join(result, old if len(old) > has_bom(old) else new)


def hunk_lines(
    old: Sequence[bytes],
    new: Sequence[bytes],
    hunk: Hunk,
    marks: str,
    edit: bytes | None = None,
) -> list[bytes]:
    """Return what becomes of one hunk, in the order of its rows: kept and new lines interleave."""
    if edit is not None:
        return split_plain(edit)
    result: list[bytes] = []
    for x, y, removal, insertion in hunk.pairs:
        if x is not None and (removal is None or marks[removal] != ACCEPTED):
            result.append(old[x])
        if y is not None and insertion is not None and marks[insertion] == ACCEPTED:
            result.append(new[y])
    return result
