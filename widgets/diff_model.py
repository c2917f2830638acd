"""What the diff pane shows, as plain values; all texts are safe to print already.

The protocols are shaped after a row model that makes rows only when they are asked for, so a file
of fifty thousand lines costs no more than a screen full of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Layout = Literal["split", "unified"]
Side = Literal["old", "new"]
RowKind = Literal["context", "delete", "insert", "replace", "fold"]
Ranges = tuple[tuple[int, int], ...]
"""Half-open character ranges of one line, ascending."""

Span = tuple[int, int, str]
"""Start, end and the name of a syntax colour of the theme (`keyword`, `string`, …)."""

Spans = Mapping[int, Sequence[Span]]
"""Colours of some lines of one side, by 0-based line."""


class DiffRow(Protocol):
    """One row of a diff; the sides that are not there are None."""

    @property
    def kind(self) -> RowKind:
        """What the row is."""
        ...

    @property
    def old_no(self) -> int | None:
        """Line number on the old side, from 1."""
        ...

    @property
    def new_no(self) -> int | None:
        """Line number on the new side, from 1."""
        ...

    @property
    def old_text(self) -> str | None:
        """Text of the old side."""
        ...

    @property
    def new_text(self) -> str | None:
        """Text of the new side."""
        ...

    @property
    def hunk(self) -> int | None:
        """Index of the hunk that the row is part of."""
        ...

    @property
    def old_change(self) -> int | None:
        """Index of the old side's changed line in its hunk; None on unchanged lines."""
        ...

    @property
    def new_change(self) -> int | None:
        """Index of the new side's changed line in its hunk."""
        ...

    @property
    def gap(self) -> int | None:
        """On a fold: its number, for `expand`."""
        ...

    @property
    def hidden(self) -> int:
        """On a fold: how many lines it hides."""
        ...

    @property
    def old(self) -> int | None:
        """0-based line of the old side, for colours and marks."""
        ...

    @property
    def new(self) -> int | None:
        """0-based line of the new side."""
        ...

    @property
    def old_end(self) -> str:
        """What to draw after the old text: a mark for its line ending, or nothing."""
        ...

    @property
    def new_end(self) -> str:
        """What to draw after the new text."""
        ...

    @property
    def suspicious(self) -> bool:
        """The line holds characters that hide or reorder others."""
        ...


class DiffRows(Protocol):
    """All rows of one file in one layout."""

    @property
    def layout(self) -> Layout:
        """How the sides stand."""
        ...

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def rows(self, start: int, stop: int) -> Sequence[DiffRow]:
        """Return the rows of a window."""
        ...

    def row_of_hunk(self, hunk: int) -> int:
        """Return the row of a hunk's first change."""
        ...

    def hunk_at(self, row: int) -> int | None:
        """Return the hunk that a row belongs to, or the nearest one."""
        ...

    def expand(self, gap: int, lines: int | None = None) -> DiffRows:
        """Return rows that show more of a fold, or all of it."""
        ...

    def expand_all(self) -> DiffRows:
        """Return rows without folds."""
        ...

    def fold_all(self) -> DiffRows:
        """Return rows as they are at first."""
        ...

    def with_layout(self, layout: Layout) -> DiffRows:
        """Return the same rows in another layout."""
        ...

    @property
    def context(self) -> int:
        """Unchanged lines that show around each hunk."""
        ...

    def with_context(self, lines: int) -> DiffRows:
        """Return rows with more or fewer unchanged lines around each hunk."""
        ...

    def row_of_line(self, side: Side, line: int) -> int:
        """Return the row where a 0-based line of a side stands, or the fold that hides it."""
        ...


def _no_marks(_old: int, _new: int) -> tuple[Ranges, Ranges]:
    return (), ()


def _never(_side: Side, _line: int) -> bool:
    return False


def _nowhere(_text: str) -> Sequence[tuple[Side, int]]:
    return ()


def _no_partner(_side: Side, _line: int) -> int | None:
    return None


@dataclass(frozen=True)
class DiffDocument:
    """One file for the pane. Its *units* are the aspects and then the hunks."""

    key: str
    """Changes when the contents change, so that nothing drawn for other contents is reused."""
    rows: DiffRows
    aspects: tuple[str, ...] = ()
    """What is decided about the whole file, a row each: mode, rename, deletion, binary, link."""
    notes: tuple[str, ...] = ()
    """Facts above the lines that nothing is decided about: line endings, encoding."""
    hunk_sizes: tuple[int, ...] = ()
    """Rows of each hunk, for the overview."""
    lines: tuple[int, int] = (0, 0)
    """Number of lines of either side."""
    intraline: Callable[[int, int], tuple[Ranges, Ranges]] = _no_marks
    """Marks of an old and a new line that stand side by side."""
    partner: Callable[[Side, int], int | None] = _no_partner
    """The other side's line that stands beside a changed line of this side."""
    find: Callable[[str], Sequence[tuple[Side, int]]] = _nowhere
    """Where a text stands, regardless of case: sides and 0-based lines, each line once."""
    only_space: Callable[[Side, int], bool] = _never
    """Whether a changed line differs from its partner in white space alone."""
    moved: Mapping[tuple[Side, int], str] = field(default_factory=dict[tuple[Side, int], str])
    """Lines that moved: a phrase for the first of a run, nothing for those below it."""
    spans: dict[Side, dict[int, Sequence[Span]]] = field(
        default_factory=dict[Side, "dict[int, Sequence[Span]]"]
    )
    """Syntax colours by 0-based line; they arrive later than the text, each line's once."""
