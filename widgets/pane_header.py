"""The line above a pane: which session it is, how it is, what it changed, where the keys go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.cells import Piece, two_sided
from widgets.header_parts import Bit, PaneFacts, header_parts
from widgets.lines import LineView
from widgets.terminal import DEFAULT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.strip import Strip

    from themes.glyphs import Glyphs
    from widgets.session_rail import SessionRow

TAKES = f"{DEFAULT_PREFIX} enter"
"""Those keys with the usual prefix."""


class PaneHeader(LineView):
    """One line, shortened by rank where there is little room."""

    DEFAULT_CSS = """
    PaneHeader { height: 1; width: 1fr; background: $surface; }
    """

    def __init__(self, *, glyphs: Glyphs, takes: str = TAKES, id: str | None = None) -> None:
        """Show nothing yet; `takes` are the keys that take over a terminal attached elsewhere."""
        super().__init__(glyphs=glyphs, id=id)
        self._takes = takes
        self.row: SessionRow | None = None
        self.facts = PaneFacts()

    def on_mount(self) -> None:
        """One row."""
        self.set_row_count(1)

    def show(self, row: SessionRow, facts: PaneFacts) -> None:
        """Show a session and what is true of its pane."""
        if (row, facts) != (self.row, self.facts):
            self.row, self.facts = row, facts
            self.redraw()

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw the line."""
        on = "panel"
        if self.facts.active:
            on = "accent-soft"
        elif self.facts.current:
            on = "selection-quiet"
        blank = self.paint(on=on)
        if self.row is None:
            return two_sided([], [], width, blank)
        left, right = header_parts(self.row, self.facts, self.glyphs, width, self._takes)
        return two_sided(
            self._pieces(left, on), self._pieces(right, on), width, blank, self.glyphs.ellipsis
        )

    def _pieces(self, bits: Iterable[Bit], on: str) -> list[Piece]:
        return [(bit.text, self.paint(bit.token, on, bit.how)) for bit in bits]
