"""Where a text stands in a changed file, regardless of case.

The agent's side is searched everywhere, the old side where lines went: what is on both is found
once. Lines are searched as they are shown, so what hides in them is found as its mark.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, Literal

from .lines import stem
from .safe_text import decode, safe_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .review_file import FileReview

MAX_PLACES: Final = 10_000
"""Lines in which a text is found on one side of a file."""

Side = Literal["old", "new"]


class Places:
    """Finds a text in one file; its lines are made ready once."""

    def __init__(self, review: FileReview) -> None:
        self._review = review
        self._texts: dict[Side, tuple[str, list[int], list[int]]] | None = None

    def __call__(self, text: str) -> list[tuple[Side, int]]:
        """Return at most `MAX_PLACES` lines a side that hold `text`; an empty one only prepares."""
        texts = self._texts
        if texts is None:
            texts = self._texts = {"new": self._lowered("new"), "old": self._lowered("old")}
        wanted = text.lower()
        found: list[tuple[Side, int]] = []
        for side, (lowered, starts, numbers) in texts.items() if wanted else ():
            for line in _lines_with(lowered, wanted, starts):
                found.append((side, numbers[line]))
        return found

    def _lowered(self, side: Side) -> tuple[str, list[int], list[int]]:
        """Return lower-case lines as one text, where each begins, and their numbers."""
        lines = self._review.new_lines if side == "new" else self._review.old_lines
        numbers = list(range(len(lines))) if side == "new" else sorted(self._gone())
        lowered = [safe_line(decode(stem(lines[number]))).text.lower() for number in numbers]
        starts = list(itertools.accumulate((len(line) + 1 for line in lowered), initial=0))
        return "\n".join(lowered), starts, numbers

    def _gone(self) -> set[int]:
        changes = (change for hunk in self._review.hunks for change in hunk.changes)
        return {change.old for change in changes if change.old is not None}


def may_hold(content: bytes | None, text: str) -> bool:
    """Tell whether a content may hold a text, without a diff: False is certain."""
    if not content:
        return False
    if not text.isascii() or not text.isprintable():
        return True  # the text may be the mark of something that is not shown as it is
    return text.lower() in decode(content).lower()


def _lines_with(text: str, wanted: str, starts: list[int]) -> Iterator[int]:
    """Yield each line of a text that holds `wanted` once, up to `MAX_PLACES` of them."""
    at, left = text.find(wanted), MAX_PLACES
    while at >= 0 and left:
        line = bisect_right(starts, at) - 1
        yield line
        left -= 1
        at = text.find(wanted, starts[line + 1])
