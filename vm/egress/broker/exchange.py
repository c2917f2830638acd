"""One request and its answer: checked, sent on with the credential, passed back without it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from vm.egress.broker import git, heads, scrub, target
from vm.egress.broker.pipes import CHUNK, GuestPipe, Limits, Pipe
from vm.egress.broker.tally import Tally
from vm.egress.kinds import DialRefused, Refused

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from vm.egress.broker.services import Held
    from vm.egress.broker.usage import Usage

    Connect = Callable[[str, int], Awaitable[socket.socket]]
    """How the host reaches a service: name and port to a connected socket. Raises DialRefused."""


@dataclass(slots=True)
class Record:
    """What happened, for the log: no header, no query, no body."""

    service: str
    method: str = ""
    path: str = ""
    status: int = 0
    """What the guest was answered; 0: it got no answer."""
    code: str = "answered"
    up: int = 0
    down: int = 0
    seconds: float = 0.0
    scrubbed: int = 0
    """How often the service's answer held the credential."""


@dataclass(frozen=True, slots=True)
class Around:
    """What an exchange gets from its broker."""

    connect: Connect
    trust: ssl.SSLContext
    limits: Limits
    may_meter: Callable[[Callable[[], bool]], Awaitable[None]]
    """Waits for a word where a cap is reached, as long as who asked is there; raises Refused."""
    used: Callable[[Usage], None]


class Exchange:
    """One request of a connection."""

    def __init__(self, held: Held, guest: GuestPipe, around: Around) -> None:
        self.held, self._guest, self._around = held, guest, around
        self.record = Record(held.service.name)
        self.begun = False
        """An answer was begun: nothing else can be said to the guest any more."""
        self._tally: Tally | None = None
        """Of a request that a cap counts."""
        self._first: list[bytes] = []

    async def run(self, request: h11.Request) -> bool:
        """Serve it; True when the connection may have another. Raises Refused, DialRefused."""
        began = time.monotonic()
        try:
            headers = [(bytes(name), bytes(value)) for name, value in request.headers]
            await self._check(request, headers)
            async with self._upstream() as service:
                return await self._both(service, request, headers)
        except h11.RemoteProtocolError:
            raise Refused("upstream-protocol") from None
        finally:
            self.record.seconds = time.monotonic() - began

    async def _check(self, request: h11.Request, headers: list[tuple[bytes, bytes]]) -> None:
        """Refuse before anything is asked of the service."""
        method, service = request.method.decode("ascii"), self.held.service
        heads.check_request(self.held, headers)
        asked = target.parse(bytes(request.target))
        self.record.method, self.record.path = method, asked.path
        length = next((value for name, value in headers if name == b"content-length"), b"0")
        if int(length) > service.max_request:
            raise Refused("too-large")
        self._body = self._guest.body(service.max_request)
        if service.git:
            await self._check_git(method, asked, headers)
        elif not target.passes(service.allow, method, asked.path):
            raise Refused("not-allowed")
        if target.passes(service.metered, method, asked.path):
            await self._around.may_meter(self._guest.gone)
            self._tally = Tally(service.meter)

    async def _check_git(
        self, method: str, asked: target.Target, headers: list[tuple[bytes, bytes]]
    ) -> None:
        push = self.held.service.push
        action, repository = git.action(method, asked, push)
        if action != "push":
            return
        if any(name == b"content-encoding" for name, _ in headers):
            raise Refused("git-framing")
        commands = git.Commands(repository, push)
        async for piece in self._body:
            commands.feed(piece)
            self._first.append(piece)
            if commands.whole:
                return
        raise Refused("git-framing")

    @contextlib.asynccontextmanager
    async def _upstream(self) -> AsyncGenerator[Pipe]:
        service, limits = self.held.service, self._around.limits
        try:
            async with asyncio.timeout(limits.connect_s):
                sock = await self._around.connect(service.host, service.port)
                reader, writer = await asyncio.open_connection(
                    sock=sock, ssl=self._around.trust, server_hostname=service.host, limit=CHUNK
                )
        except TimeoutError:
            raise DialRefused("timeout", "The service did not answer in time.") from None
        except ssl.SSLError:
            raise Refused("upstream-tls") from None
        except OSError:
            raise Refused("upstream-lost") from None
        pipe = Pipe(reader, writer, limits.answer_s, "timeout")
        try:
            yield pipe
        except OSError as error:
            raise Refused("upstream-lost") from error
        finally:
            self.record.up, self.record.down = pipe.bytes_out, pipe.bytes_in
            await pipe.close()

    async def _both(
        self, service: Pipe, request: h11.Request, headers: list[tuple[bytes, bytes]]
    ) -> bool:
        """Send and receive at once: a service may answer before it read everything."""
        sent = h11.Request(
            method=request.method,
            target=request.target,
            headers=heads.upstream(self.held, headers),
        )
        await service.send(sent)
        upload = asyncio.create_task(self._upload(service))
        head = asyncio.create_task(self._head(service))
        try:
            await asyncio.wait({upload, head}, return_when=asyncio.FIRST_COMPLETED)
            if upload.done():
                await upload
            await self._answer(service, await head)
            return upload.done() and upload.exception() is None
        finally:
            for task in (upload, head):
                task.cancel()
            await asyncio.gather(upload, head, return_exceptions=True)

    async def _upload(self, service: Pipe) -> None:
        for piece in self._first:
            await service.send(h11.Data(data=piece))
        async for piece in self._body:
            if self._tally is not None:
                self._tally.sent(piece)
            await service.send(h11.Data(data=piece))
        await service.send(h11.EndOfMessage())

    async def _head(self, service: Pipe) -> h11.Response:
        while True:
            event = await service.event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise Refused("upstream-protocol")

    async def _answer(self, service: Pipe, response: h11.Response) -> None:
        scrubber = scrub.Scrubber(self._patterns())
        raw = [(bytes(name), bytes(value)) for name, value in response.headers]
        passed = heads.answer(raw, scrubber)
        kinds = [value.lower() for name, value in raw if name == b"content-type"]
        events = any(kind.startswith(b"text/event-stream") for kind in kinds)
        tally = self._tally if response.status_code < 300 else None
        if tally is not None:
            tally.begins(events)
        self.begun, self.record.status = True, response.status_code
        try:
            await self._guest.send(h11.Response(status_code=response.status_code, headers=passed))
            await self._pieces(service, scrubber, tally)
        finally:
            self.record.scrubbed = scrubber.found
            if tally is not None:
                self._around.used(tally.result())

    async def _pieces(self, service: Pipe, scrubber: scrub.Scrubber, tally: Tally | None) -> None:
        while isinstance(event := await service.event(), h11.Data):
            if tally is not None:
                tally.received(bytes(event.data))
            if piece := scrubber.feed(bytes(event.data)):
                await self._guest.send(h11.Data(data=piece))
        if tally is not None:
            tally.ends()
        if piece := scrubber.finish():
            await self._guest.send(h11.Data(data=piece))
        await self._guest.send(h11.EndOfMessage())

    def _patterns(self) -> frozenset[bytes]:
        """Return every form of the credential, the header of basic authentication included."""
        held = self.held
        value = held.secret.reveal()
        if held.service.add != "basic":
            return scrub.forms(value)
        return scrub.forms(value) | scrub.forms(held.service.user.encode() + b":" + value)
