"""One pane on the fleet screen: header line and live terminal, or what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.containers import Vertical
from textual.message import Message

from app.states import LIVE
from app.wording import plural
from widgets.header_parts import PaneFacts
from widgets.pane_header import PaneHeader
from widgets.placard import Placard
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

    from app.protocol import SessionInfo
    from app.ui.app import ClocheApp
    from app.ui.pane_news import PaneNews
    from themes.glyphs import Glyphs
    from widgets.session_rail import SessionRow
    from widgets.terminal_feed import PaneFeed

TROUBLES = {
    "lost": "reconnects",
    "restarting": "starts again",
    "broken": "cannot be shown",
}
"""What the header says of a terminal out of order, where there is little room."""


class PaneSlot(Vertical):
    """Shows one session at a time; the thick left edge says that it has the keys."""

    DEFAULT_CSS = """
    PaneSlot {
        border-left: outer $surface;
        &:focus-within { border-left: outer $accent; }
        &.-ascii { border-left: ascii $surface; }
        &.-ascii:focus-within { border-left: ascii $accent; }
    }
    """

    class Ready(Message):
        """The pane can show a session now."""

    class Clicked(Message):
        """The user clicked the pane, anywhere."""

        def __init__(self, slot: PaneSlot) -> None:
            super().__init__()
            self.slot = slot

        @property
        def control(self) -> PaneSlot:
            """The pane that was clicked."""
            return self.slot

    def __init__(
        self, view_of: Callable[[str], Widget], glyphs: Glyphs, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._view_of = view_of
        self.glyphs = glyphs
        self.session_id = ""
        self.is_ready = False
        self._live = False
        self._view: Widget | None = None
        self._shown: tuple[SessionRow, PaneNews, bool] | None = None
        self.set_class(glyphs.edge.isascii(), "-ascii")

    def compose(self) -> ComposeResult:
        """Begin with the placard; the terminal comes when there is one."""
        app = cast("ClocheApp", self.app)  # pyright: ignore[reportUnknownMemberType]
        yield PaneHeader(glyphs=self.glyphs, takes=f"{app.prefix_name} enter")
        yield Placard()

    def on_mount(self) -> None:
        """Tell that header and placard are there."""
        self.is_ready = True
        self.post_message(self.Ready())

    @property
    def view(self) -> Widget | None:
        """The live terminal, if there is one."""
        return self._view

    @property
    def feed(self) -> PaneFeed | None:
        """What is behind the live terminal, if there is one."""
        return self._view.feed if isinstance(self._view, TerminalView) else None

    @property
    def has_keys(self) -> bool:
        """True while the focus is on its terminal."""
        return self._view is not None and self.screen.focused is self._view

    @property
    def copying(self) -> bool:
        """True in copy mode: the page stands still and the keys are the view's."""
        return isinstance(self._view, TerminalView) and self._view.copying

    @property
    def searching(self) -> bool:
        """True while a search is typed: the keys go into its line."""
        return isinstance(self._view, TerminalView) and self._view.copying_mode.line is not None

    @property
    def mirrored(self) -> bool:
        """True while another client holds the terminal and this one only watches."""
        return self.feed is not None and self.feed.mirrored

    def needs_view(self, info: SessionInfo) -> bool:
        """Tell whether showing a session means to mount a terminal, which takes its time."""
        live = is_shown_live(info)
        return live and (info.id != self.session_id or not self._live)

    def show(self, info: SessionInfo, row: SessionRow, news: PaneNews, *, current: bool) -> None:
        """Show a session as it is now."""
        live = is_shown_live(info)
        if info.id != self.session_id or live != self._live:
            self._change_view(info.id, live=live)
        self._shown = (row, news, current)
        self.show_facts()
        if not live:
            self._explain(info, row)

    def show_facts(self) -> None:
        """Say in the header what is true of the terminal now; cheap where nothing changed."""
        if self._shown is not None:
            row, news, current = self._shown
            self.query_one(PaneHeader).show(row, self._facts(news, current=current))

    def clear(self) -> None:
        """Show nothing; the terminal goes on without a view."""
        if self.session_id:
            self._change_view("", live=False)
        self.display = False

    def on_click(self, event: events.Click) -> None:
        """Tell that the pane is wanted; a click on its header, edge or placard comes here."""
        event.stop()
        self.post_message(self.Clicked(self))

    def _facts(self, news: PaneNews, *, current: bool) -> PaneFacts:
        feed, active = self.feed, self.has_keys
        if feed is None:
            return PaneFacts(current=current, marked=news.marked)
        scroll = feed.scroll
        below = 0 if scroll.at_end else max(1, scroll.total - scroll.offset - feed.rows)
        return PaneFacts(
            active=active,
            current=current,
            trouble=TROUBLES.get(feed.state, ""),
            back=below,
            copying=self.copying,
            mirrored=feed.mirrored,
            progress=feed.progress,
            marked=news.marked,
            title=news.title or feed.title,
        )

    def _change_view(self, session_id: str, *, live: bool) -> None:
        again = self.has_keys and session_id == self.session_id
        if self.has_keys:  # else Textual would give the keys to some other widget by itself
            self.screen.set_focus(None)
        if self._view is not None:
            self._view.remove()
            self._view = None
        self.session_id, self._live = session_id, live
        self.query_one(Placard).display = not live
        if live:
            self._view = self._view_of(session_id)
            self.mount(self._view)
            if again:
                self.screen.set_focus(self._view)

    def _explain(self, info: SessionInfo, row: SessionRow) -> None:
        placard = self.query_one(Placard)
        if info.state == "starting":
            lines = ["A machine boots for it; its screen appears here."]
            placard.say(f"{self.glyphs.starting} {row.name} is starting", lines)
            return
        keys = [("R", "resume"), ("d", "delete")]
        if info.changes.files:
            noun = plural(info.changes.files, "file")
            lines = [f"{info.changes.files} changed {noun} are kept until you delete the session."]
            keys.insert(0, ("r", "review"))
        else:
            lines = ["It changed nothing."]
        if row.message:
            lines.insert(0, row.message)
        words = {"failed": "failed", "lost": "was lost"}.get(info.state, "is stopped")
        tone = "$error" if info.state in ("failed", "lost") else "$foreground"
        placard.say(f"{row.sign} {row.name} {words}", lines, keys, tone=tone)


def is_shown_live(info: SessionInfo) -> bool:
    """Tell whether a session has a terminal to show."""
    return info.state in LIVE and info.state != "starting"
