"""What a terminal view passes on: the guest's reports to its container, the mouse to its owner."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.widget import Widget

from widgets.terminal_messages import TerminalMessages

if TYPE_CHECKING:
    from textual import events

    from widgets.terminal import TerminalView
    from widgets.terminal_mouse import TerminalMouse


class TerminalRelay(TerminalMessages, Widget):
    """The part of a `TerminalView` that decides nothing."""

    _mouse: TerminalMouse

    @property
    def _view(self) -> TerminalView:
        return cast("TerminalView", self)

    # -- what the guest reports ------------------------------------------------------------------

    def feed_title(self, title: str) -> None:
        """Pass a title on."""
        self.post_message(self.TitleChanged(self._view, title))

    def feed_bell(self) -> None:
        """Pass a bell on."""
        self.post_message(self.Bell(self._view))

    def feed_clipboard(self, text: str) -> None:
        """Pass a wish to write the clipboard on; nothing is copied here."""
        self.post_message(self.ClipboardRequested(self._view, text))

    def feed_notified(self, title: str, body: str) -> None:
        """Pass a notification on."""
        self.post_message(self.Notified(self._view, title, body))

    def feed_progress(self, progress: tuple[int, int] | None) -> None:
        """Pass the guest's progress on."""
        self.post_message(self.ProgressChanged(self._view, progress))

    def feed_refused(self, message: str) -> None:
        """Pass on that input was dropped."""
        self.post_message(self.InputRefused(self._view, message))

    # -- mouse -----------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin what the mouse does."""
        self._mouse.press(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End what the mouse does."""
        self._mouse.release(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Go on with what the mouse does."""
        self._mouse.move(event)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Go back in the scrollback, or let the guest."""
        self._mouse.wheel(event, -1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Go forth in the scrollback, or let the guest."""
        self._mouse.wheel(event, 1)
