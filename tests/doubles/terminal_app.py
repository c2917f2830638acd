"""An app with one terminal under a title, and a feed that grants what the view asks for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Button, Static

from tests.doubles.feed import FakeFeed
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.events import MouseEvent
    from textual.message import Message
    from textual.pilot import Pilot
    from textual.strip import Strip

    from widgets.terminal_feed import PaneFeed, SelectionShape, Unit


class TerminalApp(App[None]):
    """One terminal and a button; bindings that must not fire while the terminal has the keys."""

    ESCAPE_TO_MINIMIZE = False
    CSS = "TerminalView { width: 40; height: 10; } Button { width: 10; } Horizontal { height: 10; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t", "note('ctrl+t')", priority=True),
        Binding("ctrl+c", "note('ctrl+c')", priority=True),
        Binding("tab", "note('tab')", priority=True),
        ("j", "note('j')"),
        ("alt+1", "note('alt+1')"),
        Binding("alt+2", "note('alt+2')", priority=True),
        ("f12", "note('f12')"),
        ("escape", "note('escape')"),
    ]

    def __init__(self, feed: PaneFeed | None = None) -> None:
        super().__init__()
        self.feed = feed
        self.noted: list[str] = []
        self.heard: list[Message] = []

    def compose(self) -> ComposeResult:
        yield Static("title", id="title")
        with Horizontal():
            yield TerminalView(self.feed, id="one")
            yield Button("x")
        yield Static("below")

    def action_note(self, what: str) -> None:
        self.noted.append(what)

    def on_event_of_view(self, message: TerminalView.Event) -> None:
        self.heard.append(message)

    on_terminal_view_prefix_pressed = on_event_of_view
    on_terminal_view_prefix_cancelled = on_event_of_view
    on_terminal_view_prefix_command = on_event_of_view
    on_terminal_view_clipboard_requested = on_event_of_view
    on_terminal_view_title_changed = on_event_of_view
    on_terminal_view_bell = on_event_of_view
    on_terminal_view_notified = on_event_of_view
    on_terminal_view_state_changed = on_event_of_view
    on_terminal_view_copied = on_event_of_view
    on_terminal_view_link_clicked = on_event_of_view
    on_terminal_view_input_refused = on_event_of_view
    on_terminal_view_copy_mode_changed = on_event_of_view
    on_terminal_view_mirror_changed = on_event_of_view
    on_terminal_view_progress_changed = on_event_of_view

    @property
    def view(self) -> TerminalView:
        return self.query_one("#one", TerminalView)

    def of(self, kind: type[Message]) -> list[Message]:
        """What was heard of one kind."""
        return [message for message in self.heard if isinstance(message, kind)]


class GrantingFeed(FakeFeed):
    """Does at once what an engine does a moment later: copy mode, selection and search begin."""

    def _grant(self) -> None:
        if self.listener is not None:
            self.listener.feed_changed(())

    def copy_mode(self, on: bool) -> None:
        super().copy_mode(on)
        self.view = replace(self.view, copying=on, selected=False)
        self._grant()

    def copy_mark(self, shape: SelectionShape) -> None:
        super().copy_mark(shape)
        self.view = replace(self.view, selected=shape != "none")
        self._grant()

    def select(self, x: int, y: int, unit: Unit, *, block: bool = False) -> None:
        super().select(x, y, unit, block=block)
        self.view = replace(self.view, selected=True)
        self._grant()

    def select_none(self) -> None:
        super().select_none()
        self.view = replace(self.view, selected=False)
        self._grant()

    def search(self, text: str, *, backwards: bool = False) -> None:
        super().search(text, backwards=backwards)
        found = 17 if text else 0
        self.view = replace(self.view, matches=found, match=min(3, found))
        self._grant()

    def asked(self, *kinds: str) -> list[tuple[object, ...]]:
        """The calls of some kinds in their order."""
        return [call for call in self.calls if call[0] in kinds]


async def focused(pilot: Pilot[None], app: TerminalApp) -> None:
    app.view.focus()
    await pilot.pause()


def shown(app: TerminalApp, y: int, width: int = 40) -> Strip:
    """A line of the view as the compositor shows it."""
    row = app.screen._compositor.render_strips()[app.view.region.y + y]  # pyright: ignore[reportPrivateUsage]
    return row.crop(0, width)


def names(app: TerminalApp) -> list[str]:
    return [type(message).__name__ for message in app.heard]


async def mouse(
    pilot: Pilot[None],
    kind: type[MouseEvent],
    x: int,
    y: int,
    button: int = 0,
    *,
    shift: bool = False,
    alt: bool = False,
    ctrl: bool = False,
) -> None:
    """Send one mouse event in cells of the view."""
    await pilot._post_mouse_events(  # pyright: ignore[reportPrivateUsage]
        [kind], TerminalView, (x, y), button, shift, alt, ctrl
    )


async def finished(app: TerminalApp) -> None:
    """Wait until nothing works in the background: a copy was told."""
    await app.workers.wait_for_complete()  # pyright: ignore[reportUnknownMemberType]
