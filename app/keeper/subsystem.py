"""The subsystem `cloche.control`: one client's JSON-RPC conversation with the keeper."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from app.errors import AppError
from app.keeper.threads import end_tasks
from app.protocol import PROTOCOL
from app.rpc import Lines, Request, error_line, notice_line, parted_line, result_line
from app.rpc_parts import WHOLE, LetGo, Put, Shelf, Wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from app.protocol import Event
    from app.rpc import Reader

log = logging.getLogger(__name__)

MAX_PENDING: Final = 16
"""Calls of one client that may run at the same time."""

HELLO_S: Final = 10.0


class Service(Protocol):
    """What the keeper does for its clients."""

    async def call(self, method: str, params: msgspec.Raw) -> object:
        """Do one method; AppError (code, sentence, hint) when it cannot."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Yield what happens from now on."""
        ...


class Writer(Protocol):
    """The writing half of a byte stream."""

    def write(self, data: bytes) -> None:
        """Queue bytes."""
        ...

    async def drain(self) -> None:
        """Wait until the other end has taken enough."""
        ...


class Hello(msgspec.Struct, frozen=True):
    """The first call of every client, and its answer."""

    protocol: int
    version: str = ""


async def serve_subsystem(reader: Reader, writer: Writer, service: Service) -> None:
    """Answer calls until the client hangs up or breaks the protocol."""
    await _Conversation(reader, writer, service).run()


class _Conversation:
    def __init__(self, reader: Reader, writer: Writer, service: Service) -> None:
        self._lines = Lines(reader)
        self._writer = writer
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_PENDING)
        self._writing = asyncio.Lock()
        self._subscribed = False
        self._shelf = Shelf()

    async def run(self) -> None:
        try:
            async with asyncio.timeout(HELLO_S):
                await self._hello()
            while line := await self._lines.next():
                await self._begin(_parse(line))
        except (AppError, TimeoutError, msgspec.MsgspecError) as error:
            log.info("a client broke the protocol: %s", error)
        finally:
            await end_tasks(list(self._tasks))

    async def _hello(self) -> None:
        request = _parse(await self._lines.next())
        hello = msgspec.json.decode(request.params, type=Hello)
        if request.method != "hello" or hello.protocol not in (PROTOCOL, PROTOCOL - 1):
            text = f"This keeper speaks protocol {PROTOCOL}, the client {hello.protocol}."
            await self._send(error_line(request.id, "protocol", text, "Try: cloche stop, resume"))
            raise AppError("protocol", text)
        await self._send(result_line(request.id, Hello(PROTOCOL)))

    async def _begin(self, request: Request) -> None:
        if request.method == "subscribe":
            await self._send(result_line(request.id, {}))
            if not self._subscribed:
                self._subscribed = True
                self._spawn(self._forward())
            return
        await self._room.acquire()
        self._spawn(self._answer(request)).add_done_callback(lambda _: self._room.release())

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _answer(self, request: Request) -> None:
        try:
            line = self._result(request, await self._do(request))
        except AppError as error:
            line = error_line(request.id, error.code, error.message, error.hint)
        except msgspec.MsgspecError as error:
            line = error_line(request.id, "usage", f"Bad parameters: {error}", "")
        await self._send(line)

    async def _do(self, request: Request) -> object:
        if request.method == "put":
            self._shelf.put(msgspec.json.decode(request.params, type=Put))
            return {}
        if request.method == "let_go":
            self._shelf.let_go(msgspec.json.decode(request.params, type=LetGo))
            return {}
        if request.method == "piece":
            return self._shelf.piece(msgspec.json.decode(request.params, type=Wanted))
        params = request.params
        if request.parted is not None:
            params = msgspec.Raw(self._shelf.take(request.parted))
        return await self._service.call(request.method, params)

    def _result(self, request: Request, answer: object) -> bytes:
        body = msgspec.json.encode(answer)
        if len(body) <= WHOLE:
            return result_line(request.id, msgspec.Raw(body))
        return parted_line(request.id, self._shelf.keep(body))

    async def _forward(self) -> None:
        async for event in self._service.events():
            await self._send(notice_line("event", event))

    async def _send(self, line: bytes) -> None:
        async with self._writing:
            self._writer.write(line)
            await self._writer.drain()


def _parse(line: bytes) -> Request:
    try:
        return msgspec.json.decode(line, type=Request)
    except msgspec.MsgspecError as error:
        raise AppError("protocol", f"A client sent no JSON-RPC: {error}") from error
