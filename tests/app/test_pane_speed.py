"""A gate on what an update of a pane costs the screen's process, in blank updates of the same size.

Both go through Textual's compositor; the pane's takes a frame from the wire, makes strips of it and
paints the rows. CPU time of this process only, so other load does not move the ratio.
"""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING

import pytest
from textual.app import App
from textual.strip import Strip
from textual.widget import Widget

from app.ui.pane_strips import StripMaker
from app.ui.panes import PaneHub
from tests.bench.terminal_inputs import repaints
from tests.doubles.engines import engine
from vm.terminal.palette import TerminalPalette
from vm.terminal.wire import Message, Up
from vm.terminal.wire_frame import pack_frame, unpack_frame
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from textual.app import ComposeResult
    from textual.geometry import Region

    from widgets.terminal_feed import PaneFeed

SIZE = 120, 40
STEPS = 24
PAINT_S = 10


class Blank(Widget):
    """Paints the same empty line everywhere."""

    DEFAULT_CSS = "Blank { width: 1fr; height: 1fr; }"
    line = Strip.blank(SIZE[0])

    def __init__(self, painted: asyncio.Event) -> None:
        super().__init__()
        self._painted_now = painted

    def render_lines(self, crop: Region) -> list[Strip]:
        self._painted_now.set()
        return [self.line] * crop.height


class Watched(TerminalView):
    """Says when it was painted."""

    def __init__(self, feed: PaneFeed, painted: asyncio.Event) -> None:
        super().__init__(feed)
        self._painted_now = painted

    def render_lines(self, crop: Region) -> list[Strip]:
        self._painted_now.set()
        return super().render_lines(crop)


class OneWidget(App[None]):
    """One widget that fills the screen."""

    def __init__(self, widget: Widget, painted: asyncio.Event) -> None:
        super().__init__()
        self.widget, self.painted = widget, painted

    def compose(self) -> ComposeResult:
        yield self.widget

    async def cost(self, changes: list[Callable[[], object]]) -> float:
        """CPU seconds of the cheapest of some updates, from the change to its painting."""
        found: list[float] = []
        for change in changes:
            self.painted.clear()
            begin = time.process_time()
            change()
            async with asyncio.timeout(PAINT_S):
                await self.painted.wait()
            await asyncio.sleep(0)  # what the update still does after the last line was made
            found.append(time.process_time() - begin)
        return sorted(found)[len(found) // 4]


async def blank_cost() -> float:
    painted = asyncio.Event()
    app = OneWidget(Blank(painted), painted)
    async with app.run_test(size=SIZE):
        return await app.cost([app.widget.refresh] * STEPS)


def frames(work: str) -> list[Message]:
    terminal = engine(*SIZE)
    found: list[Message] = []
    for number, step in enumerate(repaints(work, *SIZE, STEPS)):
        terminal.feed(step)
        found.append(Message(0, Up.FRAME, pack_frame(number, terminal.frame())))
    terminal.close()
    return found


def made_and_read(work: str) -> tuple[float, float]:
    """CPU seconds of making frames of a page with its usual styles, and of reading them."""
    terminal, maker = engine(*SIZE), StripMaker(TerminalPalette())
    making = reading = 0.0
    for number, step in enumerate(repaints(work, *SIZE, STEPS)):
        terminal.feed(step)
        begin = time.process_time()
        payload = pack_frame(number, terminal.frame())
        half = time.process_time()
        _, frame = unpack_frame(payload)
        for row in frame.rows.values():
            maker.strip(row, frame.columns)
        if number:  # the first page has to make its styles
            making += half - begin
            reading += time.process_time() - half
    terminal.close()
    return making, reading


@pytest.mark.parametrize("work", ["full_screen", "plain_scroll"])
def test_reading_a_frame_costs_no_more_than_making_it(work: str) -> None:
    found = [made_and_read(work) for _ in range(3)]
    making, reading = (min(values) for values in zip(*found, strict=True))
    assert reading <= making


async def pane_cost(work: str, socket: Path) -> float:
    hub = PaneHub()
    pane = hub.open("one", socket, columns=SIZE[0], rows=SIZE[1])
    painted = asyncio.Event()
    app = OneWidget(Watched(pane, painted), painted)
    try:
        async with app.run_test(size=SIZE):
            return await app.cost([functools.partial(pane.heard, it) for it in frames(work)])
    finally:
        pane.close()
        await pane.closed()
        await hub.close()


@pytest.mark.parametrize(("work", "times"), [("full_screen", 5), ("plain_scroll", 4), ("agent", 3)])
async def test_an_update_costs_a_few_blank_ones(tmp_path: Path, work: str, times: int) -> None:
    blank = await blank_cost()
    pane = await pane_cost(work, tmp_path / "s")
    assert pane <= times * blank
