"""Watches a pane for a test: paints at once, and waits for what it is to see."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from app.ui.panes import PaneHub
from tests.doubles.engines import cache_folder
from tests.doubles.worker_link import LAUNCHER

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection

    from app.ui.pane import Pane
    from tests.doubles.pane_server import PaneServer
    from widgets.terminal_feed import FeedState

DEADLINE = 60.0


class Watcher:
    """Listens to a pane, paints at once, and lets a test wait for what it sees."""

    def __init__(self, pane: Pane) -> None:
        self.pane = pane
        self.states: list[FeedState] = []
        self.clipboard: list[str] = []
        self.progress: tuple[int, int] | None = None
        self.mirrored: list[bool] = []
        self.refused: list[str] = []
        self.bells = self.frames = 0
        self.paints = True
        self._news = asyncio.Event()
        pane.listen(self)

    def feed_changed(self, rows: Collection[int]) -> None:
        self.frames += 1
        if self.paints:
            self.pane.painted()
        self._news.set()

    def feed_resized(self) -> None:
        self.feed_changed(())

    def feed_state(self, state: FeedState, status: int | None, message: str) -> None:
        self.states.append(state)
        self._news.set()

    def feed_title(self, title: str) -> None:
        self._news.set()

    def feed_bell(self) -> None:
        self.bells += 1
        self._news.set()

    def feed_clipboard(self, text: str) -> None:
        self.clipboard.append(text)
        self._news.set()

    def feed_notified(self, title: str, body: str) -> None:
        self._news.set()

    def feed_progress(self, progress: tuple[int, int] | None) -> None:
        self.progress = progress
        self._news.set()

    def feed_mirrored(self, mirrored: bool) -> None:
        self.mirrored.append(mirrored)
        self._news.set()

    def feed_refused(self, message: str) -> None:
        self.refused.append(message)
        self._news.set()

    def lines(self) -> list[str]:
        strips = [self.pane.strip(y) for y in range(self.pane.rows)]
        return [strip.text.rstrip() if strip else "" for strip in strips]

    async def next(self, seconds: float = DEADLINE) -> None:
        """Wait until the pane says anything."""
        self._news.clear()
        async with asyncio.timeout(seconds):
            await self._news.wait()

    async def until(self, condition: Callable[[], bool], seconds: float = DEADLINE) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def shows(self, text: str, seconds: float = DEADLINE) -> None:
        await self.until(lambda: any(text in line for line in self.lines()), seconds)

    async def enters(self, state: FeedState, seconds: float = DEADLINE) -> None:
        await self.until(lambda: self.pane.state == state, seconds)


async def spare_of(hub: PaneHub) -> int:
    """Wait for the worker that is kept ready for the next pane; return its process id."""
    spare = hub._spare  # pyright: ignore[reportPrivateUsage]
    assert spare is not None
    async with asyncio.timeout(DEADLINE):
        await spare.ready
    return spare.pid


@asynccontextmanager
async def hub_of(**options: object) -> AsyncGenerator[PaneHub]:
    hub = PaneHub(cache=cache_folder(), launcher=LAUNCHER, **options)  # type: ignore[arg-type]  # options of any type
    try:
        yield hub
    finally:
        await hub.close()


@asynccontextmanager
async def live_pane(
    server: PaneServer, *, spare: bool = False
) -> AsyncGenerator[tuple[Pane, Watcher]]:
    """Open a session's pane and wait until it is live; `spare`: with a worker that is ready."""
    async with server, hub_of() as hub:
        if spare:
            await hub.start()
        pane = hub.open("one", server.path)
        watcher = Watcher(pane)
        await watcher.enters("live")
        yield pane, watcher
