"""The messages of a terminal view, apart from the view for length alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from widgets.terminal import TerminalView
    from widgets.terminal_feed import FeedState


class TerminalMessages:
    """What a `TerminalView` posts; its handlers are named `on_terminal_view_…`."""

    class Event(Message):
        """Something about one view."""

        def __init__(self, view: TerminalView) -> None:
            super().__init__()
            self.view = view

        @property
        def control(self) -> TerminalView:
            """The view, so `@on(…, "#id")` works."""
            return self.view

    class PrefixPressed(Event, namespace="terminal_view"):
        """The prefix was pressed; the next key becomes a `PrefixCommand`."""

    class PrefixCancelled(Event, namespace="terminal_view"):
        """The prefix was given up: Escape, or the focus went elsewhere."""

    class PrefixCommand(Event, namespace="terminal_view"):
        """The key that followed the prefix."""

        def __init__(self, view: TerminalView, key: str, character: str | None) -> None:
            super().__init__(view)
            self.key = key
            self.character = character

    class StateChanged(Event, namespace="terminal_view"):
        """The terminal behind the view changed its state."""

        def __init__(
            self, view: TerminalView, state: FeedState, status: int | None, message: str
        ) -> None:
            super().__init__(view)
            self.state = state
            self.status = status
            self.message = message

    class TitleChanged(Event, namespace="terminal_view"):
        """The guest set its title (printable, at most 256 characters, never markup)."""

        def __init__(self, view: TerminalView, title: str) -> None:
            super().__init__(view)
            self.title = title

    class Bell(Event, namespace="terminal_view"):
        """The guest rang the bell."""

    class ClipboardRequested(Event, namespace="terminal_view"):
        """The guest wants to put `text` on the clipboard: ask the user, then copy it yourself."""

        def __init__(self, view: TerminalView, text: str) -> None:
            super().__init__(view)
            self.text = text

    class Notified(Event, namespace="terminal_view"):
        """The guest sent a desktop notification (both texts printable, never markup)."""

        def __init__(self, view: TerminalView, title: str, body: str) -> None:
            super().__init__(view)
            self.title = title
            self.body = body

    class Scrolled(Event, namespace="terminal_view"):
        """The visible page moved in the scrollback; see `view.feed.scroll`."""

    class ProgressChanged(Event, namespace="terminal_view"):
        """The guest reported progress: state 1 … 4 and per cent or -1; None when it ended."""

        def __init__(self, view: TerminalView, progress: tuple[int, int] | None) -> None:
            super().__init__(view)
            self.progress = progress

    class MirrorChanged(Event, namespace="terminal_view"):
        """Another client took the terminal (`mirrored`), or this one holds it again."""

        def __init__(self, view: TerminalView, mirrored: bool) -> None:
            super().__init__(view)
            self.mirrored = mirrored

    class InputRefused(Event, namespace="terminal_view"):
        """What the user wanted could not be done: input was dropped, or a copy was not to be had.

        `text` says so in one sentence, to be shown.
        """

        def __init__(self, view: TerminalView, text: str) -> None:
            super().__init__(view)
            self.text = text

    class Copied(Event, namespace="terminal_view"):
        """The user chose `text` (printable, line feeds and tabs in it) and copied it."""

        def __init__(self, view: TerminalView, text: str) -> None:
            super().__init__(view)
            self.text = text

    class LinkClicked(Event, namespace="terminal_view"):
        """The user clicked a link of the guest; `uri` is http(s), printable ASCII, <= 2048."""

        def __init__(self, view: TerminalView, uri: str) -> None:
            super().__init__(view)
            self.uri = uri

    class CopyModeChanged(Event, namespace="terminal_view"):
        """Copy mode or its search line began or ended: keys mean something else now.

        See `view.copying` and `view.copying_mode.line`.
        """
