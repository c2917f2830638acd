"""`pane.sock`: one session's terminal for any number of clients, each at its own pace.

The record on disk is every client's buffer. A client is sent what it has not had yet, from the
ring; nothing is queued for it in memory but what the socket takes.
Frames: see docs/architecture.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from app import pane_frames as frames
from app.errors import AppError
from app.keeper.peers import PeerListener
from app.keeper.threads import end_tasks

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from app.keeper.terminal_record import TerminalRecord

HIGH_WATER: Final = 1 << 20
"""Unacknowledged bytes at which a client counts as behind."""

PATIENCE_S: Final = 10.0
"""A client that acknowledges nothing for so long no longer holds the guest back."""

CHUNK: Final = 32 << 10
"""Bytes of output in one frame."""

MIN_SIZE, MAX_SIZE = (2, 1), (1000, 500)
"""Smallest and largest columns and rows that a client may ask for."""


class Keyboard(Protocol):
    """Where input and sizes go: the attached terminal of the agent."""

    async def send(self, data: bytes) -> None:
        """Send input; waits while the guest has no room."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal its new size."""
        ...

    def repaint(self) -> None:
        """Make the program paint again (size minus one and back)."""
        ...


class _Client:
    """One connection: where it stands in the record."""

    def __init__(self, position: int) -> None:
        self.sent = position
        self.acked = position
        self.heard = time.monotonic()


class PaneServer:
    """Serves the record and its live end; `changed` must be called after each append."""

    def __init__(self, path: Path, record: TerminalRecord, keyboard: Keyboard) -> None:
        self._record = record
        self._keyboard = keyboard
        self._clients: set[_Client] = set()
        self._news = asyncio.Condition()
        self._acked = asyncio.Event()
        self._ended: int | None = None
        self._listener = PeerListener(path, self._serve)

    def start(self) -> None:
        """Begin to accept clients."""
        self._listener.start()

    async def close(self) -> None:
        """End every connection."""
        await self._listener.close()

    @property
    def clients(self) -> int:
        """How many clients watch."""
        return len(self._clients)

    async def changed(self) -> None:
        """Tell every client's sender that the record grew, was resized or ended."""
        async with self._news:
            self._news.notify_all()

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
        client = _Client(self._record.replay_start())
        self._clients.add(client)
        halves = [
            asyncio.create_task(self._send(client, writer)),
            asyncio.create_task(self._receive(client, reader)),
        ]
        try:
            done, _ = await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self._clients.discard(client)
            self._acked.set()
            writer.close()
            await end_tasks(halves)

    async def _send(self, client: _Client, writer: asyncio.StreamWriter) -> None:
        size = self._record.size_at(client.sent)
        writer.write(frames.frame(frames.SIZE_IS, frames.SIZE.pack(*size)))
        live, ended = self._record.end, False
        while True:
            size = await self._send_output(client, writer, size)
            if live >= 0 and client.sent >= live:
                live = -1
                writer.write(frames.frame(frames.LIVE))
                self._keyboard.repaint()
            if self._ended is not None and not ended:
                writer.write(frames.frame(frames.ENDED, frames.STATUS.pack(self._ended)))
            ended = self._ended is not None
            await writer.drain()
            async with self._news:
                await self._news.wait_for(partial(self._news_for, client, size, ended))

    def _news_for(self, client: _Client, size: tuple[int, int], ended: bool) -> bool:
        return (
            client.sent < self._record.end
            or size != self._record.size
            or ended != (self._ended is not None)
        )

    async def _send_output(
        self, client: _Client, writer: asyncio.StreamWriter, size: tuple[int, int]
    ) -> tuple[int, int]:
        while True:
            now = self._record.size_at(client.sent)
            if now != size:
                size = now
                writer.write(frames.frame(frames.SIZE_IS, frames.SIZE.pack(*size)))
            if client.sent >= self._record.end:
                return size
            if client.sent < self._record.start:
                raise AppError("too-slow", "A terminal client fell behind the whole record.")
            limit = min(CHUNK, max(1, self._record.next_resize(client.sent) - client.sent))
            data = self._record.read(client.sent, limit)
            writer.write(frames.frame(frames.OUTPUT, data))
            client.sent += len(data)
            await writer.drain()

    async def _receive(self, client: _Client, reader: asyncio.StreamReader) -> None:
        while True:
            kind, payload = await frames.read_frame(reader)
            client.heard = time.monotonic()
            if kind == frames.INPUT:
                await self._keyboard.send(payload)
            elif kind == frames.RESIZE and len(payload) == frames.SIZE.size:
                self._resize(*frames.SIZE.unpack(payload))
            elif kind == frames.ACK and len(payload) == frames.NUMBER.size:
                (count,) = frames.NUMBER.unpack(payload)
                client.acked = min(client.sent, client.acked + count)
                self._acked.set()
            else:
                raise AppError("protocol", "A terminal client sent a frame that does not exist.")

    def _resize(self, columns: int, rows: int) -> None:
        if MIN_SIZE[0] <= columns <= MAX_SIZE[0] and MIN_SIZE[1] <= rows <= MAX_SIZE[1]:
            self._keyboard.resize(columns, rows)
