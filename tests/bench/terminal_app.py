"""A Textual app over live panes, for benchmarks: `terminal_app.py FOLDER COUNT [eager]`.

It shows FOLDER/0.sock, FOLDER/1.sock … in a grid that is as square as can be, the first one with
the keys. Panes, workers and their sandboxes are the real ones. With `eager` the panes beside it
are drawn as often as the one with the keys, not twelve times a second. F12 ends it.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Grid

from app.ui.app import HOUSEKEEPING_SECONDS
from app.ui.housekeeping import Housekeeping
from app.ui.panes import PaneHub
from tests.doubles.engines import cache_folder
from tests.doubles.worker_link import LAUNCHER
from widgets.terminal import TerminalView
from widgets.terminal_keys import mend_parser

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from app.ui.panes import Pane


class PanesApp(App[None]):
    """Panes side by side, without gaps."""

    ESCAPE_TO_MINIMIZE = False
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [Binding("f12", "quit", priority=True)]

    def __init__(self, folder: Path, count: int, *, eager: bool) -> None:
        super().__init__()
        self.hub = PaneHub(cache=cache_folder(), launcher=LAUNCHER)
        self._folder, self._count, self._eager = folder, count, eager
        self._housekeeping = Housekeeping()

    def compose(self) -> ComposeResult:
        with Grid() as grid:
            grid.styles.grid_size_columns = math.ceil(math.sqrt(self._count))
            for _ in range(self._count):
                yield TerminalView()

    async def on_mount(self) -> None:
        await self.hub.start()
        views = list(self.query(TerminalView))
        panes = [self.hub.open(str(at), self._folder / f"{at}.sock") for at in range(len(views))]
        for view, pane in zip(views, panes, strict=True):
            view.attach(pane)
        views[0].focus()
        self.set_interval(HOUSEKEEPING_SECONDS, self._housekeeping.tick)
        self.call_after_refresh(self._housekeeping.begin)
        if self._eager:
            self.call_after_refresh(draw_often, panes)

    async def on_unmount(self) -> None:
        await self.hub.close()


def draw_often(panes: list[Pane]) -> None:
    """Draw all as often as the one with the keys."""
    for pane in panes:
        pane.set_rate("focused")


if __name__ == "__main__":
    mend_parser()
    PanesApp(Path(sys.argv[1]), int(sys.argv[2]), eager="eager" in sys.argv[3:]).run()
