"""Rows of a diff for a screen: side by side or unified, built when they are asked for.

A row model is immutable and cheap: it knows how many rows there are and makes those of a window.
All text is sanitised already (`safe_text`), one character for one, so spans fit.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from .hunks import CONTEXT, Hunk, Pair
from .lines import BOM, CRLF, ending, stem
from .safe_text import decode, safe_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .review import FileReview

RowKind = Literal["context", "delete", "insert", "replace", "fold"]
"""`replace` stands in split layout only: an old and a new line side by side."""

Layout = Literal["split", "unified"]

CR_MARK: Final = "␍"
"""Drawn after a line that ends with CRLF where the file's endings differ or changed."""

NO_NEWLINE_MARK: Final = "⏎̸"
"""Drawn after a last line that has no line feed (one cell: the second character combines)."""

_EVERYTHING: Final = 1 << 60
_LEAST_FOLD: Final = 2
"""Fewer hidden lines are shown instead: a fold would take as much room."""


class Row(NamedTuple):
    """One row; the sides that are not there are None."""

    kind: RowKind
    old_no: int | None = None
    """1-based line number; None too for a byte order mark, which is no line of its own."""
    new_no: int | None = None
    old_text: str | None = None
    """The line without its terminator, printable; tabs are still tabs."""
    new_text: str | None = None
    hunk: int | None = None
    """Index of the hunk; None for context outside of hunks and for folds."""
    old_change: int | None = None
    """Index of the old side's changed line in its hunk, None on unchanged lines."""
    new_change: int | None = None
    gap: int | None = None
    """On a fold: number of the gap (gap n lies before hunk n), for `expand`."""
    hidden: int = 0
    """On a fold: how many lines it hides."""
    old: int | None = None
    """0-based index of the old side's line, for `intraline` and highlight spans."""
    new: int | None = None
    old_end: str = ""
    """What to draw after the text: nothing, `CR_MARK` or `NO_NEWLINE_MARK`."""
    new_end: str = ""
    suspicious: bool = False
    """Bidirectional or invisible characters: the line may read otherwise than it is."""


class _Segment(NamedTuple):
    """A run of rows of one sort: a hunk, unchanged lines, or one fold."""

    start: int
    height: int
    hunk: int | None
    """The hunk whose rows these are."""
    gap: int | None
    """The gap that this fold hides."""
    old: int
    new: int
    hidden: int


class _Expansion(NamedTuple):
    """How many lines of a gap are shown below its upper and above its lower hunk."""

    top: int
    bottom: int


class RowModel:
    """All rows of one file in one layout."""

    def __init__(
        self,
        review: FileReview,
        layout: Layout = "split",
        context: int = CONTEXT,
        expansions: Mapping[int, _Expansion] | None = None,
    ) -> None:
        self.review = review
        self.layout: Layout = layout
        self.context = context
        self._expansions = dict(expansions or {})
        self._segments: list[_Segment] = []
        self._hunk_rows: dict[int, int] = {}
        self._cache: dict[int, list[Pair]] = {}
        self._lines: dict[tuple[int, str], dict[int, int]] = {}
        self._lay_out()
        self._starts = [segment.start for segment in self._segments]
        self._hunk_starts = list(self._hunk_rows.values())

    def __len__(self) -> int:
        return self._end

    def rows(self, start: int, stop: int) -> list[Row]:
        """Return the rows of a window; parts outside of the model are left out."""
        start, stop = max(0, start), min(stop, len(self))
        return list(self._window(start, stop)) if start < stop else []

    def row_of_hunk(self, hunk: int) -> int:
        """Return the index of the hunk's first changed row."""
        return self._hunk_rows[hunk]

    def hunk_at(self, row: int) -> int | None:
        """Return the hunk a row belongs to, or the nearest one; None without hunks."""
        if not self._hunk_rows:
            return None
        after = bisect_right(self._hunk_starts, row)
        if after == 0:
            return 0
        inside = row < self._hunk_rows[after - 1] + self._height(after - 1)
        if inside or after == len(self._hunk_rows):
            return after - 1
        above = row - self._hunk_rows[after - 1] - self._height(after - 1)
        return after if self._hunk_rows[after] - row < above + 1 else after - 1

    def expand(self, gap: int, lines: int | None = None) -> RowModel:
        """Return a model that shows more of a gap: `lines` at either end, or all of it."""
        more = _EVERYTHING if lines is None else lines
        known = self._expansions.get(gap, _Expansion(0, 0))
        wider = {**self._expansions, gap: _Expansion(known.top + more, known.bottom + more)}
        return RowModel(self.review, self.layout, self.context, wider)

    def expand_all(self) -> RowModel:
        """Return a model that shows every line."""
        whole = _Expansion(_EVERYTHING, 0)
        every = dict.fromkeys(range(len(self.review.hunks) + 1), whole)
        return RowModel(self.review, self.layout, self.context, every)

    def fold_all(self) -> RowModel:
        """Return a model that shows what it shows at first."""
        return RowModel(self.review, self.layout)

    def with_layout(self, layout: Layout) -> RowModel:
        """Return the same expansion in another layout."""
        return RowModel(self.review, layout, self.context, self._expansions)

    def with_context(self, lines: int) -> RowModel:
        """Return the same file with another number of unchanged lines around each hunk."""
        return RowModel(self.review, self.layout, lines, self._expansions)

    def row_of_line(self, side: Literal["old", "new"], line: int) -> int:
        """Return the row where a 0-based line of a side stands, or the fold that hides it."""
        starts = [segment.old if side == "old" else segment.new for segment in self._segments]
        at = max(0, bisect_right(starts, line) - 1)
        segment = self._segments[at]
        if segment.gap is not None:
            return segment.start
        if segment.hunk is None:
            return segment.start + min(line - starts[at], segment.height - 1)
        return segment.start + self._offsets(segment.hunk, side).get(line, 0)

    def _offsets(self, hunk: int, side: Literal["old", "new"]) -> dict[int, int]:
        """Return the row of each of a hunk's lines on one side, counted from the hunk's first."""
        known = self._lines.get((hunk, side))
        if known is None:
            pairs = self._pairs(hunk)
            lines = ((n, pair.old if side == "old" else pair.new) for n, pair in enumerate(pairs))
            known = {line: n for n, line in lines if line is not None}
            self._lines[hunk, side] = known
        return known

    # Layout

    def _lay_out(self) -> None:
        """Cut the file into segments; rows themselves are made on demand."""
        self._end = 0
        old = new = 0
        for hunk in self.review.hunks:
            self._add_gap(hunk.index, old, new, hunk.old_start - old)
            self._hunk_rows[hunk.index] = self._end
            self._add(self._height(hunk.index), hunk.index, None, hunk.old_start, hunk.new_start)
            old, new = hunk.old_end, hunk.new_end
        self._add_gap(len(self.review.hunks), old, new, len(self.review.old_lines) - old)

    def _add_gap(self, gap: int, old: int, new: int, size: int) -> None:
        """Add the unchanged lines before hunk `gap`: upper part, fold, lower part."""
        more = self._expansions.get(gap, _Expansion(0, 0))
        top = (self.context if gap > 0 else 0) + more.top
        bottom = (self.context if gap < len(self.review.hunks) else 0) + more.bottom
        if size - top - bottom < _LEAST_FOLD:
            self._add(size, None, None, old, new)
            return
        hidden = size - top - bottom
        self._add(top, None, None, old, new)
        self._add(1, None, gap, old + top, new + top, hidden)
        self._add(bottom, None, None, old + size - bottom, new + size - bottom)

    def _add(
        self, count: int, hunk: int | None, gap: int | None, old: int, new: int, hidden: int = 0
    ) -> None:
        if count > 0:
            self._segments.append(_Segment(self._end, count, hunk, gap, old, new, hidden))
            self._end += count

    def _height(self, index: int) -> int:
        """Return how many rows a hunk takes in this layout."""
        hunk = self.review.hunks[index]
        if self.layout == "split":
            return len(hunk.pairs)
        unchanged = sum(pair.old_change is None and pair.new_change is None for pair in hunk.pairs)
        return unchanged + sum(2 if change.kind == "ending" else 1 for change in hunk.changes)

    # Rows

    def _window(self, start: int, stop: int) -> Iterator[Row]:
        at = bisect_right(self._starts, start) - 1
        while at < len(self._segments) and self._segments[at].start < stop:
            segment = self._segments[at]
            first = max(start - segment.start, 0)
            last = min(stop - segment.start, segment.height)
            yield from self._segment_rows(segment, first, last)
            at += 1

    def _segment_rows(self, segment: _Segment, first: int, last: int) -> Iterator[Row]:
        if segment.gap is not None:
            yield Row("fold", gap=segment.gap, hidden=segment.hidden)
        elif segment.hunk is None:
            for k in range(first, last):
                yield self._row(Pair(segment.old + k, segment.new + k, None, None), None)
        else:
            for pair in self._pairs(segment.hunk)[first:last]:
                yield self._row(pair, segment.hunk)

    def _pairs(self, index: int) -> Sequence[Pair]:
        """Return a hunk's rows in this layout."""
        hunk = self.review.hunks[index]
        if self.layout == "split":
            return hunk.pairs
        if index not in self._cache:
            self._cache[index] = list(_unified(hunk))
        return self._cache[index]

    def _row(self, pair: Pair, hunk: int | None) -> Row:
        """Make one row of a pair of lines."""
        review = self.review
        old, new = pair.old, pair.new
        left = None if old is None else review.old_lines[old]
        right = None if new is None else review.new_lines[new]
        old_text = None if left is None else safe_line(decode(stem(left)))
        new_text = None if right is None else safe_line(decode(stem(right)))
        mark = left is not None and right is not None and ending(left) != ending(right)
        return Row(
            _kind(pair),
            review.line_number("old", old),
            review.line_number("new", new),
            old_text and old_text.text,
            new_text and new_text.text,
            hunk,
            pair.old_change,
            pair.new_change,
            old=old,
            new=new,
            old_end="" if left is None else _end_mark(left, mark or review.mixed_endings),
            new_end="" if right is None else _end_mark(right, mark or review.mixed_endings),
            suspicious=_suspicious(left, old_text) or _suspicious(right, new_text),
        )


def _suspicious(line: bytes | None, text: object) -> bool:
    """Return whether a line was flagged; the mark at a file's start is no trick."""
    return line not in (None, BOM) and bool(getattr(text, "suspicious", False))


def _end_mark(line: bytes, show_cr: bool) -> str:
    found = ending(line)
    if not found:
        return "" if line == BOM else NO_NEWLINE_MARK
    return CR_MARK if show_cr and found == CRLF else ""


def _kind(pair: Pair) -> RowKind:
    if pair.old_change is None and pair.new_change is None:
        return "context"
    if pair.old is None:
        return "insert"
    return "delete" if pair.new is None else "replace"


def _unified(hunk: Hunk) -> Iterator[Pair]:
    """Yield a hunk's rows with every run's deletions before its insertions."""
    inserted: list[Pair] = []
    for pair in hunk.pairs:
        if pair.old_change is None and pair.new_change is None:
            yield from inserted
            inserted = []
            yield pair
            continue
        if pair.old is not None:
            yield Pair(pair.old, None, pair.old_change, None)
        if pair.new is not None:
            inserted.append(Pair(None, pair.new, None, pair.new_change))
    yield from inserted
