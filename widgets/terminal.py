"""A live terminal as a widget: it draws what its feed holds and passes every key to the guest.

The widget draws no border and has no padding: the container marks the focus (UI rule 2). While it
is focused every key goes to the guest, Tab, Escape, ctrl+c, ctrl+q and ctrl+p included; App and
Screen bindings do not fire, priority ones neither. The exceptions: the prefix key, and
`passthrough` keys (alt+1 … alt+9, f12), which bubble to the app's bindings as if no terminal were
there.

The prefix: pressing it posts `PrefixPressed` and sets the class `-prefix`. The key after it posts
`PrefixCommand` instead of going to the guest; the prefix twice goes to the guest once; Escape (or
losing the focus) posts `PrefixCancelled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.message import Message
from textual.widget import Widget

if TYPE_CHECKING:
    from widgets.terminal_feed import FeedState, PaneFeed

DEFAULT_PREFIX = "ctrl+g"
DEFAULT_PASSTHROUGH = frozenset({*(f"alt+{digit}" for digit in range(1, 10)), "f12"})


class TerminalView(Widget, can_focus=True):
    """One terminal. Mount it anywhere; give it a feed at once or later through `attach`."""

    DEFAULT_CSS: ClassVar[str] = "TerminalView { width: 1fr; height: 1fr; }"

    class Event(Message):
        """Something about one view."""

        def __init__(self, view: TerminalView) -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> TerminalView:
            """The view, so `@on(…, "#id")` works."""
            return self.view

    class PrefixPressed(Event):
        """The prefix was pressed; the next key becomes a `PrefixCommand`."""

    class PrefixCancelled(Event):
        """The prefix was given up: Escape, or the focus went elsewhere."""

    class PrefixCommand(Event):
        """The key that followed the prefix."""

        def __init__(self, view: TerminalView, key: str, character: str | None) -> None:
            super().__init__(view)
            self.key = key
            self.character = character

    class StateChanged(Event):
        """The terminal behind the view changed its state."""

        def __init__(
            self, view: TerminalView, state: FeedState, status: int | None, message: str
        ) -> None:
            super().__init__(view)
            self.state = state
            self.status = status
            self.message = message

    class TitleChanged(Event):
        """The guest set its title (printable, at most 256 characters, never markup)."""

        def __init__(self, view: TerminalView, title: str) -> None:
            super().__init__(view)
            self.title = title

    class Bell(Event):
        """The guest rang the bell."""

    class ClipboardRequested(Event):
        """The guest wants to put `text` on the clipboard: ask the user, then copy it yourself."""

        def __init__(self, view: TerminalView, text: str) -> None:
            super().__init__(view)
            self.text = text

    class Notified(Event):
        """The guest sent a desktop notification (both texts printable, never markup)."""

        def __init__(self, view: TerminalView, title: str, body: str) -> None:
            super().__init__(view)
            self.title = title
            self.body = body

    class Scrolled(Event):
        """The visible page moved in the scrollback; see `view.feed.scroll`."""

    def __init__(
        self,
        feed: PaneFeed | None = None,
        *,
        prefix: str = DEFAULT_PREFIX,
        passthrough: frozenset[str] = DEFAULT_PASSTHROUGH,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        raise NotImplementedError

    @property
    def feed(self) -> PaneFeed | None:
        """The feed that is shown."""
        raise NotImplementedError

    def attach(self, feed: PaneFeed | None) -> None:
        """Show another feed (None: a blank page); the old one is told that it is hidden."""
        raise NotImplementedError

    def paste(self, text: str) -> None:
        """Paste text into the guest."""
        raise NotImplementedError
