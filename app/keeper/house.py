"""A keeper with its two sockets, and the rule when it may go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

import asyncssh

from app.errors import AppError
from app.files import read_regular
from app.folders import delete_session
from app.keeper.attention import is_typed
from app.keeper.control import ControlServer
from app.keeper.outside import Outside
from app.keeper.pane import PaneServer
from app.keeper.places import place_sockets
from app.keeper.sandbox import keeper_of
from app.keeper.service import KeeperService
from app.keeper.terminal_record import TerminalRecord
from app.records import read_session
from vm.machine import console
from vm.steps import reached

if TYPE_CHECKING:
    from pathlib import Path

    from app.keeper.keeper import Keeper
    from app.paths import Paths

log = logging.getLogger(__name__)

LOG_LIMIT = 1 << 20
"""Bytes that `keeper.log` may hold; its end is kept in `keeper.log.old`."""

LOOK_S = 1.0
"""How often an idle keeper asks itself whether it is still needed."""


class House:
    """Everything of one keeper's process."""

    def __init__(self, paths: Paths, folder: Path, outside: Outside | None = None) -> None:
        record = read_session(folder)
        self._paths = paths
        sockets = paths.sockets(record.id)
        self._quit = asyncio.Event()
        self._terminal = TerminalRecord(folder, record.columns, record.rows)
        self._folder, self._sockets = folder, sockets
        self._keeper = keeper_of(record, paths, folder, self._terminal)
        self._keeper.network.broker.outside = outside or Outside()
        service = KeeperService(self._keeper, self.quit)
        self._pane = PaneServer(
            sockets / "pane.sock",
            self._terminal,
            _Keys(self._keeper, self._terminal),
            self._keeper.network.attended,
        )
        self._keeper.pane = self._pane
        key = asyncssh.import_private_key(read_regular(folder / "control_key"))
        self._control = ControlServer(
            sockets / "control.sock", key, service, service, folder / "blobs"
        )

    def quit(self) -> None:
        """End soon; a machine runs on without a keeper until the next one adopts it."""
        self._quit.set()

    async def run(self, *, start: bool, idle_s: float) -> None:
        """Serve until nobody needs this keeper."""
        reached("keeper.up")
        if start:
            self._keeper.begin()
        else:
            await self._keeper.wake()
            if self._keeper.record.sandbox:
                self.quit()  # it belonged to a client of an earlier keeper
        self._pane.start()
        self._control.start()
        try:
            await self._until_idle(idle_s)
        finally:
            # a client that waits for the end of a sandbox sees its folder go, so that goes last
            over = await self._keeper.leave()
            await self._control.close()
            await self._pane.close()
            await self._keeper.close()
            self._terminal.close()
            if over:
                delete_session(self._folder, self._sockets)
            reached("keeper.leaves")
            log.info("the keeper ends")

    async def _until_idle(self, idle_s: float) -> None:
        loop = asyncio.get_running_loop()
        needed = loop.time()
        while loop.time() - needed < idle_s:
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._quit.wait()
                return
            except TimeoutError:
                with contextlib.suppress(OSError):  # the next look may do
                    console.trim(self._folder / "keeper.log", LOG_LIMIT)
                self._see_to_sockets()
                if self._keeper.stays or self._control.clients or self._pane.clients:
                    needed = loop.time()

    def _see_to_sockets(self) -> None:
        """Make our sockets again where somebody removed them (systemd does at the last logout)."""
        if self._control.there and self._pane.there:
            return
        try:
            self._sockets = place_sockets(self._paths, self._folder)
            self._control.move(self._sockets / "control.sock")
            self._pane.move(self._sockets / "pane.sock")
        except (AppError, OSError) as error:
            log.warning("the sockets are gone and cannot be made again: %s", error)
            return
        log.warning("the sockets were removed; they are made again in %s", self._sockets)


class _Keys:
    """Passes keys to whichever terminal the keeper has at the moment."""

    def __init__(self, keeper: Keeper, terminal: TerminalRecord) -> None:
        self._keeper = keeper
        self._terminal = terminal

    @property
    def program(self) -> int:
        """When the agent of the terminal was started, in milliseconds; 0 while there is none."""
        return int(self._keeper.ledger.state.agent_started * 1000)

    async def send(self, data: bytes) -> None:
        """Send input."""
        if self._keeper.agent is not None:
            if is_typed(data):
                self._keeper.typed()
            else:
                self._keeper.agent.redrawn = time.monotonic()  # agents draw anew at a new focus
            await self._keeper.agent.send(data)

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal its new size; without an agent it is what the next one begins with."""
        if self._keeper.agent is not None:
            self._keeper.agent.resize(columns, rows)
        else:
            self._terminal.resize(columns, rows)

    def repaint(self) -> None:
        """Make the program paint again."""
        if self._keeper.agent is not None:
            self._keeper.agent.repaint()
