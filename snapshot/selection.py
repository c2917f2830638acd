"""Which decisions make a given content of a file: the way back from a result to its hunks.

Between the hunks every line must be the snapshot's, so the result is cut at those runs; each piece
is a hunk's result: the agent's, the snapshot's, a choice of single lines, or the user's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .decisions import LETTERS
from .lines import split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .hunks import Hunk, Pair
    from .review_file import FileReview

MAX_PLACES = 200
"""Places that are tried for one run of unchanged lines."""


class Selected(NamedTuple):
    """What a result says of one hunk: marks, and an edit where no marks can say it."""

    hunk: Hunk
    marks: str
    edit: bytes | None = None


def select(review: FileReview, content: bytes) -> list[Selected] | None:
    """Return what a content says of each hunk; None when it differs outside of them."""
    lines = split(content)
    pieces = _cut(review, lines)
    if pieces is None:
        return None
    return [
        _selected(review, hunk, piece) for hunk, piece in zip(review.hunks, pieces, strict=True)
    ]


def _cut(review: FileReview, lines: Sequence[bytes]) -> list[list[bytes]] | None:
    """Cut a result at the unchanged runs, by the first place for each that lets the rest fit."""
    hunks, old = review.hunks, review.old_lines
    starts = [*(hunk.old_start for hunk in hunks), len(old)]
    gaps = [list(old[hunk.old_end : start]) for hunk, start in zip(hunks, starts[1:], strict=True)]
    head = old[: starts[0]]
    if list(lines[: len(head)]) != list(head):
        return None
    waiting: list[tuple[int, list[list[bytes]]]] = [(len(head), [])]
    dead: set[tuple[int, int]] = set()
    while waiting:
        at, pieces = waiting.pop()
        if len(pieces) == len(hunks):
            if at == len(lines):
                return pieces
            continue
        if (at, len(pieces)) in dead:
            continue
        dead.add((at, len(pieces)))
        number = len(pieces)
        places = _places(review, lines, at, number, gaps[number])
        waiting += [
            (place + len(gaps[number]), [*pieces, list(lines[at:place])])
            for place in reversed(places)
        ]
    return None


def _places(
    review: FileReview, lines: Sequence[bytes], at: int, number: int, gap: list[bytes]
) -> list[int]:
    """Return where the run after a hunk may begin, the likeliest place first."""
    hunk = review.hunks[number]
    if number == len(review.hunks) - 1:
        last = len(lines) - len(gap)
        return [last] if last >= at and list(lines[last:]) == gap else []
    likely = [at + hunk.new_end - hunk.new_start, at + hunk.old_end - hunk.old_start]
    found = [
        place
        for place in dict.fromkeys([*likely, *range(at, len(lines) - len(gap) + 1)])
        if lines[place : place + 1] == gap[:1] and list(lines[place : place + len(gap)]) == gap
    ]
    return found[:MAX_PLACES]


def _selected(review: FileReview, hunk: Hunk, piece: list[bytes]) -> Selected:
    open_, accepted = LETTERS["open"], LETTERS["accepted"]
    if piece == list(review.new_lines[hunk.new_start : hunk.new_end]):
        return Selected(hunk, accepted * hunk.size)
    if piece == list(review.old_lines[hunk.old_start : hunk.old_end]):
        return Selected(hunk, open_ * hunk.size)
    taken = _subset(review, hunk, piece)
    if taken is not None:
        marks = (accepted if number in taken else open_ for number in range(hunk.size))
        return Selected(hunk, "".join(marks))
    return Selected(hunk, accepted * hunk.size, b"".join(piece))


def _subset(review: FileReview, hunk: Hunk, piece: list[bytes]) -> frozenset[int] | None:
    """Return the changes of a hunk that make a piece; None when no choice of them does."""
    reached: dict[int, frozenset[int]] = {0: frozenset()}
    for pair in hunk.pairs:
        fresh: dict[int, frozenset[int]] = {}
        for at, taken in reached.items():
            for lines, more in _options(review, pair):
                if piece[at : at + len(lines)] == lines:
                    fresh.setdefault(at + len(lines), taken | more)
        reached = fresh
    return reached.get(len(piece))


def _options(review: FileReview, pair: Pair) -> list[tuple[list[bytes], frozenset[int]]]:
    """Return what a row can become, and which changes that takes."""
    x, y, removal, insertion = pair
    kept: list[bytes] = [] if x is None else [review.old_lines[x]]
    new: list[bytes] = [] if y is None else [review.new_lines[y]]
    nothing: list[bytes] = []
    if removal is None and insertion is None:
        return [(kept, frozenset())]
    if removal == insertion and removal is not None:
        return [(kept, frozenset()), (new, frozenset((removal,)))]
    removals = [(kept, frozenset[int]())]
    if removal is not None:
        removals.append((nothing, frozenset((removal,))))
    insertions = [(nothing, frozenset[int]())]
    if insertion is not None:
        insertions.append((new, frozenset((insertion,))))
    return [(a + b, c | d) for a, c in removals for b, d in insertions]
