"""Moving a pure insertion or deletion to where people would have put it.

When the line after a block equals its first line the block can slide without changing what the
diff means. Each possible place is judged at its two edges; edges in front of a heading line after
a blank one are best, edges that cut a body from its head or strand a closing bracket are worst.
The weights are Cloche's own, tuned by eye and by counting agreement with other tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .diff import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

_FARTHEST: Final = 100
"""Lines that a block slides at most either way."""

_PER_COLUMN: Final = 2
_AFTER_BLANK: Final = -9
_BEFORE_BLANK: Final = 4
_DEEPER: Final = 7
_SHALLOWER: Final = 5
_CLOSER: Final = 12
_CLOSERS: Final = (
    b"}",
    b")",
    b"]",
    b"end",
    b"else",
    b"elif",
    b"except",
    b"finally",
    b"fi",
    b"done",
)
_TAB: Final = 8
_FARTHEST_LOOK: Final = 20
"""Blank lines that are skipped in search of the next written one."""


def slide(
    blocks: Sequence[Block], old: Sequence[bytes], new: Sequence[bytes], *, by_looks: bool = True
) -> list[Block]:
    """Return the blocks, each pure insertion or deletion at its best place.

    Without `by_looks` that is the last possible one, as in git's merges.
    """
    placed: list[Block] = []
    for index, block in enumerate(blocks):
        after = blocks[index + 1] if index + 1 < len(blocks) else None
        before = placed[-1] if placed else None
        moved = _place(block, before, after, old, new, by_looks)
        if before and before[1] == moved[0] and before[3] == moved[2]:
            placed[-1] = Block(before[0], moved[1], before[2], moved[3])
        else:
            placed.append(moved)
    return placed


def _place(
    block: Block,
    before: Block | None,
    after: Block | None,
    old: Sequence[bytes],
    new: Sequence[bytes],
    by_looks: bool,
) -> Block:
    """Return one block moved to its best place between its neighbours."""
    if block.old_start == block.old_end:
        lines, start, end = new, block.new_start, block.new_end
        low = before.new_end if before else 0
        high = after.new_start if after else len(new)
    elif block.new_start == block.new_end:
        lines, start, end = old, block.old_start, block.old_end
        low = before.old_end if before else 0
        high = after.old_start if after else len(old)
    else:
        return block
    shift = _best_shift(lines, start, end, low, high, by_looks)
    return Block(*(edge + shift for edge in block))


def _best_shift(
    lines: Sequence[bytes], start: int, end: int, low: int, high: int, by_looks: bool
) -> int:
    """Return how far to move `start:end`; of equally good places the last one wins."""
    up = 0
    while start - up > low and up < _FARTHEST and lines[start - up - 1] == lines[end - up - 1]:
        up += 1
    down = 0
    while end + down < high and down < _FARTHEST and lines[start + down] == lines[end + down]:
        down += 1
    if not by_looks or up == down == 0:
        return down
    return min(
        range(-up, down + 1),
        key=lambda shift: (_cost(lines, start + shift) + _cost(lines, end + shift), -shift),
    )


def _cost(lines: Sequence[bytes], edge: int) -> int:
    """Return how bad it is to cut before line `edge`."""
    if edge <= 0 or edge >= len(lines):
        return _AFTER_BLANK
    following = _written(lines, edge, 1)
    preceding = _written(lines, edge - 1, -1)
    depth = _indent(following)
    cost = depth * _PER_COLUMN
    if not lines[edge].strip():
        cost += _BEFORE_BLANK
    elif following.lstrip().startswith(_CLOSERS):
        cost += _CLOSER
    if not lines[edge - 1].strip():
        return cost + _AFTER_BLANK
    if depth > _indent(preceding):
        cost += _DEEPER
    elif depth < _indent(preceding):
        cost += _SHALLOWER
    return cost


def _written(lines: Sequence[bytes], index: int, step: int) -> bytes:
    """Return the first line that is not blank from `index` on, b"" where none is near."""
    for _ in range(_FARTHEST_LOOK):
        if not 0 <= index < len(lines):
            return b""
        if lines[index].strip():
            return lines[index]
        index += step
    return b""


def _indent(line: bytes) -> int:
    """Return the width of a line's leading whitespace in columns."""
    blank = line[: len(line) - len(line.lstrip(b" \t"))]
    return len(blank.expandtabs(_TAB))
