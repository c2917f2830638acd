"""A document as drawn lines: what is shown, in which layout, with which decisions and colours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from widgets.diff_lines import DiffLines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from widgets.diff_model import DiffDocument, Side, Spans


class DiffSheet(DiffLines):
    """Takes what a review says about a document; where the cursor goes is said by `DiffWalk`."""

    # What to show

    def refresh_document(self, document: DiffDocument) -> None:
        """Show the same file with other contents or rows; cursor and scroll position stay."""
        self.document = document
        self._rows_changed()
        self.cursor = max(0, min(self.cursor, self.total_rows - 1))

    def set_decisions(self, decisions: Sequence[str], letters: Sequence[str] = ()) -> None:
        """Show other decisions, one for each unit, and the letters of their lines."""
        if (tuple(decisions), tuple(letters)) != (self.decisions, self.letters):
            self.decisions, self.letters = tuple(decisions), tuple(letters)
            if self._overview is not None:
                self._overview = self._overview.decided(self)
            self.refresh()

    def set_spans(self, key: str, side: Side, spans: Spans) -> None:
        """Colour some lines of one side, unless another document is shown by now."""
        document = self.document
        if document is None or document.key != key:
            return
        known = document.spans.setdefault(side, {})
        new = spans.keys() - known.keys()
        known.update(spans)
        top = self.scroll_offset.y
        shown = (self.row_at(self.place(y)[0]) for y in range(top, top + self.size.height))
        lines = (row and (row.old if side == "old" else row.new) for row in shown)
        if any(line in new for line in lines):
            self.refresh()

    def set_remarks(self, remarks: Mapping[tuple[Side, int], str]) -> None:
        """Mark the lines that comments are about."""
        if remarks != self.remarks:
            self.remarks = remarks
            self.refresh()

    def set_no_space(self, quiet: bool) -> None:
        """Show changes of white space alone as if they were none; decisions are about them too."""
        self.no_space = quiet
        self.redraw()

    def set_find(self, text: str) -> None:
        """Mark every place where a text stands."""
        if text != self.find:
            self.find = text
            self.refresh()

    def _rows_changed(self) -> None:
        self._painter = None
        self.measure_again()
        self._overview = None
        document = self.document
        if document is not None and document.rows.layout != self.layout_name:
            rows = document.rows.with_layout(self.layout_name)
            self.document = document = replace(document, rows=rows)
        self.choice_start = None
        self.set_row_count(self.visual_rows)
        self.redraw()
