"""Which changed lines of a diff are chosen, and what was decided about each of them.

A *letter* stands for one changed line, as the keeper writes them: `o` open, `a` accepted, `r`
rejected. A choice runs from where it began to the cursor; without one it is the whole unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from widgets.diff_rows import DiffRowsView

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from themes.glyphs import Glyphs
    from widgets.diff_model import DiffRow, Side

WORDS = {"o": "open", "a": "accepted", "r": "rejected"}


@dataclass(frozen=True, slots=True)
class ChosenLines:
    """Changed lines of one unit."""

    unit: int
    changes: tuple[int, ...]
    """Indexes of changed lines in the unit; empty for an aspect, which has none."""


def word_of(letters: Iterable[str]) -> str:
    """Return what letters add up to; nothing for no letters."""
    found = set(letters)
    if not found:
        return ""
    return WORDS.get(found.pop(), "open") if len(found) == 1 else "mixed"


def changes_of(row: DiffRow) -> tuple[int, ...]:
    """Return the changed lines that a row holds, by their index in its hunk."""
    found = [change for change in (row.old_change, row.new_change) if change is not None]
    return tuple(dict.fromkeys(found))


class DiffChoice(DiffRowsView):
    """Adds letters and a choice of lines to the geometry of a document."""

    def __init__(self, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.letters: tuple[str, ...] = ()
        """Letters of each unit, one a changed line; empty where only the whole is known."""
        self.remarks: Mapping[tuple[Side, int], str] = {}
        """Lines that comments are about, and what they say; safe to print."""
        self._choice_start: int | None = None

    # What was decided

    def letter_of(self, unit: int | None, change: int | None) -> str:
        """Return what was decided about one changed line, as a word; empty for unchanged ones."""
        if unit is None or change is None:
            return ""
        letters = self.letters[unit] if unit < len(self.letters) else ""
        return WORDS.get(letters[change], "open") if change < len(letters) else ""

    def row_decision(self, unit: int | None, row: DiffRow | None) -> str:
        """Return what was decided about a row: its lines, where they differ from the unit."""
        whole = self.decision_of(unit)
        if row is None or unit is None or whole != "mixed":
            return whole
        sides = {self.letter_of(unit, change) for change in changes_of(row)} - {""}
        if not sides:
            return whole
        return sides.pop() if len(sides) == 1 else "mixed"

    # What is chosen

    @property
    def choice_start(self) -> int | None:
        """Row where a choice of lines began."""
        return self._choice_start

    @choice_start.setter
    def choice_start(self, row: int | None) -> None:
        if row != self._choice_start:
            self._choice_start = row
            self.refresh()

    @property
    def chosen_rows(self) -> range:
        """The rows that are chosen."""
        if self.choice_start is None:
            return range(0)
        return range(min(self.choice_start, self.cursor), max(self.choice_start, self.cursor) + 1)

    def chosen_or_cursor(self) -> range:
        """Return the chosen rows, else the one under the cursor."""
        return self.chosen_rows or range(self.cursor, self.cursor + 1)

    def place_of(self, row: int) -> tuple[Side, int] | None:
        """Return a row's line: the new side's where there is one."""
        model = self.row_at(row)
        if model is None or (model.new is None and model.old is None):
            return None
        return ("new", model.new) if model.new is not None else ("old", model.old or 0)

    def remark_at(self, row: int) -> str:
        """Return what comments say about a row."""
        model = self.row_at(row)
        if model is None or not self.remarks:
            return ""
        new = self.remarks.get(("new", -1 if model.new is None else model.new), "")
        return new or self.remarks.get(("old", -1 if model.old is None else model.old), "")

    def chosen(self) -> list[ChosenLines]:
        """Return the changed lines that are chosen, unit by unit."""
        rows = self.chosen_rows
        found: dict[int, list[int]] = {row: [] for row in rows if row < self.aspect_count}
        if self.document is not None and rows:
            first, last = max(0, rows.start - self.head), max(0, rows.stop - self.head)
            for row in self.document.rows.rows(first, last):
                changes = changes_of(row)
                if row.hunk is not None and changes:
                    found.setdefault(self.aspect_count + row.hunk, []).extend(changes)
        return [ChosenLines(unit, tuple(changes)) for unit, changes in sorted(found.items())]

    def lines_at(self, row: int, side: str = "") -> list[ChosenLines]:
        """Return the changed lines of one row, of one side only where `side` says so."""
        unit, model = self.unit_at(row), self.row_at(row)
        if unit is None:
            return []
        if model is None:
            return [ChosenLines(unit, ())]
        sides = {"old": model.old_change, "new": model.new_change}
        one = sides.get(side)
        changes = changes_of(model) if one is None else (one,)
        return [ChosenLines(unit, changes)] if changes else []

    def block_at(self, row: int) -> range:
        """Return the rows around one that are changed without a break; empty outside of them."""
        if row < self.aspect_count or not self.is_change(row):
            return range(row, row + 1) if row < self.aspect_count else range(0)
        unit = self.unit_at(row)
        above = sum(1 for _ in self._changes_from(row - 1, -1, unit))
        below = sum(1 for _ in self._changes_from(row + 1, 1, unit))
        return range(row - above, row + below + 1)

    def _changes_from(self, start: int, step: int, unit: int | None) -> Iterator[int]:
        """Yield rows of one unit in one direction up to the first that is unchanged."""
        row = start
        while self.head <= row < self.total_rows and self.unit_at(row) == unit:
            if not self.is_change(row):
                return
            yield row
            row += step

    def is_change(self, row: int) -> bool:
        """Return whether a row holds something to decide."""
        if row < self.aspect_count:
            return True
        model = self.row_at(row)
        return model is not None and bool(changes_of(model))

    def rows_of_unit(self, unit: int) -> range:
        """Return the rows of a unit."""
        first = self.first_row_of(unit)
        sizes = () if self.document is None else self.document.hunk_sizes
        size = sizes[unit - self.aspect_count] if unit >= self.aspect_count else 1
        rows = range(first, min(first + 2 * size, self.total_rows))
        last = max((row for row in rows if self.unit_at(row) == unit), default=first)
        return range(first, last + 1)

    def text_of(self, rows: Sequence[int]) -> str:
        """Return the code of rows without numbers: the agent's side where there is one."""
        lines: list[str] = []
        for row in rows:
            model = self.row_at(row)
            if model is not None and model.kind != "fold":
                text = model.old_text if model.new_text is None else model.new_text
                lines.append(text or "")
        return "\n".join(lines)
