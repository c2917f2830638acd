"""How the user arranges panes: more, fewer, one alone; and what of it is remembered."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import on

from app.services.layouts import Layout
from app.ui.fleet_facts import ORDERS
from app.ui.fleet_health import FleetHealth
from app.ui.grid import COUNTS, Tiling, beside, fitting
from app.ui.messages import LayoutArrived
from app.ui.pane_slot import PaneSlot
from app.ui.workers import work

if TYPE_CHECKING:
    from themes.glyphs import Glyphs

LOAD_SECONDS = 1.0
"""After that long the usual layout is shown, whatever the disk does."""


class FleetLayout(FleetHealth):
    """Moves between panes and changes how many there are."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self._remembered = Layout()

    def on_mount(self) -> None:
        """Find out how the user left the screen."""
        self.load_layout()

    # What is remembered

    @work("load")
    async def load_layout(self) -> None:
        """Read the layout of the workspace."""
        load = self.cloche.layouts.load(str(self.cloche.workspace))
        try:
            layout = await asyncio.wait_for(load, LOAD_SECONDS)
        except TimeoutError:
            layout = Layout()
        self.post_message(LayoutArrived(layout))

    @on(LayoutArrived)
    def use_layout(self, message: LayoutArrived) -> None:
        """Arrange the screen as the user left it."""
        layout = self._remembered = message.layout
        if layout.panes in COUNTS:
            self.wish = layout.panes
        if layout.panes_low in COUNTS:
            self.low_wish = layout.panes_low
        if layout.order in ORDERS:
            self.order = layout.order
        self.tiling = Tiling(layout.places)
        self.is_ready = True
        if layout.current and not self.rail.select(layout.current):
            self.wanted = layout.current
        self.show_rail()
        self.set_zoom(on=layout.zoomed)
        self.show_choice()

    def show_panes(self) -> None:
        """Show the panes and remember how they stand."""
        super().show_panes()
        if not self.is_ready or not self.sessions:
            return
        places = self._remembered.places if self.is_low else self.tiling.shown
        order = "" if self.order == ORDERS[0] else self.order
        layout = Layout(
            self.wish, self.low_wish, self.zoomed, places, order, self.rail.current_key or ""
        )
        if layout != self._remembered:
            self._remembered = layout
            self.cloche.layouts.remember(str(self.cloche.workspace), layout)

    # More, fewer, one alone

    def action_zoom(self) -> None:
        """Give one pane the whole screen, or take it back."""
        self.set_zoom(on=not self.zoomed)

    def set_zoom(self, *, on: bool) -> None:
        """Show one pane alone, or the grid."""
        self.zoomed = on
        for part in ("#side", "#strip"):  # not the screen: its class restyles every pane
            self.query_one(part).set_class(on, "-zoomed")
        self.fit()

    def action_more(self) -> None:
        """Show the next larger number of panes."""
        if self.zoomed:
            self.set_zoom(on=False)
        shown, wished = self.pane_count(), self.wished
        more = beside(min(wished, max(shown, self.limit())), 1)
        if fitting(more, *self.room()) < more:
            self.say(f"No room for {more} panes: each would have less than 20x5 cells.")
        elif wished == more == shown:
            self.say(f"There are no more than {more} panes.")
        else:
            self._wish_for(more)
            if self.pane_count() == shown:
                sessions = "one session runs" if shown == 1 else "the sessions have a pane each"
                self.say(f"Up to {more} panes from now on; now {sessions}.")

    def action_fewer(self) -> None:
        """Show the next smaller number of panes."""
        if self.zoomed:
            self.set_zoom(on=False)
        elif self.pane_count() == 1:
            self.say("There is one pane.")
        else:
            self._wish_for(beside(self.pane_count(), -1))

    def _wish_for(self, count: int) -> None:
        if self.is_low:
            self.low_wish = count
        else:
            self.wish = count
        self.show_choice()

    # From pane to pane

    def action_step_pane(self, direction: int) -> None:
        """Go to the next or the previous pane; the keys go along if an agent has them."""
        keys = self.tiling.sessions
        if len(keys) < 2 or self.zoomed:  # the others are out of sight
            keys = [info.id for info in self.sessions]
        current = self.rail.current_key
        if current not in keys:
            return
        target = keys[(keys.index(current) + direction) % len(keys)]
        if self.slot_with_keys() is None:
            self.rail.select(target)
            self.show_choice()
        else:
            self.go_into(target)

    def action_pane(self, number: int) -> None:
        """Go into the screen of the session with a number."""
        if 1 <= number <= len(self.sessions):
            self.go_into(self.sessions[number - 1].id)
        else:
            self.say(f"There is no session {number}.")

    @on(PaneSlot.Clicked)
    def enter_clicked(self, message: PaneSlot.Clicked) -> None:
        """Go into the pane that was clicked."""
        message.stop()
        if not message.slot.has_keys:
            self.go_into(message.slot.session_id)

    def go_into(self, session_id: str) -> None:
        """Give the keys to a session's agent, or show why that cannot be."""
        if not self.rail.select(session_id):
            return
        self.show_panes()
        self.action_enter_pane()
        slot = self.slot_with_keys()
        if slot is None or slot.session_id != session_id:
            self.go_home()
        self.show_choice()

    def action_enter_pane(self) -> None:
        """Give the keys to the agent of the session under the cursor; a second time, its terminal.

        A terminal that is attached elsewhere is only watched until the user takes it over.
        """
        info = self.current
        slot = None if info is None else self.slot_of(info.id)
        if info is None or slot is None:
            return
        if slot.has_keys and slot.feed is not None and slot.mirrored:
            slot.feed.take_over()
        elif slot.view is not None:
            self.set_focus(slot.view)
        elif info.state == "starting":
            self.say("Its machine still boots; its screen appears by itself.")
        else:
            self.say("It has no machine now.", "R resumes it, r reviews what it changed")

    def action_leave_pane(self) -> None:
        """Take the keys back from an agent, or give them."""
        if self.focus_owner():
            self.go_home()
        else:
            self.action_enter_pane()
