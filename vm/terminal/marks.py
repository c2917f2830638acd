"""Marks of a page: which cells of which rows are painted in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal.copy_text import visible
from vm.terminal.screen import Mark

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.terminal.copy_text import Span
    from vm.terminal.screen import MarkKind


def page_marks(
    spans: Iterable[tuple[MarkKind, Span]], top: int, size: tuple[int, int]
) -> dict[int, tuple[Mark, ...]]:
    """Return the marks of spans on a page that begins at row `top`, by row of the page.

    `size` is columns and rows of the page. Within a row the kinds that win come later.
    """
    found: dict[int, list[Mark]] = {}
    for kind, span in spans:
        for y, start, end in visible(span, top, size):
            found.setdefault(y, []).append(Mark(start, end, kind))
    return {y: tuple(sorted(marks, key=_painted)) for y, marks in sorted(found.items())}


def _painted(mark: Mark) -> tuple[int, int]:
    return mark.kind, mark.start
