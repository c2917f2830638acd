"""Terminals out of order: said in their header, and brought back where that is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.states import LIVE
from app.ui.failures import told
from app.ui.fleet_asks import FleetAsks
from app.ui.messages import TaskFailed
from app.ui.pane_slot import PaneSlot
from app.ui.workers import work
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from themes.glyphs import Glyphs


class FleetHealth(FleetAsks):
    """Watches the terminals that are shown."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self._woken: set[str] = set()
        """Sessions whose keeper was looked for since their terminal was last in order."""

    @on(TerminalView.StateChanged)
    def show_terminal_state(self, message: TerminalView.StateChanged) -> None:
        """Say in the pane's header when its terminal is out of order."""
        message.stop()
        slot = next((slot for slot in self.slots if slot.view is message.view), None)
        if slot is None:
            return
        if message.state == "broken":
            self.say(message.message, "Its agent goes on: cloche attach", "error")
        elif message.state == "lost":
            self._wake(slot)
        elif message.state == "live":
            self._woken.discard(slot.session_id)
        self.show_panes()

    @on(TerminalView.Scrolled)
    def show_scrolled(self, message: TerminalView.Scrolled) -> None:
        """Say in the pane's header how much newer output is out of sight; comes at every frame."""
        message.stop()
        show_facts(message.view)

    @on(TerminalView.MirrorChanged)
    @on(TerminalView.CopyModeChanged)
    def show_whose_keys(self, message: TerminalView.Event) -> None:
        """Say in the pane's header and below whose the terminal and the keys are."""
        message.stop()
        show_facts(message.view)
        self.refresh_keys()

    def _wake(self, slot: PaneSlot) -> None:
        """Start the keeper of a machine that runs, once; the terminal comes back by itself."""
        info = self.info_of(slot.session_id)
        if info is not None and info.state in LIVE and info.id not in self._woken:
            self._woken.add(info.id)
            self.wake_keeper(info.id)

    @work("wake")
    async def wake_keeper(self, session_id: str) -> None:
        """Connect to the keeper, which starts one where there is none."""
        try:
            session = await self.cloche.fleet.open(session_id)
            await session.close()
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))


def show_facts(view: TerminalView) -> None:
    """Say in a pane's header what is true of its terminal now; a view may have lost its pane."""
    if isinstance(view.parent, PaneSlot):
        view.parent.show_facts()
