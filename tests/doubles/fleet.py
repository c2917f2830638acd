"""What tests ask of the fleet screen: which panes are to be seen, and who has the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.app import ClocheApp
from app.ui.fleet_screen import FleetScreen
from tests.doubles.pilots import press, settle
from tests.doubles.scenes import WORKSPACE

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from app.services.layouts import Layout
    from app.ui.pane_slot import PaneSlot

WIDE = (200, 60)
USUAL = (120, 40)
SMALL = (80, 24)

ALL = [f"s{number}" for number in range(1, 10)]
"""The sessions of a crowd of nine."""


def fleet_of(app: ClocheApp) -> FleetScreen:
    """Return the fleet screen, also below another one."""
    screen = app.screen_stack[0]
    assert isinstance(screen, FleetScreen)
    return screen


def shown(app: ClocheApp) -> list[str]:
    """Return the sessions whose panes are to be seen, in the order of their places."""
    return [slot.session_id for slot in fleet_of(app).slots if slot.display]


def pane(app: ClocheApp, session_id: str) -> PaneSlot:
    """Return the pane that shows a session."""
    slot = fleet_of(app).slot_of(session_id)
    assert slot is not None
    return slot


def owner(app: ClocheApp) -> str:
    """Return the session that has the keys, or an empty text."""
    slot = fleet_of(app).slot_with_keys()
    return "" if slot is None else slot.session_id


async def with_panes(pilot: Pilot[None], count: int) -> None:
    """Show so many panes."""
    await settle(pilot)
    assert isinstance(pilot.app, ClocheApp)
    tiling = fleet_of(pilot.app).tiling
    while len(tiling.shown) != count:
        await press(pilot, "plus" if len(tiling.shown) < count else "minus")


class Remembering:
    """Remembers one layout and notes what it is to remember."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.written: list[Layout] = []

    async def load(self, workspace: str) -> Layout:
        """Return the layout."""
        assert workspace == str(WORKSPACE)
        return self.layout

    def remember(self, workspace: str, layout: Layout) -> None:
        """Note it."""
        assert workspace == str(WORKSPACE)
        self.written.append(layout)

    async def close(self) -> None:
        """Have nothing to write."""
