"""One pane on the screen's side: the feed of a view, joined to a worker and a keeper's socket.

A pane is made in layers, each in a module of its own: what it shows (`pane_screen`), what the user
types (`pane_user`), what the user does with the page (`pane_actions`), what the worker says
(`pane_talk`), and here how worker and keeper are found, again and again.
"""

from __future__ import annotations

import asyncio
import collections
import os
import socket
import struct
import time
from typing import TYPE_CHECKING

from app.errors import AppError
from app.ui.pane_talk import PaneTalk
from vm.errors import HostLacks
from vm.terminal import wire
from vm.terminal.wire import Down

if TYPE_CHECKING:
    from pathlib import Path

    from app.ui.pane_link import WorkerLink
    from app.ui.panes import PaneHub

CONNECT_S = 2.0
RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between tries to reach the keeper; the last one repeats."""

PATIENT_TRIES = 3
"""Tries before a pane that was never live says that it waits: a keeper may be just starting."""

SHORT_S = 2.0
"""A connection that held no longer than that is followed by a pause, or one could spin."""

CRASHES, CRASH_SPAN_S = 3, 20.0
"""So many ends of the worker within so many seconds mean that this terminal's bytes cause them."""

STARTS = 3
"""Workers that did not become ready, one after the other, after which the next will not either."""

PEER = struct.Struct("3i")


class Pane(PaneTalk):
    """One terminal of one session; implements `widgets.terminal_feed.PaneFeed`, and this besides.

    `name` is what `PaneHub.open` was given.
    """

    def __init__(
        self, hub: PaneHub, name: str, path: Path, size: tuple[int, int], *, active: bool
    ) -> None:
        super().__init__(hub, size, active=active)
        self.name, self._path = name, path
        self._short_turns = 0
        self._failed_starts = 0
        self._crashes: collections.deque[float] = collections.deque(maxlen=CRASHES)
        self._task: asyncio.Task[None] | None = None

    @property
    def worker_pid(self) -> int | None:
        """The process that runs this pane's engine, for diagnosis."""
        return self._link.pid if self._link else None

    def begin(self) -> None:
        """Start to connect."""
        self._task = asyncio.create_task(self._run(), name=f"pane {self.name}")

    def close(self) -> None:
        """End this client of the terminal; the session goes on."""
        if self._task is not None:
            self._task.cancel()
        self.listener = None
        if self._link is not None:
            self._say(Down.CLOSE)
            self._hub.release(self, self._link)
            self._link = None
        self._settle(None)
        self._fail_copies()
        self._stop_keeping()
        for timer in (self._resizing, self._watchdog):
            if timer is not None:
                timer.cancel()
        self._hub.forget(self)

    async def closed(self) -> None:
        """Wait until nothing of the pane runs."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def recolor(self) -> None:
        """Use the hub's colours from now on."""
        self._say(Down.PALETTE, self._hub.palette.pack())

    # -- worker and keeper -------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            descriptor = await self._connect()
            self._over.clear()
            try:
                link = self._link or await self._hub.claim(self)
            except HostLacks as error:
                os.close(descriptor)
                hint = error.hint.replace("SESSION", self.name)
                self._enter("broken", None, f"{error.message} {hint}".strip())
                return
            except AppError as error:
                os.close(descriptor)
                if self._did_not_start(error):
                    return
                continue
            except BaseException:
                os.close(descriptor)
                raise
            self._failed_starts = 0
            self._open(link, descriptor)
            await self._turn()
            if self.state == "broken":
                return

    async def _turn(self) -> None:
        """Wait until worker or keeper is gone; pause before the next try if it was soon."""
        begin = time.monotonic()
        await self._over.wait()
        short = time.monotonic() - begin < SHORT_S
        self._short_turns = self._short_turns + 1 if short else 0
        if short and self.state == "lost":
            await asyncio.sleep(RETRY_S[min(self._short_turns, len(RETRY_S)) - 1])

    async def _connect(self) -> int:
        """Return a connection to the keeper, trying until there is one."""
        tries = 0
        while True:
            try:
                return await self._connect_once()
            except (OSError, TimeoutError) as error:
                why = os.strerror(error.errno) if error.errno else "no answer"
                if tries >= PATIENT_TRIES or self.state == "live":
                    self._enter("lost", None, f"The session's keeper is not there: {why}.")
            await asyncio.sleep(RETRY_S[min(tries, len(RETRY_S) - 1)])
            tries += 1

    async def _connect_once(self) -> int:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(loop.sock_connect(connection, str(self._path)), CONNECT_S)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
            if PEER.unpack(credentials)[1] != os.geteuid():
                raise PermissionError(1, "the socket belongs to somebody else")
        except BaseException:
            connection.close()
            raise
        return connection.detach()

    def _open(self, link: WorkerLink, descriptor: int) -> None:
        if self._link is link:
            # under another number, so that nothing said of the old connection counts for this one
            self._say(Down.CLOSE)
            self._hub.renumber(self, link)
        self._link = link
        self._settle(None)
        self._queue.again()
        self._told_size = self._wish
        flags = wire.NAMED | wire.ACTIVE * self._active | wire.CAREFUL * bool(self._crashes)
        flags |= wire.HELD * self._held
        head = wire.OPEN.pack(*self._wish, self._rate, flags)
        payload = head + self._hub.palette.pack()
        link.send(wire.message(Down.OPEN, self.number, payload), descriptor)
        name = (self._name + self._queue.epoch) & 0xFFFFFFFFFFFFFFFF
        self._say(Down.NAME, wire.NAME.pack(name, self._queue.passed_on))

    def worker_died(self, link: WorkerLink) -> None:
        """Be told that the worker has ended; a new one takes over."""
        if link is not self._link:
            return
        self._link = None
        self._settle(None)
        self._fail_copies()
        self._queue.again()
        if self._watchdog is not None:
            self._watchdog.cancel()
            self._watchdog = None
        self._crashed()
        self._over.set()

    def _crashed(self) -> None:
        """Count an end of the worker; after too many of them this pane is given up."""
        now = time.monotonic()
        self._crashes.append(now)
        if len(self._crashes) == CRASHES and now - self._crashes[0] < CRASH_SPAN_S:
            self._enter("broken", None, "This terminal's output ends its engine each time.")
        else:
            self._enter("restarting", None, "The terminal engine ended and starts again.")

    def _did_not_start(self, error: AppError) -> bool:
        """Count a worker that did not become ready; True when this pane is given up.

        It never saw a byte of this terminal, so it is no crash of the terminal's making: a busy
        machine starts slowly.
        """
        self._failed_starts += 1
        if self._failed_starts >= STARTS:
            self._enter("broken", None, f"{error.message} {error.hint}".strip())
            return True
        self._enter("restarting", None, error.message)
        return False
