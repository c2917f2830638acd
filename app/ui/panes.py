"""The terminals of the screen: pane workers, their sandboxes, and the feeds that the views show.

    hub = PaneHub(cache=paths.cache)
    await hub.start()                       # a worker is made ready; raises if no sandbox works
    pane = hub.open(session_id, paths.sockets(session_id) / "pane.sock", columns=80, rows=24)
    TerminalView(pane)                      # a Pane is a widgets.terminal_feed.PaneFeed
    pane.close(); await hub.close()

`open` returns at once; the pane connects, retries and replays by itself and says so through its
state. Each pane has a worker of its own unless `share` says otherwise, so a guest that takes over
or ends its engine reaches no other guest's terminal. One worker more is kept ready, so that opening
a pane and replacing a dead worker take no process start.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.ui.pane import Pane
from app.ui.pane_link import WorkerLink, default_launcher
from app.ui.pane_strips import StripMaker
from vm.terminal.palette import TerminalPalette

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from pathlib import Path

    from vm.terminal.wire import Hello, Message

__all__ = ["Pane", "PaneHub"]


class PaneHub:
    """All panes of one app. Lives on the app's event loop; uses no threads."""

    def __init__(
        self,
        *,
        cache: Path | None = None,
        palette: TerminalPalette | None = None,
        native: bool = False,
        share: int = 1,
        launcher: Sequence[str] | None = None,
    ) -> None:
        """Take settings, start nothing.

        `cache`: where the generated binding is kept. `palette`: colours that panes are drawn in and
        guests are told. `native`: leave the defaults and the sixteen colours to the user's own
        terminal. `share`: panes a worker. `launcher`: the command that the worker's arguments
        follow.
        """
        self._cache = cache / "terminal" if cache else None
        self.palette = palette or TerminalPalette()
        self.maker = StripMaker(self.palette, native=native)
        self._native = native
        self._share = max(1, share)
        self._launcher = list(launcher) if launcher else default_launcher()
        self._links: set[WorkerLink] = set()
        self._spare: WorkerLink | None = None
        self._panes: set[Pane] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.hello: Hello | None = None
        """What the first worker said of its sandbox and engine."""

    async def start(self) -> Hello:
        """Make the first worker ready and return what it says of its sandbox.

        Raises vm.errors.HostLacks when the engine or its sandbox does not work on this host, and
        AppError when the worker does not start at all.
        """
        self.hello = await self._prepare().ready
        return self.hello

    def open(
        self, name: str, socket: Path, *, columns: int = 80, rows: int = 24, active: bool = True
    ) -> Pane:
        """Show the terminal behind `socket`; an inactive pane never resizes the guest."""
        pane = Pane(self, name, socket, (columns, rows), active=active)
        self._panes.add(pane)
        pane.begin()
        return pane

    def set_palette(self, palette: TerminalPalette, *, native: bool = False) -> None:
        """Use other colours from now on (the theme changed)."""
        self.palette, self._native = palette, native
        self.maker = StripMaker(palette, native=native)
        for pane in self._panes:
            pane.recolor()

    async def close(self) -> None:
        """End all panes and workers."""
        self._closed = True
        panes = list(self._panes)
        for pane in panes:
            pane.close()
        await asyncio.gather(*(pane.closed() for pane in panes))
        links, self._spare = list(self._links), None
        self._links.clear()
        await asyncio.gather(*(link.close() for link in links), *self._tasks)

    # -- workers -----------------------------------------------------------------------------

    def _prepare(self) -> WorkerLink:
        """Return the spare worker, starting it if there is none."""
        if self._spare is None or not self._spare.alive:
            self._spare = WorkerLink(self._launcher, self._cache, self._heard, self._died)
            self._links.add(self._spare)
        return self._spare

    async def claim(self, pane: Pane) -> WorkerLink:
        """Return a worker that is ready and has room, with `pane` entered in it."""
        link = next((it for it in self._links if self._has_room(it)), None) or self._prepare()
        if link is self._spare:
            self._spare = None  # taken before the first wait, so that nobody else takes it too
        pane.number = link.number()
        link.panes[pane.number] = pane
        try:
            await link.ready
        except BaseException:
            self.release(pane, link)
            raise
        if not self._closed:
            self._prepare()
        return link

    def renumber(self, pane: Pane, link: WorkerLink) -> None:
        """Give a pane another number in its worker."""
        link.panes.pop(pane.number, None)
        pane.number = link.number()
        link.panes[pane.number] = pane

    def _has_room(self, link: WorkerLink) -> bool:
        return link.alive and link is not self._spare and len(link.panes) < self._share

    def release(self, pane: Pane, link: WorkerLink) -> None:
        """Take a pane out of its worker; a worker without panes ends."""
        link.panes.pop(pane.number, None)
        if not link.panes and link in self._links:
            self._links.discard(link)
            self._background(link.close())

    def forget(self, pane: Pane) -> None:
        """Drop a pane that was closed."""
        self._panes.discard(pane)

    def _heard(self, link: WorkerLink, message: Message) -> None:
        pane = link.panes.get(message.pane)
        if pane is not None:  # else it was closed meanwhile
            pane.heard(message)

    def _died(self, link: WorkerLink) -> None:
        self._links.discard(link)
        self._background(link.close())
        if link is self._spare:
            self._spare = None
        panes, link.panes = list(link.panes.values()), {}
        for pane in panes:
            pane.worker_died(link)

    def _background(self, work: Coroutine[object, object, None]) -> None:
        """Run something to its end beside everything else."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
