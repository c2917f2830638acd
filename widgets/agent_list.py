"""The agents that can be started, with what each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from widgets.cells import two_sided
from widgets.line_list import LineList

if TYPE_CHECKING:
    from textual.strip import Strip


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent."""

    name: str
    description: str = ""
    note: str = ""
    """What is shown whole, however narrow the list is."""


class AgentList(LineList[AgentRow]):
    """One line an agent."""

    BINDING_GROUP_TITLE = "Agents"
    DEFAULT_CSS = """
    AgentList { height: auto; width: 1fr; background: $panel; }
    """

    def item_key(self, item: AgentRow) -> str | None:
        """Return the agent's name."""
        return item.name

    def blank_style_token(self) -> str:
        """Use the dialog's background."""
        return "panel"

    def draw_item(self, item: AgentRow, line: int, width: int, *, selected: bool) -> Strip:
        """Draw one agent."""
        paint = self.paint
        on = "panel"
        if selected:
            on = "selection" if self.has_focus else "raised"
        left = [
            (self.glyphs.cursor if selected else " ", paint("accent", on, "b")),
            (f" {item.name:<14} ", paint("foreground", on, "b" if selected else "")),
            (item.description, paint("muted", on)),
        ]
        right = [(f" {item.note} ", paint("warning", on))] if item.note else []
        return two_sided(left, right, width, paint(on=on), self.glyphs.ellipsis)
