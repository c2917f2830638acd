"""Hunks: groups of changed lines with an id that outlives a refresh.

A *unit* is what a decision is about: a `Hunk` (one mark a changed line) or an `Aspect` of the
whole file (one mark). Ids are derived from content alone, so a unit that is the same in the next
generation keeps its decision and any other starts open.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from blake3 import blake3

from .diff import Block, diff
from .intraline import Sides, pair_lines
from .lines import BOM, has_bom, stem
from .slider import slide

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ChangeKind = Literal["delete", "insert", "ending"]
"""`ending`: the same text with another line ending (or none), decided as one."""

AspectKind = Literal["creation", "deletion", "binary", "link", "type", "mode", "rename"]

CONTEXT: Final = 3
"""Unchanged lines shown around a hunk; changes whose contexts touch are one hunk."""

ID_LENGTH: Final = 12
"""Hex digits of a unit's id."""

_ID_CONTEXT: Final = 2
"""Unchanged lines on either side that belong to a hunk's identity."""


_TELLING: Final = 24
"""Letters and digits from which on changed lines are no common phrase."""

_LOOKED_AT: Final = 512
"""Bytes that are searched for them."""


class Change(NamedTuple):
    """One decidable changed line; `old` and `new` are 0-based indexes into the sides' lines."""

    kind: ChangeKind
    old: int | None
    new: int | None


class Pair(NamedTuple):
    """Two lines that stand beside each other inside a hunk, with the index of their changes."""

    old: int | None
    new: int | None
    old_change: int | None
    new_change: int | None


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring changes; `old_start:old_end` and `new_start:new_end` hold no outer context."""

    id: str
    index: int
    old_start: int
    old_end: int
    new_start: int
    new_end: int
    changes: tuple[Change, ...]
    """In the order of the rows; a decision's `lines` are indexes into it."""
    pairs: tuple[Pair, ...]
    """Every row of the hunk, unchanged lines between its changes included."""

    @property
    def size(self) -> int:
        """Number of marks a decision about this hunk has."""
        return len(self.changes)


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something about the whole file that is decided at once."""

    id: str
    kind: AspectKind
    label: str
    """One phrase for the screen, such as `100644 → 100755`; not sanitised."""

    @property
    def size(self) -> int:
        """Number of marks a decision about this aspect has: one."""
        return 1


Unit = Hunk | Aspect


def unit_id(*parts: bytes) -> str:
    """Return the id of a unit made of these parts; no two lists of parts look alike."""
    digest = blake3()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()[:ID_LENGTH]


def changed_blocks(old: Sequence[bytes], new: Sequence[bytes]) -> list[Block]:
    """Return the changed blocks of two versions of a file, placed where people expect them.

    A byte order mark on one side only is a block of its own.
    """
    left, right = has_bom(old), has_bom(new)
    if left == right:
        return slide(diff(old, new), old, new)
    rest_old, rest_new = old[left:], new[right:]
    rest = slide(diff(rest_old, rest_new), rest_old, rest_new)
    moved = [Block(a + left, b + left, c + right, d + right) for a, b, c, d in rest]
    return [Block(0, int(left), 0, int(right)), *moved]


def build_hunks(
    path: bytes, old: Sequence[bytes], new: Sequence[bytes], context: int = CONTEXT
) -> tuple[Hunk, ...]:
    """Diff two versions and group the changed blocks into hunks."""
    groups = _grouped(changed_blocks(old, new), 2 * context)
    hunks = [_build(index, group, old, new) for index, group in enumerate(groups)]
    return _with_ids(path, hunks, old, new)


def _grouped(blocks: Iterable[Block], gap: int) -> list[list[Block]]:
    """Put blocks with at most `gap` unchanged lines between them into one group."""
    groups: list[list[Block]] = []
    for block in blocks:
        if groups and block.old_start - groups[-1][-1].old_end <= gap:
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def _build(index: int, blocks: Sequence[Block], old: Sequence[bytes], new: Sequence[bytes]) -> Hunk:
    """Lay out one hunk's rows and number its changed lines; the id follows later."""
    first, last = blocks[0], blocks[-1]
    rows = _Rows(old, new)
    for before, block in zip([None, *blocks], blocks, strict=False):
        if before:
            rows.add_unchanged(before.old_end, block.old_start, before.new_end)
        rows.add_block(block)
    return Hunk(
        "",
        index,
        first.old_start,
        last.old_end,
        first.new_start,
        last.new_end,
        tuple(rows.changes),
        tuple(rows.pairs),
    )


class _Rows:
    """Rows and changes of one hunk while it is being built."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        self.old = old
        self.new = new
        self.changes: list[Change] = []
        self.pairs: list[Pair] = []

    def add_unchanged(self, start: int, end: int, new_start: int) -> None:
        for k in range(end - start):
            self.pairs.append(Pair(start + k, new_start + k, None, None))

    def add_block(self, block: Block) -> None:
        old = self.old[block.old_start : block.old_end]
        new = self.new[block.new_start : block.new_end]
        for x, y in pair_lines(old, new):
            self._add_pair(
                (
                    None if x is None else block.old_start + x,
                    None if y is None else y + block.new_start,
                )
            )

    def _add_pair(self, sides: Sides) -> None:
        x, y = sides
        if x is not None and y is not None and self._same_text(x, y):
            number = self._number(Change("ending", x, y))
            self.pairs.append(Pair(x, y, number, number))
            return
        left = None if x is None else self._number(Change("delete", x, None))
        right = None if y is None else self._number(Change("insert", None, y))
        self.pairs.append(Pair(x, y, left, right))

    def _same_text(self, x: int, y: int) -> bool:
        old, new = self.old[x], self.new[y]
        return BOM not in (old, new) and stem(old) == stem(new)

    def _number(self, change: Change) -> int:
        self.changes.append(change)
        return len(self.changes) - 1


def content_id(path: bytes, hunk: Hunk, old: Sequence[bytes], new: Sequence[bytes]) -> str:
    """Return what names the changed lines alone, wherever in a file they stand.

    Lines with enough letters name themselves in every file; few letters are too common for that
    and count in their own file only.
    """
    removed = b"".join(old[change.old] for change in hunk.changes if change.old is not None)
    added = b"".join(new[change.new] for change in hunk.changes if change.new is not None)
    letters = sum(bytes((byte,)).isalnum() for byte in (added or removed)[:_LOOKED_AT])
    return unit_id(b"" if letters >= _TELLING else path, removed, added)


def _with_ids(
    path: bytes, hunks: Sequence[Hunk], old: Sequence[bytes], new: Sequence[bytes]
) -> tuple[Hunk, ...]:
    """Give each hunk its id; twins are told apart by their number and how many they are."""
    parts = [_identity(path, hunk, old, new) for hunk in hunks]
    total = Counter(parts)
    seen: Counter[tuple[bytes, ...]] = Counter()
    named: list[Hunk] = []
    for hunk, part in zip(hunks, parts, strict=True):
        twins = b"%d/%d" % (seen[part], total[part]) if total[part] > 1 else b""
        seen[part] += 1
        named.append(replace(hunk, id=unit_id(*part, twins)))
    return tuple(named)


def _identity(
    path: bytes, hunk: Hunk, old: Sequence[bytes], new: Sequence[bytes]
) -> tuple[bytes, ...]:
    """Return what makes a hunk itself: path, both sides' lines, two lines around."""
    above = old[max(0, hunk.old_start - _ID_CONTEXT) : hunk.old_start]
    below = old[hunk.old_end : hunk.old_end + _ID_CONTEXT]
    return (
        path,
        b"".join(old[hunk.old_start : hunk.old_end]),
        b"".join(new[hunk.new_start : hunk.new_end]),
        b"".join(above),
        b"".join(below),
    )
