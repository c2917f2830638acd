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
    Mark,
    Modes,
    Motion,
    MouseInput,
    Scroll,
    SelectionShape,
    Unit,
    View,
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
        self.view = View()
        self.progress: tuple[int, int] | None = None
        self.mirrored = False
        self.marked: dict[int, tuple[Mark, ...]] = {}
        self.links: dict[tuple[int, int], str] = {}
        self.selected = ""
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

    def marks(self, y: int) -> tuple[Mark, ...]:
        return self.marked.get(y, ())

    def link_at(self, x: int, y: int) -> str | None:
        return self.links.get((x, y))

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

    def send_paste(self, text: str) -> None:
        self.calls.append(("paste", text))

    def send_mouse(self, mouse: MouseInput) -> None:
        self.calls.append(("mouse", mouse))

    def send_focus(self, focused: bool) -> None:
        self.calls.append(("focus", focused))

    def scroll_by(self, lines: int) -> None:
        self.calls.append(("scroll", lines))

    def select(self, x: int, y: int, unit: Unit, *, block: bool = False) -> None:
        self.calls.append(("select", x, y, unit, block))

    def select_to(self, x: int, y: int) -> None:
        self.calls.append(("select_to", x, y))

    def select_none(self) -> None:
        self.calls.append(("select_none",))

    def copy_mode(self, on: bool) -> None:
        self.calls.append(("copy_mode", on))

    def copy_move(self, motion: Motion, count: int | None = None) -> None:
        self.calls.append(("copy_move", motion, count))

    def copy_mark(self, shape: SelectionShape) -> None:
        self.calls.append(("copy_mark", shape))

    def search(self, text: str, *, backwards: bool = False) -> None:
        self.calls.append(("search", text, backwards))

    def find_next(self, *, backwards: bool = False) -> None:
        self.calls.append(("find_next", backwards))

    async def selected_text(self) -> str:
        return self.selected

    def take_over(self) -> None:
        self.calls.append(("take_over",))

    def told(self, kind: str) -> list[object]:
        """The arguments of all calls of one kind."""
        return [call[1] if len(call) == 2 else call[1:] for call in self.calls if call[0] == kind]
