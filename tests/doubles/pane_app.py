"""A Textual app with one live terminal: `pane_app.py SOCKET`. F12 ends it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from textual.app import App
from textual.binding import Binding, BindingType

from app.ui.panes import PaneHub
from tests.doubles.engines import cache_folder
from tests.doubles.worker_link import LAUNCHER
from widgets.terminal import TerminalView
from widgets.terminal_keys import OuterDriver, mend_parser

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from app.ui.pane import Pane


class PaneApp(App[None]):
    """One terminal that fills the screen."""

    ESCAPE_TO_MINIMIZE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f12", "quit")]

    def __init__(self, socket: Path) -> None:
        super().__init__()
        self.socket = socket
        self.hub = PaneHub(cache=cache_folder(), launcher=LAUNCHER)
        self.pane: Pane | None = None
        self.prefixed: list[str] = []

    def compose(self) -> ComposeResult:
        yield TerminalView(id="terminal")

    @property
    def view(self) -> TerminalView:
        return self.query_one("#terminal", TerminalView)

    def on_mount(self) -> None:
        self.pane = self.hub.open("one", self.socket)
        self.view.attach(self.pane)
        self.view.focus()

    async def on_unmount(self) -> None:
        await self.hub.close()

    def on_terminal_view_prefix_command(self, message: TerminalView.PrefixCommand) -> None:
        self.prefixed.append(message.key)


if __name__ == "__main__":
    mend_parser()
    app = PaneApp(Path(sys.argv[1]))
    app.driver_class = OuterDriver
    app.run()
