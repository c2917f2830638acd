"""Terminals without machines: a still picture that notes the keys it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tests.doubles.feed import FakeFeed
from widgets.terminal import DEFAULT_PASSTHROUGH, DEFAULT_PREFIX, TerminalView

if TYPE_CHECKING:
    from textual.widget import Widget

    from app.ui.pane_news import NewsEar
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
    "s4": (" $ make", " cc -O2 -o parse parse.c", " cc -O2 -o scan scan.c", " $"),
    "s5": ("", " 日本語の文書 … 12 件", " naïve café — ok", " > _"),
}

STYLE = Style(color="#d6dbe4", bgcolor="#0e1116")


class StillFeed(FakeFeed):
    """A picture that takes the size of its view, as a terminal does."""

    columns: int
    rows: int

    def __init__(self, lines: tuple[str, ...]) -> None:
        super().__init__(76, 30)
        self.lines = lines
        self.draw()

    def draw(self) -> None:
        """Draw the picture in the size that the terminal has."""
        for y in range(self.rows):
            line = self.lines[y] if y < len(self.lines) else ""
            text = set_cell_size(line, self.columns)
            self.strips[y] = Strip([Segment(text, STYLE)], self.columns)

    def resize(self, columns: int, rows: int) -> None:
        """Draw for another size and say so."""
        super().resize(columns, rows)
        size = max(20, columns), max(5, rows)
        if size != (self.columns, self.rows):
            self.columns, self.rows = size
            self.draw()
            if self.listener is not None:
                self.listener.feed_resized()


class StillTerminals:
    """Makes real views of feeds that show a still picture and note what they are told."""

    def __init__(
        self, *, prefix: str = DEFAULT_PREFIX, passthrough: frozenset[str] = DEFAULT_PASSTHROUGH
    ) -> None:
        self._keys = prefix, passthrough
        self.feeds: dict[str, FakeFeed] = {}
        self.forgotten: list[str] = []
        self.closed = False
        self.palettes: list[str] = []
        self.refuse: Exception | None = None
        self.ear: NewsEar | None = None

    async def start(self) -> None:
        """Be ready at once, or fail."""
        if self.refuse is not None:
            raise self.refuse

    def view(self, session_id: str) -> Widget:
        """Return a view of a picture; the feed stays when its view goes."""
        if session_id in self.feeds:
            return self._view(self.feeds[session_id])
        feed = self.feeds[session_id] = StillFeed(SCREENS.get(session_id, ("", " $ ")))
        return self._view(feed)

    def _view(self, feed: FakeFeed) -> Widget:
        prefix, passthrough = self._keys
        return TerminalView(feed, prefix=prefix, passthrough=passthrough)

    def keys(self, session_id: str) -> list[object]:
        """Return the keys that a session's agent was given."""
        return [
            call[0] if isinstance(call, tuple) else call
            for call in self.feeds[session_id].told("key")
        ]

    def forget(self, session_id: str) -> None:
        """Note it."""
        self.forgotten.append(session_id)

    def recolour(self, palette: Palette) -> None:
        """Note it."""
        self.palettes.append(palette.name)

    def report_to(self, ear: NewsEar) -> None:
        """Keep who is to be told."""
        self.ear = ear

    async def close(self) -> None:
        """Note it."""
        self.closed = True
