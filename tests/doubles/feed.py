"""A feed that a test fills by hand and that remembers what the view told it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from widgets.terminal_feed import (
    Cursor,
    FeedListener,
    FeedRate,
    FeedState,
    Modes,
    MouseInput,
    Scroll,
)

if TYPE_CHECKING:
    from collections.abc import Collection


class FakeFeed:
    """Implements `widgets.terminal_feed.PaneFeed`."""

    def __init__(self, columns: int = 40, rows: int = 10) -> None:
        self.columns, self.rows = columns, rows
        self.cursor: Cursor | None = None
        self.modes, self.scroll = Modes(), Scroll()
        self.state: FeedState = "live"
        self.title = ""
        self.listener: FeedListener | None = None
        self.strips: dict[int, Strip] = {}
        self.calls: list[tuple[object, ...]] = []
        self.acks = 0

    def put(self, *texts: str, told: Collection[int] | None = None) -> None:
        """Show lines from the top and tell the view."""
        for y, text in enumerate(texts):
            segment = Segment(text.ljust(self.columns), Style(bgcolor="#101010"))
            self.strips[y] = Strip([segment], self.columns)
        if self.listener is not None:
            self.listener.feed_changed(range(len(texts)) if told is None else told)

    def strip(self, y: int) -> Strip | None:
        return self.strips.get(y)

    def listen(self, listener: FeedListener) -> None:
        self.listener = listener

    def leave(self, listener: FeedListener) -> None:
        if self.listener is listener:
            self.listener = None
            self.set_rate("hidden")

    def painted(self) -> None:
        self.acks += 1

    def set_rate(self, rate: FeedRate) -> None:
        self.calls.append(("rate", rate))

    def resize(self, columns: int, rows: int) -> None:
        self.calls.append(("resize", columns, rows))

    def send_key(self, key: str, character: str | None) -> None:
        self.calls.append(("key", key))

    def send_text(self, text: str) -> None:
        self.calls.append(("text", text))

    def send_paste(self, text: str) -> None:
        self.calls.append(("paste", text))

    def send_mouse(self, mouse: MouseInput) -> None:
        self.calls.append(("mouse", mouse))

    def send_focus(self, focused: bool) -> None:
        self.calls.append(("focus", focused))

    def scroll_by(self, lines: int) -> None:
        self.calls.append(("scroll", lines))

    def scroll_to_end(self) -> None:
        self.calls.append(("scroll", 0))

    def told(self, kind: str) -> list[object]:
        """The arguments of all calls of one kind."""
        return [call[1] if len(call) == 2 else call[1:] for call in self.calls if call[0] == kind]
