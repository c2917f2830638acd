"""What the fleet screen shows: the rail, who needs somebody, and one or two panes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from app.ui.fleet_facts import LIVE, ORDERS, needs_of, ordered, rail_items, row_of
from app.ui.pane_slot import PaneSlot
from app.ui.work_screen import WorkScreen
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

TWO_PANES_FROM = 30
"""Least height of the terminal in lines for two panes on top of each other."""

RAIL_FROM = 100
"""Least width of the terminal in cells for the rail beside the panes."""

BEAT_SECONDS = 1.0
"""The signs of working agents move this slowly."""

AGE_SECONDS = 15
"""How often ages are written anew."""


class FleetView(WorkScreen):
    """Shows sessions; the keys are added by the classes below."""

    sessions: tuple[SessionInfo, ...] = ()
    zoomed = False
    wanted = ""
    order = ORDERS[0]
    _quiet_beat = False

    def compose_body(self) -> ComposeResult:
        """Yield the rail beside the panes; on narrow screens the strip above them."""
        self._shown: list[str] = []
        yield SessionStrip(glyphs=self.glyphs, id="strip")
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield InfoLine("surface", glyphs=self.glyphs, id="rail-title")
                yield SessionRail(glyphs=self.glyphs, id="rail")
                yield Static("NEEDS YOU", classes="title", id="needs-title", markup=False)
                yield NeedsList(glyphs=self.glyphs, id="needs")
            with Vertical(id="stage"):
                yield Placard(id="empty")
                for index in range(2):
                    yield PaneSlot(self.cloche.terminals.view, self.glyphs, id=f"slot-{index}")
        yield LineBar(id="line")

    def on_mount(self) -> None:
        """Keep ages and signs moving."""
        super().on_mount()
        self.set_interval(AGE_SECONDS, self._tick)
        if self.cloche.animation_level != "none":
            self.set_interval(BEAT_SECONDS, self._beat)

    # Parts

    @property
    def rail(self) -> SessionRail:
        """The list of sessions."""
        return self.query_one("#rail", SessionRail)

    @property
    def home(self) -> Widget:
        """Where the keys are when no pane has them: the rail, or the strip on narrow screens."""
        narrow = self.zoomed or self.size.width < RAIL_FROM
        return self.query_one("#strip") if narrow else self.rail

    def go_home(self) -> None:
        """Take the keys back to the list of sessions."""
        self.set_focus(self.home)

    @property
    def slots(self) -> list[PaneSlot]:
        """The places for panes."""
        return list(self.query(PaneSlot))

    @property
    def current(self) -> SessionInfo | None:
        """The session that keys are about."""
        return self.info_of(self.rail.current_key or "")

    def info_of(self, session_id: str) -> SessionInfo | None:
        """Return the session with an id."""
        return next((info for info in self.sessions if info.id == session_id), None)

    def slot_of(self, session_id: str) -> PaneSlot | None:
        """Return the pane that shows a session now."""
        shown = (slot for slot in self.slots if slot.display and slot.session_id == session_id)
        return next(shown, None)

    def focus_owner(self) -> str:
        """Return the name of the session whose agent gets the keys."""
        for slot in self.slots:
            info = self.info_of(slot.session_id)
            if slot.has_keys and info is not None:
                return safe_name(info.name or info.id).text
        return ""

    # Showing

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Show the sessions as they are now."""
        owner = self.focus_owner()
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
        items = rail_items(self.sessions, self.glyphs, time.time(), needle, self.order)
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
        now = time.time()
        rows = [row_of(info, n, self.glyphs, now) for n, info in enumerate(self.sessions, 1)]
        strip = self.query_one("#strip", SessionStrip)
        strip.show(rows, self.rail.current_key or "")

    def _capacity(self) -> int:
        if self.zoomed or self.size.height < TWO_PANES_FROM:
            return 1
        return 2

    def _choose_shown(self) -> list[str]:
        """Keep what is shown where it is; only the pane of the last choice changes."""
        current = self.rail.current_key
        known = [info.id for info in self.sessions]
        shown = [session_id for session_id in self._shown if session_id in known]
        if current is not None and current not in shown:
            last = self._last_current if self._last_current in shown else None
            if last is not None and len(shown) >= self._capacity():
                shown[shown.index(last)] = current
            else:
                shown.append(current)
        for info in self.sessions:
            if len(shown) < self._capacity() and info.id not in shown and info.state in LIVE:
                shown.append(info.id)
        if current is not None:
            if self._capacity() == 1:
                shown = [current]
            self._last_current = current
        return shown[: self._capacity()]

    _last_current = ""

    def show_panes(self) -> None:
        """Show one or two sessions, or what to do when there is none."""
        self._show_empty()
        self._shown = self._choose_shown()
        order = [info.id for info in self.sessions]
        self._shown.sort(key=order.index)
        now = time.time()
        for index, slot in enumerate(self.slots):
            info = self.info_of(self._shown[index]) if index < len(self._shown) else None
            slot.display = info is not None
            if info is not None:
                row = row_of(info, order.index(info.id) + 1, self.glyphs, now)
                slot.show(info, row)
        if self.focused is None and self.is_current:
            self.go_home()

    def _show_empty(self) -> None:
        empty = self.query_one("#empty", Placard)
        empty.display = not self.sessions
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
            self.show_rail()
            self.show_panes()

    def _beat(self) -> None:
        if self.is_current:
            self._quiet_beat = not self._quiet_beat
            self.rail.beat(quiet=self._quiet_beat)

    def on_resize(self) -> None:
        """Show one pane or two, and keep the keys where they can be seen."""
        self.call_after_refresh(self.fit)

    def fit(self) -> None:
        """Fit to the size: as many panes as there is room for, the keys where they are seen."""
        if self.focused is None or isinstance(self.focused, LineList | SessionStrip):
            self.go_home()
        self.show_panes()
