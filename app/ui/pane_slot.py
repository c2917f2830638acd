"""One place for a session on the fleet screen: header line and live terminal, or what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical

from app.ui.fleet_facts import LIVE
from widgets.pane_header import PaneHeader
from widgets.placard import Placard

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult
    from textual.widget import Widget

    from app.protocol import SessionInfo
    from themes.glyphs import Glyphs
    from widgets.session_rail import SessionRow


class PaneSlot(Vertical):
    """Shows one session at a time; the thick left edge says that it has the keys."""

    DEFAULT_CSS = """
    PaneSlot {
        width: 1fr;
        height: 1fr;
        border-left: outer $surface;
        &:focus-within { border-left: outer $accent; }
    }
    """

    def __init__(
        self, view_of: Callable[[str], Widget], glyphs: Glyphs, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._view_of = view_of
        self.glyphs = glyphs
        self.session_id = ""
        self.trouble = ""
        """Why the terminal does not show what the agent shows, or empty."""
        self.back = 0
        """Lines of newer output below what the terminal shows."""
        self._live = False
        self._view: Widget | None = None

    def compose(self) -> ComposeResult:
        """Begin with the placard; the terminal comes when there is one."""
        yield PaneHeader(glyphs=self.glyphs)
        yield Placard()

    @property
    def view(self) -> Widget | None:
        """The live terminal, if there is one."""
        return self._view

    @property
    def has_keys(self) -> bool:
        """True while every key goes to the agent."""
        return self._view is not None and self.screen.focused is self._view

    def show(self, info: SessionInfo, row: SessionRow) -> None:
        """Show a session as it is now."""
        live = info.state in LIVE and info.state != "starting"
        if info.id != self.session_id or live != self._live:
            self._change_view(info.id, live=live)
        self.query_one(PaneHeader).show(
            row, active=self.has_keys, trouble=self.trouble, back=self.back
        )
        if not live:
            self._explain(info, row)

    def _change_view(self, session_id: str, *, live: bool) -> None:
        again = self.has_keys and session_id == self.session_id
        if self.has_keys:  # else Textual would give the keys to some other widget by itself
            self.screen.set_focus(None)
        if self._view is not None:
            self._view.remove()
            self._view = None
        self.session_id, self._live, self.trouble, self.back = session_id, live, "", 0
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
            noun = "file" if info.changes.files == 1 else "files"
            lines = [f"{info.changes.files} changed {noun} are kept until you delete the session."]
            keys.insert(0, ("r", "review"))
        else:
            lines = ["It changed nothing."]
        if row.message:
            lines.insert(0, row.message)
        words = {"failed": "failed", "lost": "was lost"}.get(info.state, "is stopped")
        tone = "$error" if info.state in ("failed", "lost") else "$foreground"
        placard.say(f"{row.sign} {row.name} {words}", lines, keys, tone=tone)
