"""`pane.sock`: one session's terminal for any number of clients, each at its own pace.

The record on disk is every client's buffer. A client is sent what it has not had yet, from the
ring; nothing is queued for it in memory but what the socket takes. What one client may leave behind
here is a few frames of input. Who holds the terminal: `pane_holder`.
Frames: see docs/architecture.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final

from app import pane_frames as frames
from app.errors import AppError
from app.keeper.pane_client import Client, Count, Keyboard
from app.keeper.pane_holder import Holding
from app.keeper.peers import PeerListener
from app.keeper.threads import end_tasks

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from app.keeper.terminal_record import TerminalRecord

__all__ = ["Keyboard", "PaneServer"]

HIGH_WATER: Final = 1 << 20
"""Unacknowledged bytes at which a client counts as behind."""

PATIENCE_S: Final = 10.0
"""A client that acknowledges nothing for so long no longer holds the guest back."""

CHUNK: Final = 32 << 10
"""Bytes of output in one frame."""

MIN_SIZE, MAX_SIZE = (2, 1), (1000, 500)
"""Smallest and largest columns and rows that a client may ask for."""

MAX_COUNTS: Final = 256
"""Clients without a connection whose input is remembered to have been passed on."""

RESIZE_S: Final = 0.05
"""Seconds between two changes of the guest's size; of those that come faster the last one counts.
Each of them makes the program paint and is recorded on disk."""


class PaneServer:
    """Serves the record and its live end; `changed` must be called after each append.

    `attended` hears when somebody holds the terminal, and when nobody does any more.
    """

    def __init__(
        self,
        path: Path,
        record: TerminalRecord,
        keyboard: Keyboard,
        attended: Callable[[bool], object] | None = None,
    ) -> None:
        self._attended = attended
        self._is_attended = False
        self._record = record
        self._keyboard = keyboard
        self._clients: set[Client] = set()
        self._holding: Holding[Client] = Holding()
        self._counts: dict[int, Count] = {}
        self._acked = asyncio.Event()
        self._ended: int | None = None
        self._resized = 0.0
        self._resizing: asyncio.TimerHandle | None = None
        self._listener = PeerListener(path, self._serve)

    def start(self) -> None:
        """Begin to accept clients."""
        self._listener.start()

    @property
    def there(self) -> bool:
        """Whether clients can still find the socket."""
        return self._listener.there

    def move(self, path: Path) -> None:
        """Accept clients at another path, or at the same one again."""
        self._listener.move(path)

    async def close(self) -> None:
        """End every connection."""
        if self._resizing is not None:
            self._resizing.cancel()
        await self._listener.close()
        sending = (count.sending for count in self._counts.values())
        await end_tasks([task for task in sending if task is not None])

    @property
    def clients(self) -> int:
        """How many clients watch."""
        return len(self._clients)

    async def changed(self) -> None:
        """Tell every client's sender that the record grew, was resized or ended."""
        for client in self._clients:
            client.news.set()

    async def ended(self, status: int | None) -> None:
        """Say that the terminal ended with `status`, or (None) that a new one begins."""
        self._ended = status
        await self.changed()

    async def room(self) -> None:
        """Wait while every client that still answers is more than HIGH_WATER behind."""
        while self._held_back():
            self._acked.clear()
            # wakes by itself as well, so that a client that has gone silent cannot hold the guest
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._acked.wait()

    def _held_back(self) -> bool:
        now = time.monotonic()
        awake = [client for client in self._clients if now - client.heard < PATIENCE_S]
        behind = [client for client in awake if self._record.end - client.acked > HIGH_WATER]
        return bool(awake) and len(behind) == len(awake)

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        place = self._record.replay()
        client = Client(place.offset, reader, writer)
        client.prelude = place.prelude
        self._clients.add(client)
        self._holding.join(client)
        self._tell_holding()
        halves = [
            asyncio.create_task(self._send(client)),
            asyncio.create_task(self._receive(client)),
            asyncio.create_task(client.pass_on(self._keyboard, self._holds)),
        ]
        try:
            done, _ = await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._gone(client)
            self._holding.leave(client)
            self._acked.set()
            self._tell_holding()
            writer.close()
            await end_tasks(halves)

    # -- to a client -------------------------------------------------------------------------

    async def _send(self, client: Client) -> None:
        size = self._record.size_at(client.sent)
        client.say_program(self._keyboard.program)
        client.write(frames.SIZE_IS, frames.SIZE.pack(*size))
        if client.prelude:
            client.write(frames.OUTPUT, client.prelude)
        live, ended = self._record.end, False
        while True:
            client.news.clear()
            size = await self._send_output(client, size)
            if live >= 0 and client.sent >= live:
                live = -1
                client.write(frames.LIVE)
                self._keyboard.repaint()
            if self._ended is not None and not ended:
                client.write(frames.ENDED, frames.STATUS.pack(self._ended))
            ended = self._ended is not None
            await client.writer.drain()
            await client.news.wait()

    async def _send_output(self, client: Client, size: tuple[int, int]) -> tuple[int, int]:
        while True:
            client.say_program(self._keyboard.program)
            client.say_rest()
            now = self._record.size_at(client.sent)
            if now != size:
                size = now
                client.write(frames.SIZE_IS, frames.SIZE.pack(*size))
            if client.sent >= self._record.end:
                return size
            if client.sent < self._record.start:
                raise AppError("too-slow", "A terminal client fell behind the whole record.")
            limit = min(CHUNK, max(1, self._record.next_resize(client.sent) - client.sent))
            data = self._record.read(client.sent, limit)
            client.write(frames.OUTPUT, data)
            client.sent += len(data)
            await client.writer.drain()

    # -- from a client -----------------------------------------------------------------------

    async def _receive(self, client: Client) -> None:
        while True:
            kind, payload = await frames.read_frame(client.reader)
            client.heard = time.monotonic()
            if kind in (frames.INPUT, frames.COUNTED):
                await client.take(payload, counted=kind == frames.COUNTED)
            elif kind == frames.NAME and len(payload) == frames.NAMED.size:
                self._name(client, *frames.NAMED.unpack(payload))
            elif kind == frames.RESIZE and len(payload) == frames.SIZE.size:
                self._wish(client, *frames.SIZE.unpack(payload))
            elif kind == frames.ACK and len(payload) == frames.NUMBER.size:
                (count,) = frames.NUMBER.unpack(payload)
                client.acked = min(client.sent, client.acked + count)
                self._acked.set()
            elif not (kind == frames.HOLD and len(payload) == 1 and self._hold(client, payload[0])):
                raise AppError("protocol", "A terminal client sent a frame that does not exist.")

    def _name(self, client: Client, name: int, done: int) -> None:
        """Count a client's input over all its connections, so that none of it is passed on twice.

        It sends again what it does not know to have been passed on; what waits on a connection
        that it gave up is dropped, what is being passed on counts as done.
        """
        count = self._counts.pop(name, None) or Count(done, done)
        for other in self._clients:
            if other.count is count and other is not client:
                other.forget_input()
                other.count = None
                if self._holds(other):  # else what is sent again would be a watcher's, and lost
                    self._hold(client, frames.TAKE)
        count = Count(count.begun, count.begun, count.sending)
        self._counts[name] = count
        client.named(count)
        self._drop_counts()

    def _drop_counts(self) -> None:
        """Forget the clients that have been gone for longest; never one that is connected."""
        connected = {id(client.count) for client in self._clients}
        gone = [name for name, count in self._counts.items() if id(count) not in connected]
        for name in gone[: max(0, len(gone) - MAX_COUNTS)]:
            del self._counts[name]

    def _gone(self, client: Client) -> None:
        """Take a client out; of all that are gone its input is remembered longest."""
        self._clients.discard(client)
        for name, count in list(self._counts.items()):
            if count is client.count:
                self._counts[name] = self._counts.pop(name)

    def _holds(self, client: Client) -> bool:
        return self._holding.holder is client

    def _hold(self, client: Client, what: int) -> bool:
        known = self._holding.ask(client, what)
        client.tell_holding = True
        self._tell_holding()
        return known

    def _tell_holding(self) -> None:
        """Let every client know how it stands, and give the terminal its holder's size."""
        for client in self._clients:
            client.held_by(self._holds(client), self._holding.clients)
        self._fit()
        there = self._holding.holder is not None
        if self._attended is not None and there != self._is_attended:
            self._is_attended = there
            self._attended(there)

    def _wish(self, client: Client, columns: int, rows: int) -> None:
        if MIN_SIZE[0] <= columns <= MAX_SIZE[0] and MIN_SIZE[1] <= rows <= MAX_SIZE[1]:
            client.size = columns, rows
            if self._holds(client):
                self._fit()

    def _fit(self) -> None:
        """Give the terminal its holder's size, now or a moment after the last change."""
        if self._resizing is not None:
            return
        wait = self._resized + RESIZE_S - time.monotonic()
        if wait > 0:
            self._resizing = asyncio.get_running_loop().call_later(wait, self._resize)
        else:
            self._resize()

    def _resize(self) -> None:
        self._resizing = None
        holder = self._holding.holder
        if holder is None or holder.size is None or holder.size == self._record.size:
            return
        self._resized = time.monotonic()
        self._keyboard.resize(*holder.size)
