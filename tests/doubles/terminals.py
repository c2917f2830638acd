"""Terminals without machines: a still picture that notes the keys it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual import events
    from textual.geometry import Region

    from themes.palette import Palette

SCREENS = {
    "s1": (
        "",
        " ╭─────────────────────────────────────────────────────────────╮",
        " │ ✻ Welcome back                                              │",
        " ╰─────────────────────────────────────────────────────────────╯",
        "",
        " > fix the tokenizer for nested quotes",
        "",
        " ● Reading src/tokenizer.py …",
        " ● Writing src/quotes.py",
        "   24 lines",
        " ● Running pytest -q",
    ),
    "s2": ("", " Allow command?  pytest -q", "", " 1. Yes   2. Always   3. No"),
}


class StillTerminal(Widget, can_focus=True):
    """Shows fixed lines."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__()
        self.lines = lines
        self.pressed: list[str] = []

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the lines."""
        style = self.visual_style.rich_style
        width = self.size.width
        strips: list[Strip] = []
        for y in crop.line_range:
            text = self.lines[y] if y < len(self.lines) else ""
            strip = Strip([Segment(text, style)]).adjust_cell_length(width, style)
            strips.append(strip.crop(*crop.column_span))
        return strips

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Take every key but those that stay Cloche's."""
        return not (key.startswith("alt+") or key in ("f12", "ctrl+g"))

    def on_key(self, event: events.Key) -> None:
        """Note a key."""
        if self.check_consume_key(event.key, event.character):
            event.stop()
            self.pressed.append(event.key)


class StillTerminals:
    """Makes pictures for sessions."""

    def __init__(self) -> None:
        self.views: dict[str, StillTerminal] = {}
        self.forgotten: list[str] = []
        self.closed = False
        self.palettes: list[str] = []

    async def start(self) -> None:
        """Be ready at once."""

    def view(self, session_id: str) -> Widget:
        """Return a picture."""
        lines = SCREENS.get(session_id, ("", " $ "))
        view = self.views[session_id] = StillTerminal(lines)
        return view

    def forget(self, session_id: str) -> None:
        """Note it."""
        self.forgotten.append(session_id)

    def recolour(self, palette: Palette) -> None:
        """Note it."""
        self.palettes.append(palette.name)

    async def close(self) -> None:
        """Note it."""
        self.closed = True
