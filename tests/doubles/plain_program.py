"""The workstation on a real terminal: goes through its screens by itself, then ends.

What it writes shows which colours reach the outer terminal under some environment.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.ui import fleet_screen
from app.ui.app import ClocheApp
from app.ui.fleet_screen import FleetScreen
from app.ui.opening import run_app
from app.ui.theming import chosen_palette
from tests.doubles.keeper import FakeFleet
from tests.doubles.scenes import WORKSPACE, crowd
from tests.doubles.terminals import StillTerminals

if TYPE_CHECKING:
    from textual._path import CSSPathType

    from widgets.notice import Level

KEYS = (
    *("1", "ctrl+g", "escape", "f12", "slash", "escape", "n", "escape", "question_mark", "escape"),
    *("colon", "down", "escape", "r", "j", "escape", "q"),
)
"""Keys that open everything once: a pane, filter, dialog, help, commands, a review."""


SESSIONS, ROUNDS = 10, 5
LOOK_S = 0.5
"""How often to look whether the screen is still there."""

LEVELS: tuple[Level, ...] = ("info", "done", "warning", "error")


class Tour(ClocheApp):
    """Presses keys."""

    CSS_PATH: ClassVar[CSSPathType | None] = [
        Path(fleet_screen.__file__).with_name(f"{name}.tcss")
        for name in ("shared", "fleet", "review")
    ]

    async def on_ready(self) -> None:
        """Begin."""
        self.run_worker(self.walk())

    async def walk(self) -> None:
        """Go through the screens and end."""
        while not (isinstance(self.screen, FleetScreen) and len(self.sessions) == SESSIONS):
            await self.drawn()
        for level in LEVELS:
            self.screen.say("A sentence.", "a fix", level)
            await self.drawn()
        self.screen.action_dismiss_notice()
        for key in KEYS:
            self.simulate_key(key)
            await self.turns.settled()
            await self.drawn()
        self.exit()

    async def drawn(self) -> None:
        """Wait until what happened is on the terminal."""
        for _ in range(ROUNDS):
            await self.refreshed()

    async def refreshed(self) -> None:
        """Wait for the screen's next refresh: a screen that was closed meanwhile has none."""
        event, screen = asyncio.Event(), self.screen
        screen.call_after_refresh(event.set)
        while screen in self.screen_stack and not event.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), LOOK_S)


if __name__ == "__main__":
    palette = chosen_palette(os.environ.get("CLOCHE_THEME", ""))
    app = Tour(WORKSPACE, FakeFleet(crowd(SESSIONS)), StillTerminals(), theme=palette.name)
    app.strict = True
    sys.exit(run_app(app))
