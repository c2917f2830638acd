"""A client of `pane.sock` for programs that pass bytes on: `attach` and SSH terminals."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self

from app import pane_frames as frames
from app.errors import AppError
from app.paths import check_sockets_private

if TYPE_CHECKING:
    from pathlib import Path

CONNECT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class PaneEvent:
    """One thing that the terminal did.

    `data` for output, `status` for its end; for `holder` whether this client `holds` the terminal
    and how many `clients` there are.
    """

    kind: Literal["output", "size", "live", "ended", "holder"]
    data: bytes = b""
    status: int = 0
    size: tuple[int, int] = (0, 0)
    holds: bool = False
    clients: int = 0


class PaneClient:
    """One connection to a session's terminal; output is acknowledged when it is taken."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Connect. Raises AppError `keeper-lost` when nobody serves the terminal.

        AppError `unsafe-folder` when it may be somebody else who would be sent the keystrokes.
        """
        try:
            check_sockets_private(path.parent)
            streams = await asyncio.wait_for(asyncio.open_unix_connection(path), CONNECT_S)
        except (OSError, TimeoutError) as error:
            raise AppError(
                "keeper-lost", "The session's terminal is not served.", "Try: cloche ps"
            ) from error
        return cls(*streams)

    async def next(self) -> PaneEvent | None:
        """Return what happens next; None when the keeper closed the connection."""
        while True:
            try:
                kind, payload = await frames.read_frame(self._reader)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            if kind == frames.OUTPUT:
                self._send(frames.ACK, frames.NUMBER.pack(len(payload)))
            if kind not in (frames.TAKEN, frames.PROGRAM_IS):  # of use to who types blind
                return _event(kind, payload)

    def take(self) -> None:
        """Take the terminal: from now on this client's size and input count."""
        self._send(frames.HOLD, bytes([frames.TAKE]))

    async def send(self, data: bytes) -> None:
        """Send input."""
        for at in range(0, len(data), frames.MAX_PAYLOAD):
            self._send(frames.INPUT, data[at : at + frames.MAX_PAYLOAD])
        await self._writer.drain()

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal this client's size."""
        self._send(frames.RESIZE, frames.SIZE.pack(min(columns, 0xFFFF), min(rows, 0xFFFF)))

    def _send(self, kind: int, payload: bytes) -> None:
        self._writer.write(frames.frame(kind, payload))

    async def close(self) -> None:
        """End the connection."""
        self._writer.close()


def _event(kind: int, payload: bytes) -> PaneEvent:
    if kind == frames.OUTPUT:
        return PaneEvent("output", data=payload)
    if kind == frames.SIZE_IS and len(payload) == frames.SIZE.size:
        columns, rows = frames.SIZE.unpack(payload)
        return PaneEvent("size", size=(columns, rows))
    if kind == frames.LIVE:
        return PaneEvent("live")
    if kind == frames.ENDED and len(payload) == frames.STATUS.size:
        return PaneEvent("ended", status=frames.STATUS.unpack(payload)[0])
    if kind == frames.HOLD and len(payload) == frames.HOLDER.size:
        holds, clients = frames.HOLDER.unpack(payload)
        return PaneEvent("holder", holds=bool(holds), clients=clients)
    raise AppError("protocol", "The keeper sent a terminal frame that does not exist.")
