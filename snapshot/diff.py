"""The diff engine: which runs of lines changed between two versions.

Cheap steps come first: equal ends are trimmed, lines that occur once on either side anchor the
rest (patience), lines without any counterpart are set aside, and only what is left meets Myers'
greedy search. The budget counts steps, not seconds, so the same input gives the same hunks (and
the same hunk ids) in every process; when it is used up, what remains becomes one changed block.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

BUDGET: Final = 8_000_000
"""Search steps for one pair of files; at most about half a second."""

CAP: Final = 400
"""Edit distance at which the first Myers search gives up."""

_TINY: Final = 400
"""Regions with at most this many cells are searched without looking for anchors."""

_NEXT_CAP: Final = 128
"""Edit distance of the searches that follow when the first one gave up."""

Region = tuple[int, int, int, int]
Match = tuple[int, int, int]


class Block(NamedTuple):
    """A changed run: old lines `old_start:old_end` became new lines `new_start:new_end`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class _Search:
    """State of one diff: both sides as numbers, matches found, steps left."""

    def __init__(self, old: list[int], new: list[int], budget: int, cap: int) -> None:
        self.old = old
        self.new = new
        self.left = budget
        self.cap = cap
        self.matches: list[Match] = []

    def run(self) -> None:
        regions: list[Region] = [(0, len(self.old), 0, len(self.new))]
        while regions:
            region = self._trim(*regions.pop())
            old_start, old_end, new_start, new_end = region
            height, width = old_end - old_start, new_end - new_start
            if not height or not width:
                continue
            if height * width <= _TINY:
                self._search_tiny(region)
            elif self.left > 0:
                self.left -= height + width
                regions += self._anchor(region)

    def _trim(self, i: int, i_end: int, j: int, j_end: int) -> Region:
        old, new = self.old, self.new
        first = i
        while i < i_end and j < j_end and old[i] == new[j]:
            i += 1
            j += 1
        if i > first:
            self.matches.append((first, j - (i - first), i - first))
        last = i_end
        while i < i_end and j < j_end and old[i_end - 1] == new[j_end - 1]:
            i_end -= 1
            j_end -= 1
        if last > i_end:
            self.matches.append((i_end, j_end, last - i_end))
        return i, i_end, j, j_end

    def _search_tiny(self, region: Region) -> None:
        i, i_end, j, j_end = region
        old, new = self.old[i:i_end], self.new[j:j_end]
        found = _myers(old, new, len(old) + len(new), _TINY * _TINY).matches
        self.matches += [(i + x, j + y, n) for x, y, n in found]

    def _anchor(self, region: Region) -> list[Region]:
        """Match the region's unique lines and return what lies between them."""
        anchors = _longest_rising(self._unique_pairs(region))
        if not anchors:
            self._search_common(region)
            return []
        old, new = self.old, self.new
        i_done, i_end, j_done, j_end = region
        between: list[Region] = []
        for i, j in anchors:
            if i < i_done or j < j_done:
                continue
            top, left = i, j
            while top > i_done and left > j_done and old[top - 1] == new[left - 1]:
                top -= 1
                left -= 1
            bottom, right = i + 1, j + 1
            while bottom < i_end and right < j_end and old[bottom] == new[right]:
                bottom += 1
                right += 1
            self.matches.append((top, left, bottom - top))
            if top > i_done and left > j_done:
                between.append((i_done, top, j_done, left))
            i_done, j_done = bottom, right
        if i_done < i_end and j_done < j_end:
            between.append((i_done, i_end, j_done, j_end))
        return between

    def _unique_pairs(self, region: Region) -> list[tuple[int, int]]:
        """Return places of lines that occur once on either side, ascending in the old side."""
        i, i_end, j, j_end = region
        in_old: dict[int, int] = {}
        for index in range(i, i_end):
            line = self.old[index]
            in_old[line] = -1 if line in in_old else index
        in_new: dict[int, int] = {}
        for index in range(j, j_end):
            line = self.new[index]
            if line in in_old:
                in_new[line] = -1 if line in in_new else index
        return [
            (index, in_new[line])
            for line, index in in_old.items()
            if index >= 0 and in_new.get(line, -1) >= 0
        ]

    def _search_common(self, region: Region) -> None:
        """Search only lines that occur on both sides; the others are changed for certain."""
        i, i_end, j, j_end = region
        there = set(self.new[j:j_end])
        rows = [index for index in range(i, i_end) if self.old[index] in there]
        if not rows:
            return
        here = {self.old[index] for index in rows}
        columns = [index for index in range(j, j_end) if self.new[index] in here]
        old = [self.old[index] for index in rows]
        new = [self.new[index] for index in columns]
        found = self._search_pieces(old, new)
        self.matches += [(rows[x + k], columns[y + k], 1) for x, y, n in found for k in range(n)]

    def _search_pieces(self, old: list[int], new: list[int]) -> list[Match]:
        """Search until the cap, keep the path that came farthest, and go on from its end."""
        matches: list[Match] = []
        i, j, cap = 0, 0, self.cap
        while self.left > 0 and i < len(old) and j < len(new):
            piece = _myers(old[i:], new[j:], cap, self.left)
            matches += [(i + x, j + y, n) for x, y, n in piece.matches]
            i, j, self.left, cap = i + piece.height, j + piece.width, piece.left, _NEXT_CAP
        return matches


def diff(
    old: Sequence[Hashable],
    new: Sequence[Hashable],
    *,
    budget: int = BUDGET,
    cap: int = CAP,
) -> list[Block]:
    """Return the changed blocks, ascending, with at least one equal line between two of them.

    Args:
        old: lines (or tokens) of the old side.
        new: lines of the new side.
        budget: search steps; a smaller one gives coarser blocks, never wrong ones.
        cap: edit distance at which a single search gives up.

    """
    numbers: dict[Hashable, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in old]
    right = [numbers.setdefault(line, len(numbers)) for line in new]
    search = _Search(left, right, budget, cap)
    search.run()
    search.matches.sort()
    return _between(search.matches, len(left), len(right))


def _between(matches: list[Match], height: int, width: int) -> list[Block]:
    """Return what lies between ascending matches."""
    blocks: list[Block] = []
    i = j = 0
    for x, y, n in matches:
        if x > i or y > j:
            blocks.append(Block(i, x, j, y))
        i, j = x + n, y + n
    if i < height or j < width:
        blocks.append(Block(i, height, j, width))
    return blocks


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence whose second numbers rise (patience sorting)."""
    places = [place for _, place in pairs]
    if all(map(operator.lt, places, places[1:])):
        return pairs  # nothing moved: as it nearly always is
    tops: list[int] = []
    top_at: list[int] = []
    before = [-1] * len(pairs)
    for index, value in enumerate(places):
        pile = bisect_left(tops, value)
        before[index] = top_at[pile - 1] if pile else -1
        tops[pile : pile + 1] = [value]
        top_at[pile : pile + 1] = [index]
    rising: list[tuple[int, int]] = []
    index = top_at[-1] if top_at else -1
    while index >= 0:
        rising.append(pairs[index])
        index = before[index]
    rising.reverse()
    return rising


class _Piece(NamedTuple):
    """Outcome of one search: matches inside of `height` by `width` lines, and steps left."""

    matches: list[Match]
    height: int
    width: int
    left: int


def _myers(old: list[int], new: list[int], cap: int, budget: int) -> _Piece:
    """Search the shortest edit script greedily (Myers 1986).

    After `cap` edits or `budget` steps the path that came farthest is the answer.
    """
    height, width = len(old), len(new)
    limit = min(height + width, cap)
    goal = height - width
    middle = limit + 1
    reach = [0] * (2 * limit + 3)
    trace: list[list[int]] = []
    for edits in range(limit + 1):
        trace.append(reach[middle - edits - 1 : middle + edits + 2])
        budget -= 2 * edits + 1
        for k in range(-edits, edits + 1, 2):
            above, below = reach[middle + k - 1], reach[middle + k + 1]
            x = below if k == -edits or (k != edits and above < below) else above + 1
            start = x
            y = x - k
            while x < height and y < width and old[x] == new[y]:
                x += 1
                y += 1
            reach[middle + k] = x
            budget -= x - start
            if k == goal and x >= height:
                return _Piece(_walk_back(trace, height, width), height, width, budget)
        if budget <= 0:
            break
    x, y = _farthest(reach, middle, len(trace) - 1, height, width)
    return _Piece(_walk_back(trace, x, y), x, y, budget)


def _farthest(
    reach: list[int], middle: int, edits: int, height: int, width: int
) -> tuple[int, int]:
    """Return the end of the path that covers most lines without leaving the rectangle."""
    ends = [(reach[middle + k], reach[middle + k] - k) for k in range(-edits, edits + 1, 2)]
    return max((end for end in ends if end[0] <= height and end[1] <= width), key=sum)


def _walk_back(trace: list[list[int]], height: int, width: int) -> list[Match]:
    """Follow the recorded rounds from the end to the start and collect equal runs."""
    matches: list[Match] = []
    x, y = height, width
    for edits in range(len(trace) - 1, 0, -1):
        reach, middle, k = trace[edits], edits + 1, x - y
        above, below = reach[middle + k - 1], reach[middle + k + 1]
        if k == -edits or (k != edits and above < below):
            start, before, diagonal = below, below, k + 1
        else:
            start, before, diagonal = above + 1, above, k - 1
        if x > start:
            matches.append((start, start - k, x - start))
        x, y = before, before - diagonal
    if x:
        matches.append((0, 0, x))
    matches.reverse()
    return matches
