"""The two connections of an exchange: the guest's, and one to the service; no wait is endless."""

from __future__ import annotations

import asyncio
import select
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import h11

from vm.egress.broker import heads
from vm.egress.kinds import Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    Event = h11.Response | h11.InformationalResponse | h11.Request | h11.Data | h11.EndOfMessage

CHUNK: Final = 65_536


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a broker. Times in seconds."""

    connections: int = 128
    """Connections of guests at once; others wait, unread, until one ends."""
    head_s: float = 120.0
    """For a request's head, and how long a connection may lie idle."""
    body_s: float = 120.0
    """Without a byte of the guest's, or one that it takes."""
    connect_s: float = 30.0
    answer_s: float = 600.0
    """Without a byte of the service's: models think for minutes."""
    ask_s: float = 600.0
    """How long a request waits for a word about a cap."""


class Pipe:
    """A connection and its parser."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wait_s: float, late: str
    ) -> None:
        self._reader, self._writer = reader, writer
        self._wait_s, self._late = wait_s, late
        self.parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=heads.MAX_HEAD)
        self.bytes_in = self.bytes_out = 0

    async def read(self, wait_s: float | None = None) -> bytes:
        """Read what is there; nothing at the end. Raises Refused when nothing comes in time."""
        try:
            async with asyncio.timeout(wait_s or self._wait_s):
                data = await self._reader.read(CHUNK)
        except TimeoutError:
            raise Refused(self._late) from None
        self.bytes_in += len(data)
        return data

    async def send(self, event: Event) -> None:
        """Write an event and wait until the other side took enough of what is before it."""
        data = self.parser.send(event) or b""
        self.bytes_out += len(data)
        self._writer.write(data)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._writer.drain()
        except TimeoutError:
            raise Refused(self._late) from None

    async def event(self) -> object:
        """Return the parser's next event, read for where needed."""
        while (event := self.parser.next_event()) is h11.NEED_DATA:
            self.parser.receive_data(await self.read())
        return event

    async def close(self) -> None:
        """End the connection, without a long wait for what was written."""
        self._writer.close()
        try:
            async with asyncio.timeout(5):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


class GuestPipe(Pipe):
    """The guest's connection: requests in, answers out."""

    kept: bytes = b""
    """What was read and belongs to the next request."""

    @property
    def line(self) -> bytes:
        """The request's first line, while its body was not read; nothing before all of it came."""
        line, end, _ = self.kept.partition(b"\r\n")
        return line if end else b""

    def gone(self) -> bool:
        """Tell whether the guest's program ended the connection, or its own half of it.

        To end one half and read on is allowed, but no client of a model does it; one that was
        killed looks just so.
        """
        if self._writer.is_closing():
            return True  # it was cut off, and then there is no descriptor to ask any more
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))

    async def request(self, limits: Limits) -> h11.Request | None:
        """Return the next request; None when the guest is done. Raises Refused."""
        while b"\r\n\r\n" not in self.kept:
            if len(self.kept) > heads.MAX_HEAD:
                raise Refused("head-too-large")
            try:
                data = await self.read(limits.head_s)
            except Refused:
                if self.kept:
                    raise
                data = b""  # it asked for nothing, so there is nothing to refuse
            if not data:
                return None
            self.kept += data
        head = self.kept[: self.kept.index(b"\r\n\r\n") + 4]
        if len(head) > heads.MAX_HEAD:
            raise Refused("head-too-large")
        self.parser = h11.Connection(h11.SERVER, max_incomplete_event_size=heads.MAX_HEAD)
        heads.check_raw(head)
        self.parser.receive_data(self.kept)
        request = self.parser.next_event()
        if not isinstance(request, h11.Request):
            raise Refused("not-http")
        return request

    async def body(self, most: int) -> AsyncIterator[bytes]:
        """Return the request's body in pieces, `most` bytes at most. Raises Refused."""
        if self.parser.they_are_waiting_for_100_continue:
            await self.send(h11.InformationalResponse(status_code=100, headers=[]))
        got = 0
        while True:
            try:
                event = await self.event()
            except h11.RemoteProtocolError:
                raise Refused("not-http") from None
            if not isinstance(event, h11.Data):
                break
            got += len(event.data)
            if got > most:
                raise Refused("too-large")
            yield bytes(event.data)
        self.kept = bytes(self.parser.trailing_data[0])
