"""One line of facts: some on the left, some flush right, each in a colour of the theme."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.cells import Piece, two_sided
from widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.strip import Strip

    from themes.glyphs import Glyphs

Fact = tuple[str, str]
"""A text and the token of its colour; a token that ends with `*` is bold."""


class InfoLine(LineView):
    """Shows facts; nothing in it takes the focus."""

    DEFAULT_CSS = """
    InfoLine { height: 1; width: 1fr; }
    """

    def __init__(self, on: str, *, glyphs: Glyphs, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.on = on
        self.left: tuple[Fact, ...] = ()
        self.right: tuple[Fact, ...] = ()

    def on_mount(self) -> None:
        """One row."""
        super().on_mount()
        self.set_row_count(1)

    def show(self, left: Sequence[Fact], right: Sequence[Fact] = ()) -> None:
        """Show other facts."""
        if (tuple(left), tuple(right)) != (self.left, self.right):
            self.left, self.right = tuple(left), tuple(right)
            self.redraw()

    @property
    def text(self) -> str:
        """What stands there, as plain text."""
        return "".join(text for text, _ in (*self.left, *self.right))

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw the line."""
        left, right = self._pieces(self.left), self._pieces(self.right)
        return two_sided(left, right, width, self.paint(on=self.on), self.glyphs.ellipsis)

    def _pieces(self, facts: Sequence[Fact]) -> list[Piece]:
        return [
            (text, self.paint(token.rstrip("*"), self.on, "b" if token.endswith("*") else ""))
            for text, token in facts
        ]

    def blank_style_token(self) -> str:
        """Use the line's own background."""
        return self.on
