"""Rows of a diff for a screen: side by side or unified, built when they are asked for.

A row model is immutable and cheap: it knows how many rows there are and makes those of a window.
All text is sanitised already (`safe_text`), one character for one, so spans fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .review import FileReview

RowKind = Literal["context", "delete", "insert", "replace", "fold"]
"""`replace` stands in split layout only: an old and a new line side by side."""

Layout = Literal["split", "unified"]

CONTEXT = 3
"""Unchanged lines shown around a hunk, as in a unified diff."""


class Row(NamedTuple):
    """One row; the sides that are not there are None."""

    kind: RowKind
    old_no: int | None
    """1-based line number; None too for a byte order mark, which is no line of its own."""
    new_no: int | None
    old_text: str | None
    new_text: str | None
    hunk: int | None
    """Index of the hunk; None for context outside of hunks and for folds."""
    old_change: int | None
    """Index of the old side's changed line in its hunk, None on unchanged lines."""
    new_change: int | None
    gap: int | None
    """On a fold: number of the gap (gap n lies before hunk n), for `expand`."""
    hidden: int
    """On a fold: how many lines it hides."""
    old: int | None
    """0-based index of the old side's line, for `intraline` and highlight spans."""
    new: int | None
    suspicious: bool


class RowModel:
    """All rows of one file in one layout."""

    def __init__(
        self, review: FileReview, layout: Layout = "split", context: int = CONTEXT
    ) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def rows(self, start: int, stop: int) -> list[Row]:
        """Return the rows of a window; parts outside of the model are left out."""
        raise NotImplementedError

    def row_of_hunk(self, hunk: int) -> int:
        """Return the index of the hunk's first changed row."""
        raise NotImplementedError

    def hunk_at(self, row: int) -> int | None:
        """Return the hunk a row belongs to, or the nearest one; None without hunks."""
        raise NotImplementedError

    def expand(self, gap: int, lines: int | None = None) -> RowModel:
        """Return a model that shows more of a gap: `lines` at either end, or all of it."""
        raise NotImplementedError

    def with_layout(self, layout: Layout) -> RowModel:
        """Return the same expansion in another layout."""
        raise NotImplementedError
