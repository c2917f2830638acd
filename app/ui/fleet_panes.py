"""The panes of the fleet screen: how many, which sessions they show, where the keys go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.states import LIVE
from app.ui.fleet_facts import row_of
from app.ui.grid import Tiling, fitting
from app.ui.pane_news import NO_NEWS, PaneNews
from app.ui.pane_stage import PaneStage, PaneValue
from app.ui.work_screen import WorkScreen
from app.wording import plural
from snapshot.safe_text import safe_name
from widgets.session_rail import SessionRail

if TYPE_CHECKING:
    from app.protocol import SessionInfo
    from app.ui.pane_slot import PaneSlot
    from themes.glyphs import Glyphs

RAIL_FROM = 100
"""Least width of the terminal in cells for the rail beside the panes."""

WIDE_FROM = 160
"""Least width of the terminal for the wider rail."""

LOW = 30
"""A screen with fewer lines, or without a rail, counts as a small one: it shows one pane unless
the user wished for more on a small screen."""

RAIL_WIDTH, WIDE_RAIL_WIDTH = 36, 44
"""Cells of the rail, as in `fleet.tcss`."""

BARS = 2
"""Lines of the screen that are never the stage's: the first and the last."""


class FleetPanes(WorkScreen):
    """Knows the sessions and shows them in panes."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self.sessions: tuple[SessionInfo, ...] = ()
        self.zoomed = False
        self.tiling = Tiling()
        self.wish = 2
        """Panes that the user wants on a screen with a rail."""
        self.low_wish = 1
        """Panes that the user wants on a small screen."""
        self.is_ready = False
        """False until it is known how the user left the screen."""
        self._said_limit = 0
        self.now = 0.0
        """When ages were written last: rail, strip and headers say the same, in Unix seconds."""

    # Parts

    @property
    def rail(self) -> SessionRail:
        """The list of sessions."""
        return self.query_one("#rail", SessionRail)

    @property
    def stage(self) -> PaneStage:
        """Where the panes are."""
        return self.query_one("#panes", PaneStage)

    @property
    def slots(self) -> list[PaneSlot]:
        """The panes that have a session, in the order of their places."""
        return self.stage.slots if self.is_ready else []

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

    def slot_with_keys(self) -> PaneSlot | None:
        """Return the pane that has the focus."""
        return next((slot for slot in self.slots if slot.has_keys), None)

    def focus_owner(self) -> str:
        """Return the name of the session whose agent gets the keys."""
        slot = self.slot_with_keys()
        info = None if slot is None else self.info_of(slot.session_id)
        return "" if info is None else safe_name(info.name or info.id).text

    def news_of(self, session_id: str) -> PaneNews:
        """Return what a session's terminal reported."""
        return NO_NEWS

    def marked_sessions(self) -> set[str]:
        """Return the sessions whose agents did something that nobody has seen."""
        return {info.id for info in self.sessions if self.news_of(info.id).marked}

    # How many

    @property
    def is_low(self) -> bool:
        """True on a small screen."""
        return self.size.width < RAIL_FROM or self.size.height < LOW

    @property
    def wished(self) -> int:
        """How many panes the user wants on a screen of this size."""
        return self.low_wish if self.is_low else self.wish

    def room(self) -> tuple[int, int]:
        """Return the stage's size without zoom, in cells."""
        width, height = self.size
        if width < RAIL_FROM:
            return width, height - BARS - 1  # the strip takes a line
        rail = WIDE_RAIL_WIDTH if width >= WIDE_FROM else RAIL_WIDTH
        return width - rail, height - BARS

    def limit(self) -> int:
        """Return how many of the wished panes fit."""
        return fitting(self.wished, *self.room())

    def pane_count(self) -> int:
        """Return how many places there are for the sessions that there are."""
        return self.tiling.count(self.limit(), self._known(), self._live(), self._current_id())

    def _known(self) -> list[str]:
        return [info.id for info in self.sessions]

    def _live(self) -> set[str]:
        return {info.id for info in self.sessions if info.state in LIVE}

    def _current_id(self) -> str:
        return self.rail.current_key or ""

    # Showing

    def show_panes(self) -> None:
        """Show the sessions in their places."""
        if not self.is_ready:
            return
        known, current = self._known(), self._current_id()
        count = self.pane_count()
        places = self.tiling.arrange(count, current, known, self._live())
        values = [self._value(known.index(s), current) for s in places if s]
        alone = current if self.zoomed and current in places else ""
        self.stage.show(values, places, alone)
        self._say_limit()

    def _value(self, position: int, current: str) -> PaneValue:
        info = self.sessions[position]
        row = row_of(info, position + 1, self.glyphs, self.now)
        return PaneValue(info, row, self.news_of(info.id), info.id == current)

    def on_screen_suspend(self) -> None:
        """Have nothing drawn behind a screen that covers this one; a dialog lets it be seen."""
        if not self.is_current:
            self.stage.rest()

    def on_screen_resume(self) -> None:
        """Draw again."""
        self.stage.wake()

    @on(PaneStage.Unfinished)
    def show_the_rest(self, message: PaneStage.Unfinished) -> None:
        """Show the panes for which there was no time in the turn before."""
        message.stop()
        self.show_panes()

    def _say_limit(self) -> None:
        """Say once that there is no room for what the user wished."""
        limit, wished = self.limit(), self.wished
        wanted = self.tiling.count(wished, self._known(), self._live(), self._current_id())
        graver = self.notice is not None and self.notice.level in ("warning", "error")
        if limit >= wanted:
            self._said_limit = 0
        elif self._said_limit != limit and not self.zoomed and not graver:
            self._said_limit = limit
            noun = plural(limit, "pane")
            self.say(f"Room for {limit} {noun} of {wanted} here.")
