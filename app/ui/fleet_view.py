"""What the fleet screen shows: the rail, who needs somebody, and the panes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from app.ui.fleet_facts import ORDERS, needs_of, ordered, rail_items, row_of
from app.ui.fleet_panes import RAIL_FROM, FleetPanes
from app.ui.pane_stage import PaneStage
from snapshot.safe_text import safe_name
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.line_list import LineList
from widgets.placard import ASCII_BELL, BELL, Placard
from widgets.session_rail import NeedsList, SessionRail, SessionStrip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.widget import Widget

    from app.protocol import SessionInfo

BEAT_SECONDS = 1.0
"""The signs of working agents move this slowly."""

AGE_SECONDS = 15
"""How often ages are written anew."""


class FleetView(FleetPanes):
    """Shows sessions; the keys are added by the classes below."""

    wanted = ""
    """The session that gets the cursor as soon as it is listed."""
    order = ORDERS[0]
    _quiet_beat = False

    def compose_body(self) -> ComposeResult:
        """Yield the rail beside the panes; on narrow screens the strip above them."""
        yield SessionStrip(glyphs=self.glyphs, id="strip")
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield InfoLine("surface", glyphs=self.glyphs, id="rail-title")
                yield SessionRail(glyphs=self.glyphs, id="rail")
                yield Static("NEEDS YOU", classes="title", id="needs-title", markup=False)
                yield NeedsList(glyphs=self.glyphs, id="needs")
            with Vertical(id="stage"):
                yield Placard(id="empty")
                yield PaneStage(self.cloche.terminals.view, self.glyphs, id="panes")
        yield LineBar(id="line")

    def on_mount(self) -> None:
        """Keep ages and signs moving."""
        self.set_interval(AGE_SECONDS, self._tick)
        if self.cloche.animation_level != "none":
            self.set_interval(BEAT_SECONDS, self._beat)

    @property
    def home(self) -> Widget:
        """Where the keys are when no pane has them: the rail, or the strip on narrow screens."""
        narrow = self.zoomed or self.size.width < RAIL_FROM
        return self.query_one("#strip") if narrow else self.rail

    def go_home(self) -> None:
        """Take the keys back to the list of sessions."""
        self.set_focus(self.home)

    # Showing

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Show the sessions as they are now."""
        owner = self.focus_owner()
        self.now = time.time()
        self.sessions = tuple(ordered(sessions, str(self.cloche.workspace)))
        self.show_rail()
        if self.wanted and self.rail.select(self.wanted):
            self.wanted = ""
        self._show_needs()
        self.show_panes()
        self.show_strip()
        if owner and not self.focus_owner():
            self.fall_deaf()
            self.say(f"The screen of {owner} is gone: what you type now is Cloche's again.")

    def show_rail(self) -> None:
        """List the sessions, or those that hold what the filter says."""
        line = self.query_one(LineBar)
        needle = line.text if line.is_open else ""
        marked = self.marked_sessions()
        items = rail_items(self.sessions, self.glyphs, self.now, needle, self.order, marked)
        self.rail.empty = "no session holds that" if needle else ""
        self.rail.set_items(items)
        title = [(" SESSIONS", "muted*")]
        self.query_one("#rail-title", InfoLine).show(title, [(f"{self.order} ", "muted")])
        self.rail.styles.height = max(1, self.rail.row_count)

    def _show_needs(self) -> None:
        needs = needs_of(self.sessions, self.glyphs)
        listed = self.query_one("#needs", NeedsList)
        listed.set_items(needs)
        listed.styles.height = max(1, min(8, len(needs)))
        listed.display = self.query_one("#needs-title").display = bool(needs)

    def show_strip(self) -> None:
        """List the sessions in one line, for narrow screens."""
        marked = self.marked_sessions()
        rows = [
            row_of(info, number, self.glyphs, self.now, marked=info.id in marked)
            for number, info in enumerate(self.sessions, 1)
        ]
        strip = self.query_one("#strip", SessionStrip)
        strip.show(rows, self.rail.current_key or "")

    def show_panes(self) -> None:
        """Show the panes, or what to do when there is no session."""
        self._show_empty()
        super().show_panes()
        if self.focused is None and self.is_current:
            self.go_home()

    def show_choice(self) -> None:
        """Show everywhere which session the cursor is on."""
        self.show_panes()
        self.show_strip()
        self.refresh_keys()

    def _show_empty(self) -> None:
        empty = self.query_one("#empty", Placard)
        empty.display = not self.sessions
        self.stage.display = bool(self.sessions)
        self.set_class(not self.sessions, "-empty")
        if not self.sessions:
            folder = safe_name(str(self.cloche.workspace)).text
            lines = [
                f"An agent works on a copy of {folder}, in a machine of its own.",
                "Your files change only when you merge what you accepted.",
            ]
            art = ASCII_BELL if self.glyphs.edge == "|" else BELL
            keys = [("n", "start an agent"), ("?", "all keys"), ("q", "leave")]
            empty.say("No session yet", lines, keys, art)

    def _tick(self) -> None:
        if self.is_current and self.sessions:
            self.now = time.time()
            self.show_rail()
            self.show_panes()

    def _beat(self) -> None:
        if self.is_current:
            self._quiet_beat = not self._quiet_beat
            self.rail.beat(quiet=self._quiet_beat)

    def on_resize(self) -> None:
        """Show as many panes as fit, and keep the keys where they can be seen."""
        self.call_after_refresh(self.fit)

    def fit(self) -> None:
        """Fit to the size: as many panes as there is room for, the keys where they are seen."""
        if self.focused is None or isinstance(self.focused, LineList | SessionStrip):
            self.go_home()
        self.show_panes()
