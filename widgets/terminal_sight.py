"""What a terminal's feed is told about its view: its size, how fast it is drawn, the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.timer import Timer

    from widgets.terminal import TerminalView
    from widgets.terminal_feed import FeedRate

RESIZE_S = 0.08
"""Seconds that a size must last before the guest is told: dragging a window reflows once."""


class Sight:
    """How one view stands, and what of it the feed has heard."""

    def __init__(self, view: TerminalView) -> None:
        self._view = view
        self._shown, self._covered = True, False
        self._told = (0, 0)
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Tell a feed that is new everything."""
        self._told = (0, 0)
        self.tell_rate()
        self._tell_size()

    def resized(self) -> None:
        """Tell the size once it rests; the first one at once."""
        if self._timer is None:
            self._tell_size()
        else:
            self._timer.stop()
        self._timer = self._view.set_timer(RESIZE_S, self._tell_size)

    def _tell_size(self) -> None:
        feed, size = self._view.feed, self._view.size
        width, height = size
        if feed is not None and width and height and self._told != size:
            self._told = size
            feed.resize(width, height)

    def show(self, shown: bool) -> None:
        """Note whether the view is shown on its screen."""
        self._shown = shown
        self.tell_rate()

    def look(self) -> None:
        """Note whether another screen covers the view's; dialogs let it be seen."""
        stack = cast("list[Screen[object]]", self._view.host.screen_stack)
        seen = next((screen for screen in reversed(stack) if not screen.is_modal), None)
        self._covered = seen is not self._view.screen
        self.tell_rate()

    def _rate(self) -> FeedRate:
        if not self._shown or self._covered:
            return "hidden"
        return "focused" if self._view.has_focus else "visible"

    def tell_rate(self) -> None:
        """Tell how fast frames are wanted."""
        if self._view.feed is not None:
            self._view.feed.set_rate(self._rate())

    def tell_focus(self) -> None:
        """Tell whether the terminal has the focus; what is only watched has none."""
        feed = self._view.feed
        if feed is not None and not feed.mirrored:
            feed.send_focus(self._view.has_focus)
