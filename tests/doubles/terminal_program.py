"""One terminal view on a real terminal: shows fixed rows, marks and a cursor, then ends.

What it writes shows which colours and effects reach the outer terminal under some environment.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.strip import Strip

from tests.doubles.feed import FakeFeed
from widgets.terminal import TerminalView
from widgets.terminal_draw_underline import CURLY, knows_underlines, underlined
from widgets.terminal_feed import Cursor, Mark, MarkKind, View

COLUMNS, ROWS = 60, 12
ORANGE, NIGHT = Color.from_rgb(250, 140, 20), Color.from_rgb(20, 24, 60)
EFFECTS = (
    *("bold", "dim", "italic", "underline", "underline2"),
    *("blink", "reverse", "conceal", "strike", "overline"),
)


def row(text: str, style: Style) -> Strip:
    """A row of one style."""
    return Strip([Segment(text.ljust(COLUMNS), style)], COLUMNS)


def picture() -> FakeFeed:
    """A screen with colours, every effect, marks of every kind, and copy mode."""
    feed = FakeFeed(COLUMNS, ROWS)
    page = Style(color=Color.from_rgb(220, 220, 220), bgcolor=Color.from_rgb(16, 18, 22))
    effects = [Segment(f"{it} ", page + Style.parse(it)) for it in EFFECTS]
    rest = COLUMNS - sum(len(text) for text, _, _ in effects)
    feed.strips = {y: row("", page) for y in range(ROWS)}
    feed.strips[0] = row("orange", Style(color=ORANGE, bgcolor=NIGHT))
    feed.strips[1] = row("palette", Style(color=Color.from_ansi(2), bgcolor=Color.from_ansi(4)))
    feed.strips[2] = Strip([*effects[:5], Segment(" " * 60)]).crop(0, COLUMNS)
    feed.strips[3] = Strip([*effects[5:], Segment(" " * 60)]).crop(0, COLUMNS)
    feed.strips[4] = row("marks of every kind", page)
    curly = page + Style(underline=True)
    if knows_underlines(os.environ):
        curly = underlined(curly, CURLY, (255, 0, 4))
    feed.strips[5] = row("curly", curly)
    kinds: tuple[MarkKind, ...] = ("selection", "match", "current")
    feed.marked[4] = tuple(Mark(5 * n, 5 * n + 4, kind) for n, kind in enumerate(kinds))
    feed.cursor = Cursor(3, 6)
    feed.view = View(copying=True, selected=True, matches=3, match=1, searching=True)
    assert rest <= COLUMNS
    return feed


class Program(App[None]):
    """Ends as soon as everything was drawn."""

    CSS = "TerminalView { width: 100%; height: 100%; }"

    def compose(self) -> ComposeResult:
        """Only the terminal."""
        yield TerminalView(picture())

    def on_mount(self) -> None:
        """Give it the keys, and end once that is drawn."""
        self.query_one(TerminalView).focus()
        self.set_timer(0.3, self.exit)


if __name__ == "__main__":
    Program().run()
