"""The two doors of a broker: where connections of the guest come in, and how it reaches a service.

The gateway hands a connection over at a Unix socket: it says the internal name and a line's end,
hears one byte, and from then on the guest speaks. So the process with the keys reads no frames.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from vm.egress.addresses import check_all
from vm.egress.kinds import Dialled, DialRefused, Request, Verdict
from vm.egress.names import INTERNAL, covers
from vm.egress.own import read_own

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from vm.egress.broker.services import Service
    from vm.egress.kinds import Dialer

MAX_NAME: Final = 256
GREETING_S: Final = 10.0
"""How long either side waits for the other's greeting; a broker that starts anew needs seconds."""
WELCOME: Final = b"+"
UNKNOWN: Final = b"-"
"""The broker's two words: it serves that name, or does not."""


class Door:
    """Takes connections at a listening socket, and has each of a known name served."""

    def __init__(
        self,
        listener: socket.socket,
        hosts: Iterable[str],
        serve: Callable[[str, socket.socket], Awaitable[None]],
    ) -> None:
        listener.setblocking(False)
        self._listener, self._hosts, self._serve = listener, frozenset(hosts), serve
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Take connections until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                sock, _ = await loop.sock_accept(self._listener)
                task = asyncio.create_task(self._greet(sock))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _greet(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError, TimeoutError):
            if _peer(sock) not in (os.geteuid(), 0):
                return
            async with asyncio.timeout(GREETING_S):
                name = await _line(sock)
                known = name in self._hosts
                await asyncio.get_running_loop().sock_sendall(sock, WELCOME if known else UNKNOWN)
            if known:
                await self._serve(name, sock)


def _peer(sock: socket.socket) -> int:
    """Return the user id of who connected (unix(7), SO_PEERCRED)."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    uid: int = struct.unpack("3i", raw)[1]
    return uid


async def _line(sock: socket.socket) -> str:
    """Read a name and its line's end, and nothing behind it; empty where it is none."""
    loop = asyncio.get_running_loop()
    found = b""
    while len(found) < MAX_NAME:
        byte = await loop.sock_recv(sock, 1)
        if byte in (b"", b"\n"):
            return found.decode("ascii", "replace")
        found += byte
    return ""


class DoorDialer:
    """The gateway's `Dialer`: internal names go to the broker's door, all others to `others`."""

    def __init__(self, door: Path | None, others: Dialer) -> None:
        self._door, self._others = door, others

    async def dial(self, request: Request, verdict: Verdict) -> Dialled:
        """Connect. Raises DialRefused."""
        if not covers(f"*.{INTERNAL}", request.host):
            return await self._others.dial(request, verdict)
        if self._door is None or request.port != 80:
            raise DialRefused("internal-name", f"{request.host} is no service of this session.")
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        sock.setblocking(False)
        try:
            async with asyncio.timeout(GREETING_S):
                said = await _introduce(sock, self._door, request.host)
        except (OSError, TimeoutError):
            sock.close()
            reason = "The session's credential broker does not answer."
            raise DialRefused("broker-away", reason) from None
        except BaseException:  # nor does an attempt that was cancelled leave a descriptor
            sock.close()
            raise
        if said != WELCOME:
            sock.close()
            reason = f"The session's credential broker has no key for {request.host}."
            raise DialRefused("broker-without", reason)
        return Dialled(sock, "broker")


async def _introduce(sock: socket.socket, door: Path, host: str) -> bytes:
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, str(door))
    await loop.sock_sendall(sock, host.encode("ascii") + b"\n")
    return await loop.sock_recv(sock, 1)


ALLOWED: Final = Verdict("allow", "user", "", "broker", "allowed", "The service's own host.")


class ServiceJudge:
    """A `Judge` for the broker's own connections: its services' hosts, at addresses that may be."""

    def __init__(self, services: Iterable[Service]) -> None:
        known = list(services)
        self._private = {(one.host, one.port): one.private for one in known}
        for one in known:
            if one.oauth is not None:  # who renews its token
                self._private.setdefault((one.oauth.host, one.oauth.port), one.private)

    def decide(self, request: Request) -> Verdict:
        """Allow the services' hosts."""
        if (request.host, request.port or 0) in self._private:
            return ALLOWED
        return replace(ALLOWED, action="deny", code="denied", reason="This is no service's host.")

    async def ask(self, flow: int, request: Request, verdict: Verdict) -> Verdict:
        """Return what was decided: nobody is asked about a service."""
        return self.decide(request)

    def check(self, request: Request, verdict: Verdict) -> Verdict:
        """Refuse this machine, the link, metadata, and private addresses unless they are meant."""
        decided = self.decide(request)
        private = self._private.get((request.host, request.port or 0), False)
        found = check_all(request.addresses, private, read_own())
        if decided.action != "allow" or found is None:
            return decided
        reason = f"{request.host} leads to {found.reason}."
        return replace(decided, action="deny", code=found.code, reason=reason)


def connector(dialer: Dialer) -> Callable[[str, int], Awaitable[socket.socket]]:
    """Return a broker's way to its services. It raises DialRefused."""

    async def connect(host: str, port: int) -> socket.socket:
        return (await dialer.dial(Request(host, port), ALLOWED)).socket

    return connect
