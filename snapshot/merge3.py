"""Three-way merge of lines: what either side changed, and where both did.

Changes that touch each other count as one conflict, as in `git merge-file`: two edits of
neighbouring lines often belong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from .diff import diff
from .lines import BOM, has_bom, join, split
from .slider import slide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .diff import Block

RegionKind = Literal["same", "ours", "theirs", "both", "conflict"]
Span = tuple[int, int]


class Region(NamedTuple):
    """A run of the merge with its lines on all three sides (half-open spans).

    `ours` and `theirs` name the only side that changed; `both` made the same change.
    """

    kind: RegionKind
    base: Span
    ours: Span
    theirs: Span


class _Edit(NamedTuple):
    """One side's changed block, ordered by its place in the base."""

    start: int
    end: int
    theirs: bool
    growth: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Outcome of a three-way merge; the regions tile all three sides."""

    base: Sequence[bytes]
    ours: Sequence[bytes]
    theirs: Sequence[bytes]
    regions: tuple[Region, ...]

    @property
    def conflicts(self) -> int:
        """Number of regions where both sides differ."""
        return sum(region.kind == "conflict" for region in self.regions)

    def lines(self, solved: Mapping[int, Sequence[bytes]] | None = None) -> list[bytes]:
        """Return the merged lines; a conflict keeps our side where `solved` has no lines for it.

        Keys of `solved` are numbers of regions.
        """
        merged: list[bytes] = []
        for number, region in enumerate(self.regions):
            if solved and number in solved:
                merged += solved[number]
                continue
            theirs = region.kind == "theirs"
            start, end = region.theirs if theirs else region.ours
            merged += (self.theirs if theirs else self.ours)[start:end]
        return merged


def merge_lines(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> Merge:
    """Merge two descendants of `base`."""
    edits = sorted(
        [_edit(block, False) for block in _blocks(base, ours)]
        + [_edit(block, True) for block in _blocks(base, theirs)]
    )
    tiler = _Tiler(ours, theirs)
    at = 0
    while at < len(edits):
        stop, end = at + 1, edits[at].end
        while stop < len(edits) and edits[stop].start <= end:
            end = max(end, edits[stop].end)
            stop += 1
        tiler.add(edits[at:stop], edits[at].start, end)
        at = stop
    tiler.add_same(len(base))
    return Merge(base, ours, theirs, tuple(tiler.regions))


def _blocks(base: Sequence[bytes], side: Sequence[bytes]) -> list[Block]:
    """Return what one side changed; each block at its last place, so that both sides agree."""
    return slide(diff(base, side), base, side, by_looks=False)


def _edit(block: Block, theirs: bool) -> _Edit:
    growth = (block.new_end - block.new_start) - (block.old_end - block.old_start)
    return _Edit(block.old_start, block.old_end, theirs, growth)


class _Tiler:
    """Cuts the three sides into regions, from the first line to the last."""

    def __init__(self, ours: Sequence[bytes], theirs: Sequence[bytes]) -> None:
        self.ours = ours
        self.theirs = theirs
        self.regions: list[Region] = []
        self.at = (0, 0, 0)

    def add_same(self, end: int) -> None:
        """Add unchanged lines up to base line `end`."""
        base, ours, theirs = self.at
        if base < end:
            self._add("same", end, ours + end - base, theirs + end - base)

    def add(self, edits: Sequence[_Edit], start: int, end: int) -> None:
        """Add a region that one or both sides changed."""
        self.add_same(start)
        _, ours, theirs = self.at
        ours_end = ours + end - start + sum(edit.growth for edit in edits if not edit.theirs)
        theirs_end = theirs + end - start + sum(edit.growth for edit in edits if edit.theirs)
        self._add(self._kind(edits, ours_end, theirs_end), end, ours_end, theirs_end)

    def _kind(self, edits: Sequence[_Edit], ours_end: int, theirs_end: int) -> RegionKind:
        sides = {edit.theirs for edit in edits}
        if len(sides) == 1:
            return "theirs" if sides.pop() else "ours"
        _, ours, theirs = self.at
        same = self.ours[ours:ours_end] == self.theirs[theirs:theirs_end]
        return "both" if same else "conflict"

    def _add(self, kind: RegionKind, base: int, ours: int, theirs: int) -> None:
        before = self.at
        self.regions.append(Region(kind, (before[0], base), (before[1], ours), (before[2], theirs)))
        self.at = (base, ours, theirs)


@dataclass(frozen=True, slots=True)
class TextMerge:
    """A merge of whole contents; a byte order mark is merged on its own."""

    merge: Merge
    mark: bool
    """Whether the result begins with a byte order mark."""

    @property
    def conflicts(self) -> list[int]:
        """Numbers of the regions where both sides differ."""
        regions = enumerate(self.merge.regions)
        return [number for number, region in regions if region.kind == "conflict"]

    def sides(self, number: int) -> tuple[bytes, bytes, bytes]:
        """Return a region's text in the base, on our side and on theirs."""
        region, merge = self.merge.regions[number], self.merge
        spans = ((merge.base, region.base), (merge.ours, region.ours))
        base, ours = (b"".join(lines[start:end]) for lines, (start, end) in spans)
        return base, ours, b"".join(self.theirs(number))

    def theirs(self, number: int) -> Sequence[bytes]:
        """Return a region's lines on their side."""
        start, end = self.merge.regions[number].theirs
        return self.merge.theirs[start:end]

    def line(self, number: int) -> int:
        """Return the 1-based number of a region's first line on our side."""
        return self.merge.regions[number].ours[0] + 1

    def content(self, solved: Mapping[int, Sequence[bytes]] | None = None) -> bytes:
        """Return the merged content, with lines for conflicts by the numbers of their regions."""
        merge = self.merge
        return (BOM if self.mark else b"") + join(merge.lines(solved), merge.ours)


def merge_texts(base: bytes, ours: bytes, theirs: bytes) -> TextMerge:
    """Merge whole contents by lines."""
    sides = [split(side) for side in (base, ours, theirs)]
    marks = [has_bom(side) for side in sides]
    texts = [side[mark:] for side, mark in zip(sides, marks, strict=True)]
    return TextMerge(merge_lines(*texts), marks[2] if marks[1] == marks[0] else marks[1])


def merge_bytes(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge whole contents; None when both sides changed the same lines.

    A byte order mark is merged on its own, so that adding one never collides with line 1.
    """
    if base in (ours, theirs):
        return theirs if base == ours else ours
    if ours == theirs:
        return ours
    made = merge_texts(base, ours, theirs)
    return None if made.conflicts else made.content()
