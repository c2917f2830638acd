"""The gateway on a tap, with the Linux kernel's TCP as its guest, and hosts that are made here."""

from __future__ import annotations

import array
import asyncio
import contextlib
import hashlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.vm import egress_guest
from vm.egress.dial import DirectDialer
from vm.egress.gateway import Gateway
from vm.egress.kinds import GATEWAY, GUEST, MTU, Entry, Limits, Request, Verdict
from vm.egress.table import NameTable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence

    from vm.egress.dial import Address
    from vm.egress.kinds import Dialer

    Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

WAIT_S = 60.0
GUEST_S = 300.0
"""Longest that one thing in the guest may take; a hundred times what an idle host needs."""

SLOTS, SLOT = 32, 70_000
ALLOW = Verdict("allow", "user", "r", "here", "allowed", "Allowed.")
DENY = Verdict("deny", "user", "r", "here", "denied", "Denied.")
LOOPBACK = IPv4Address("127.0.0.1")


class TapLink:
    """An Outlet whose wire is a tap: one write a frame, and it never waits."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        self.congested = False
        self.sent: list[bytes] | None = None
        """Frames to the guest, where a test wants them."""
        self.lose: Callable[[bytes], bool] = lambda frame: False
        """Frames to the guest that get lost on the way."""
        self._descriptor = descriptor
        self._loop = loop
        self._buffer = memoryview(bytearray(SLOTS * SLOT))

    def start(self, take: Callable[[list[memoryview]], None]) -> None:
        self._take = take
        self._loop.add_reader(self._descriptor, self._readable)

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _readable(self) -> None:
        batch: list[memoryview] = []
        for slot in range(SLOTS):
            place = self._buffer[slot * SLOT : (slot + 1) * SLOT]
            try:
                batch.append(place[: os.readv(self._descriptor, [place])])
            except BlockingIOError:
                break
        self._take(batch)

    def send(self, *parts: bytes | memoryview) -> bool:
        if self.sent is not None:
            self.sent.append(b"".join(parts))
        if self.lose(bytes(parts[0])):
            return True
        with contextlib.suppress(OSError):  # the namespace is on its way out
            os.writev(self._descriptor, parts)
        return True

    def flush(self) -> None:
        pass

    def keep_pace(self, kept: bool) -> None:
        """Nobody types into a kernel."""


@dataclass
class Judge:
    """Allows everything but what a test puts here."""

    verdicts: dict[str, Verdict] = field(default_factory=lambda: dict[str, Verdict]())
    asked: asyncio.Queue[tuple[int, Request, asyncio.Future[Verdict]]] = field(
        default_factory=lambda: asyncio.Queue[tuple[int, Request, "asyncio.Future[Verdict]"]]()
    )
    checked: Callable[[Request, Verdict], Verdict] = lambda request, verdict: verdict

    def decide(self, request: Request) -> Verdict:
        return self.verdicts.get(request.host, ALLOW)

    async def ask(self, flow: int, request: Request, verdict: Verdict) -> Verdict:
        answer: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        await self.asked.put((flow, request, answer))
        return await answer

    def check(self, request: Request, verdict: Verdict) -> Verdict:
        return self.checked(request, verdict)


async def resolve_here(name: str) -> Sequence[Address]:
    """Every name is this machine."""
    return [LOOPBACK]


class Namespace:
    """The namespace and the program in it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        flags = ["--net"] if os.geteuid() == 0 else ["--net", "--map-root-user"]
        link = (GUEST.mac.hex(), str(IPv4Address(GUEST.ip)), str(IPv4Address(GATEWAY.ip)), str(MTU))
        program = [sys.executable, "-P", str(Path(egress_guest.__file__)), str(theirs.fileno())]
        self.process = subprocess.Popen(
            ["unshare", *flags, *program, *link],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        ours.settimeout(WAIT_S)
        _, rights, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
        ours.close()
        self.tap = array.array("i", rights[0][2])[0]
        os.set_blocking(self.tap, False)

    def call(self, operation: Callable[..., Any], *values: Any) -> Any:
        """Have an operation of `egress_guest` done; blocks."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([operation.__name__, values]).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the guest ended, or stood still and was ended"
        answer = json.loads(line)
        assert "ok" in answer, answer
        return answer["ok"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(WAIT_S)
        finally:
            self.process.kill()
            if self.process.stdout is not None:
                self.process.stdout.close()


class Site:
    """A gateway, its guest, and servers on this machine under names of their own."""

    def __init__(self, limits: Limits | None, dialer: Dialer | None) -> None:
        self.namespace = Namespace()
        self.judge = Judge()
        self.log: list[Entry] = []
        self.table = NameTable()
        loop = asyncio.get_running_loop()
        self.link = TapLink(self.namespace.tap, loop)
        self.gateway = Gateway(
            self.judge,
            dialer or DirectDialer(self.judge, resolve_here),
            self._note,
            self.table,
            limits,
        )
        self.gateway.attach(self.link)
        self.link.start(self.gateway.take)
        self._servers: list[asyncio.Server] = []
        self._handlers: set[asyncio.Task[None]] = set()
        self._news = asyncio.Event()

    def _note(self, entry: Entry) -> None:
        self.log.append(entry)
        self._news.set()

    async def entry(self, wanted: Callable[[Entry], bool]) -> Entry:
        """Wait for a line of the log."""
        async with asyncio.timeout(WAIT_S):
            while True:
                for entry in self.log:
                    if wanted(entry):
                        return entry
                self._news.clear()
                await self._news.wait()

    async def serve(self, handler: Handler) -> int:
        """Start a server; return its port."""

        async def safely(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._handlers.add(task)
            try:
                await handler(reader, writer)
            except ConnectionError:
                pass
            finally:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
                self._handlers.discard(task)

        server = await asyncio.start_server(safely, "127.0.0.1", 0, limit=1 << 20, backlog=1024)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def address(self, name: str) -> str:
        """The synthetic address of a name."""
        return str(IPv4Address(self.table.bind(name, asyncio.get_running_loop().time())))

    async def guest(self, operation: Callable[..., Any], *values: Any) -> Any:
        """Have something done in the guest; one that stands still is ended after GUEST_S."""
        work = asyncio.create_task(asyncio.to_thread(self.namespace.call, operation, *values))
        try:
            if not (await asyncio.wait({work}, timeout=GUEST_S))[0]:
                self.namespace.process.kill()
        except asyncio.CancelledError:
            self.namespace.process.kill()  # or its thread would wait for ever
            raise
        return await work

    async def close(self) -> None:
        self.gateway.detach()
        self.link.close()
        for server in self._servers:
            server.close()
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await asyncio.to_thread(self.namespace.close)


@contextlib.asynccontextmanager
async def site(limits: Limits | None = None, dialer: Dialer | None = None) -> AsyncGenerator[Site]:
    """A gateway with its guest."""
    made = Site(limits, dialer)
    try:
        yield made
    finally:
        await made.close()


def verdict(base: Verdict = ALLOW, **changes: Any) -> Verdict:
    """A verdict, a little different."""
    return replace(base, **changes)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say everything back, then end."""
    while data := await reader.read(1 << 18):
        writer.write(data)
        await writer.drain()


async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take everything and answer with its hash."""
    digest = hashlib.blake2b()
    while data := await reader.read(1 << 20):
        digest.update(data)
    writer.write(digest.hexdigest().encode())
    await writer.drain()


def source(block: bytes, total: int) -> Handler:
    """A server that sends so many bytes and ends."""

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = total
        while left:
            part = block[: min(left, len(block))]
            writer.write(part)
            left -= len(part)
            await writer.drain()

    return send


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what the gateway says of itself; it has no event for that."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 - the gateway has no event for that
            await asyncio.sleep(0.02)


@contextlib.contextmanager
def full_host() -> Generator[int]:
    """Yield the port of a local host whose queue is full: no connection to it is completed."""
    with contextlib.ExitStack() as sockets:
        full = sockets.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        for _ in range(3):
            waiting = sockets.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        yield port
