"""A live terminal with a frame of fixed text around it: `framed_app.py SOCKET`.

Nothing that the guest reports is shown, so what stands around the terminal must never change.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from textual.app import App
from textual.containers import Horizontal
from textual.widgets import Static

from app.ui.panes import PaneHub
from tests.doubles.engines import cache_folder
from tests.doubles.worker_link import LAUNCHER
from widgets.terminal import TerminalView
from widgets.terminal_keys import mend_parser

if TYPE_CHECKING:
    from textual.app import ComposeResult

COLUMNS, ROWS = 80, 24
SIDE = 6
"""Cells of the frame on each side; above and below it has one row."""


def side(letter: str) -> str:
    """Return the text of one side."""
    return "\n".join(f"{letter}{y:02}{letter * (SIDE - 3)}" for y in range(1, ROWS - 1))


class FramedApp(App[None]):
    """One terminal in a frame."""

    CSS: ClassVar[str] = f"""
    Static {{ background: #203040; color: #f0c060; }}
    #left, #right {{ width: {SIDE}; }}
    #top, #bottom {{ height: 1; }}
    """

    def __init__(self, socket: Path) -> None:
        super().__init__()
        self.socket = socket
        self.hub = PaneHub(cache=cache_folder(), launcher=LAUNCHER)

    def compose(self) -> ComposeResult:
        yield Static("T" * COLUMNS, id="top")
        with Horizontal():
            yield Static(side("L"), id="left")
            yield TerminalView(id="terminal")
            yield Static(side("R"), id="right")
        yield Static("B" * COLUMNS, id="bottom")

    def on_mount(self) -> None:
        view = self.query_one(TerminalView)
        view.attach(self.hub.open("one", self.socket))
        view.focus()

    async def on_unmount(self) -> None:
        await self.hub.close()


if __name__ == "__main__":
    mend_parser()
    FramedApp(Path(sys.argv[1])).run()
