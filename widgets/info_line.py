"""One line of facts: some on the left, some flush right, each in a colour of the theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from widgets.cells import Piece, cells, two_sided
from widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.strip import Strip

    from themes.glyphs import Glyphs

Fact = tuple[str, str] | tuple[str, str, str]
"""A text and the token of its colour; a token that ends with `*` is bold. A third text is the
action of a click."""


class InfoLine(LineView):
    """Shows facts; nothing in it takes the focus."""

    @dataclass
    class Pressed(Message):
        """The user clicked a fact that does something."""

        action: str

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
        return "".join(fact[0] for fact in (*self.left, *self.right))

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw the line."""
        left, right = self._pieces(self.left), self._pieces(self.right)
        return two_sided(left, right, width, self.paint(on=self.on), self.glyphs.ellipsis)

    def _pieces(self, facts: Sequence[Fact]) -> list[Piece]:
        found: list[Piece] = []
        for fact in facts:
            token = fact[1]
            style = self.paint(token.rstrip("*"), self.on, "b" if token.endswith("*") else "")
            found.append((fact[0], style))
        return found

    def on_click(self, event: events.Click) -> None:
        """Do what the fact under the pointer says."""
        action = self._action_at(self.left, event.x)
        right = self.size.width - sum(cells(fact[0]) for fact in self.right)
        if event.x >= right >= 0:
            action = self._action_at(self.right, event.x - right)
        if action:
            self.post_message(self.Pressed(action))

    def _action_at(self, facts: Sequence[Fact], x: int) -> str:
        for fact in facts:
            x -= cells(fact[0])
            if x < 0:
                return fact[2] if len(fact) == 3 else ""
        return ""

    def blank_style_token(self) -> str:
        """Use the line's own background."""
        return self.on
