"""The mouse on a terminal view: the guest's where it tracks it, else selection, paste and links."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from widgets.terminal_feed import MouseInput

if TYPE_CHECKING:
    from textual import events
    from textual.timer import Timer

    from widgets.terminal import TerminalView
    from widgets.terminal_feed import MouseAction, PaneFeed, Unit

LEFT, MIDDLE = 1, 2
UNITS: tuple[Unit, ...] = ("cell", "word", "line")
CHAIN_S = 0.5
"""Seconds between the presses of a double click."""

EDGE_S = 0.04
"""Seconds for each line while a drag is held over an edge."""

EDGE_LINES = 5
"""Most lines of one such step: the farther the mouse is outside, the faster."""

WHEEL_LINES = 3
"""Lines of one notch of the wheel, as the engine has it."""


@dataclass(slots=True)
class Drag:
    """A selection that is being made; cells are the terminal's."""

    x: int
    y: int
    unit: Unit
    block: bool
    begun: bool = False
    at: tuple[int, int] | None = None
    """The cell up to which is selected."""
    over: int = 0
    """Lines that the mouse is above (negative) or below the view."""


class TerminalMouse:
    """What is pressed, and whose it is."""

    def __init__(self, view: TerminalView) -> None:
        self._view = view
        self._guests: set[int] = set()
        """Buttons whose press went to the guest: so does their release."""
        self._drag: Drag | None = None
        self._edge: Timer | None = None
        self._last = (0.0, -1, -1, 0)
        """When and where was pressed last, and how many presses in a row that made."""

    def forget(self) -> None:
        """Give up what is pressed."""
        if self._drag is not None or self._guests:
            self._view.release_mouse()
        self._drag = None
        self._guests.clear()
        self._stop_edge()

    # -- events --------------------------------------------------------------------------------

    def press(self, event: events.MouseDown) -> None:
        """Pass a press on, or begin to select, paste, or tell a link."""
        feed = self._view.feed
        if feed is None:
            return
        _take(event)
        x, y = self._cell(feed, event)
        if self._is_guests(feed, event):
            self._guests.add(event.button)
            self._view.capture_mouse()
            self._pass_on(feed, "press", event, event.button)
        elif event.button == MIDDLE:
            self._view.paste_register()
        elif event.button == LEFT:
            uri = feed.link_at(x, y) if event.ctrl else None
            if uri is not None:
                self._view.post_message(self._view.LinkClicked(self._view, uri))
            else:
                self._begin(feed, x, y, block=event.meta)
        elif feed.view.selected:
            feed.select_none()

    def release(self, event: events.MouseUp) -> None:
        """Pass a release on, or copy what was selected."""
        feed, drag = self._view.feed, self._drag
        if feed is None:
            return
        _take(event)
        if event.button in self._guests:
            self._guests.discard(event.button)
            self._pass_on(feed, "release", event, event.button)
            if not self._guests:
                self._view.release_mouse()
        elif drag is not None and event.button in (0, LEFT):
            self._drag = None
            self._stop_edge()
            self._view.release_mouse()
            if drag.begun:
                self._view.copying_mode.copy()

    def move(self, event: events.MouseMove) -> None:
        """Extend the selection, or pass a move on to a guest that asked for moves."""
        feed = self._view.feed
        if feed is None:
            return
        if self._drag is not None:
            _take(event)
            self._extend(feed, self._drag, event)
            return
        tracking = feed.modes.mouse
        if self._guests and tracking in ("any", "drag"):
            self._pass_on(feed, "move", event, min(self._guests))
        elif tracking == "any" and self._is_guests(feed, event):
            self._pass_on(feed, "move", event, 0)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        """Turn the wheel: the guest's if it tracks the mouse, else the scrollback."""
        view, feed = self._view, self._view.feed
        if feed is None:
            return
        _take(event)
        if feed.mirrored or view.copying or (event.shift and feed.modes.mouse != "none"):
            feed.scroll_by(direction * WHEEL_LINES)
        else:
            # the feed knows what it is on the alternate screen
            self._pass_on(feed, "scroll_up" if direction < 0 else "scroll_down", event, 0)
        if self._drag is not None and self._drag.begun:
            self._drag.at = None

    # -- the guest's ---------------------------------------------------------------------------

    def _is_guests(self, feed: PaneFeed, event: events.MouseEvent) -> bool:
        tracks = feed.modes.mouse != "none" and not feed.mirrored
        return tracks and not event.shift and not self._view.copying

    def _pass_on(
        self, feed: PaneFeed, action: MouseAction, event: events.MouseEvent, button: int
    ) -> None:
        _take(event)
        x, y = self._cell(feed, event)
        feed.send_mouse(MouseInput(action, x, y, button, event.shift, event.meta, event.ctrl))

    def _cell(self, feed: PaneFeed, event: events.MouseEvent) -> tuple[int, int]:
        """Return the terminal's cell that is nearest to the mouse."""
        x, y = math.floor(event.x), math.floor(event.y) + self._view.top
        return max(0, min(x, feed.columns - 1)), max(0, min(y, feed.rows - 1))

    # -- selection -----------------------------------------------------------------------------

    def _begin(self, feed: PaneFeed, x: int, y: int, *, block: bool) -> None:
        then, last_x, last_y, presses = self._last
        now = time.monotonic()
        again = now - then < CHAIN_S and (x, y) == (last_x, last_y)
        presses = presses % len(UNITS) + 1 if again else 1
        self._last = now, x, y, presses
        self._drag = drag = Drag(x, y, UNITS[presses - 1], block)
        self._view.capture_mouse()
        if drag.unit != "cell":
            self._select(feed, drag)
        elif feed.view.selected:
            feed.select_none()

    def _select(self, feed: PaneFeed, drag: Drag) -> None:
        drag.begun, drag.at = True, (drag.x, drag.y)
        feed.select(drag.x, drag.y, drag.unit, block=drag.block)

    def _extend(self, feed: PaneFeed, drag: Drag, event: events.MouseMove) -> None:
        cell = self._cell(feed, event)
        y, height = math.floor(event.y), self._view.size.height
        drag.over = y if y < 0 else max(0, y - height + 1)
        if not drag.begun:
            if cell == (drag.x, drag.y) and not drag.over:
                return
            self._select(feed, drag)
        if drag.over:
            drag.at = cell
            if self._edge is None:
                self._edge = self._view.set_interval(EDGE_S, self._roll)
            return
        self._stop_edge()
        if cell != drag.at:
            drag.at = cell
            feed.select_to(*cell)

    def _roll(self) -> None:
        """Move the page under a drag that is held over an edge."""
        feed, drag = self._view.feed, self._drag
        if feed is None or drag is None or drag.at is None:
            self._stop_edge()
            return
        for _ in range(min(abs(drag.over), EDGE_LINES)):
            feed.select_to(drag.at[0], -1 if drag.over < 0 else feed.rows)

    def _stop_edge(self) -> None:
        if self._edge is not None:
            self._edge.stop()
            self._edge = None


def _take(event: events.MouseEvent) -> None:
    event.stop()
    event.prevent_default()
