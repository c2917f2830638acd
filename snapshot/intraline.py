"""Differences inside of lines, and which old line stands beside which new one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .diff import diff

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_TOKENS: Final = 2000
"""Longer lines are shown as changed as a whole."""

_MAX_CELLS: Final = 4000
"""Blocks with more line pairs than this are paired by position."""

_SIMILAR: Final = 0.4
"""Share of common words from which two lines count as versions of one line."""

_TOO_DIFFERENT: Final = 0.6
"""Share of changed characters above which marks inside of the line only add noise."""

_CAP: Final = 100
_COMPARED_BYTES: Final = 512

_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")
_WORD: Final = re.compile(rb"\w+|[^\w\s]")

Marked = tuple[tuple[int, int], ...]
"""Half-open character ranges of one line, ascending."""

Sides = tuple[int | None, int | None]


def changed_ranges(old: str, new: str) -> tuple[Marked, Marked]:
    """Return the ranges that differ between two versions of a line; nothing if most does."""
    left, right = _TOKEN.findall(old), _TOKEN.findall(new)
    if max(len(left), len(right)) > MAX_TOKENS:
        return (), ()
    blocks = diff(left, right, cap=_CAP)
    in_old = _ranges(left, [(block.old_start, block.old_end) for block in blocks])
    in_new = _ranges(right, [(block.new_start, block.new_end) for block in blocks])
    changed = sum(end - start for start, end in (*in_old, *in_new))
    if changed > _TOO_DIFFERENT * (len(old) + len(new)):
        return (), ()
    return in_old, in_new


def _ranges(tokens: Sequence[str], runs: Sequence[tuple[int, int]]) -> Marked:
    """Turn runs of tokens into ranges of characters."""
    at = [0]
    for token in tokens:
        at.append(at[-1] + len(token))
    return tuple((at[start], at[end]) for start, end in runs if end > start)


def pair_lines(old: Sequence[bytes], new: Sequence[bytes]) -> list[Sides]:
    """Lay out a changed block as rows: similar lines side by side, the rest in order.

    Every index of both sides occurs exactly once and ascends.
    """
    if len(old) <= 1 >= len(new) or len(old) * len(new) > _MAX_CELLS:
        return _by_position(range(len(old)), range(len(new)))
    rows: list[Sides] = []
    i = j = 0
    for x, y in [*_similar_pairs(old, new), (len(old), len(new))]:
        rows += _by_position(range(i, x), range(j, y))
        if x < len(old) and y < len(new):
            rows.append((x, y))
        i, j = x + 1, y + 1
    return rows


def _by_position(old: range, new: range) -> list[Sides]:
    """Pair what there is on both sides; the longer side's rest stands alone."""
    longest = max(len(old), len(new))
    return [
        (old[k] if k < len(old) else None, new[k] if k < len(new) else None) for k in range(longest)
    ]


def _similar_pairs(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return ascending pairs of similar lines with the greatest total similarity."""
    score = _similarity(old, new)
    height, width = len(old), len(new)
    best = [[0.0] * (width + 1) for _ in range(height + 1)]
    for i in range(height - 1, -1, -1):
        row, below, scores = best[i], best[i + 1], score[i]
        for j in range(width - 1, -1, -1):
            row[j] = max(below[j], row[j + 1], below[j + 1] + scores[j] if scores[j] else 0.0)
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < height and j < width:
        if score[i][j] and best[i][j] == best[i + 1][j + 1] + score[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] >= best[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _similarity(old: Sequence[bytes], new: Sequence[bytes]) -> list[list[float]]:
    """Return for every pair the share of common words, 0 where they are not similar."""
    left = [frozenset(_WORD.findall(line[:_COMPARED_BYTES])) for line in old]
    right = [frozenset(_WORD.findall(line[:_COMPARED_BYTES])) for line in new]
    return [[_share(words, others) for others in right] for words in left]


def _share(words: frozenset[bytes], others: frozenset[bytes]) -> float:
    total = len(words) + len(others)
    share = 2 * len(words & others) / total if total else 0.0
    return share if share > _SIMILAR else 0.0
