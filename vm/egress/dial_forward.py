"""Plain HTTP through a proxy, as proxies expect it: each request with its whole address.

CONNECT is for port 443: the settings that Squid, tinyproxy and Apache come with refuse it to port
80. So requests there, which the gateway reads along anyway, are said again to the proxy in absolute
form (RFC 9112, 3.2.2); what it answers goes back as it comes. A connection is a pair of sockets, of
which the gateway has one end, so nothing is kept here but what the proxy does not take just now.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
from typing import TYPE_CHECKING, Final

import h11

from vm.egress.broker.scrub import Scrubber, forms
from vm.egress.sniff_http import MAX_HEAD, SWITCHING, asks_for_websocket

if TYPE_CHECKING:
    from vm.egress.kinds import Request
    from vm.egress.proxy import Proxy

CHUNK: Final = 65_536
LEFT_OUT: Final = (b"proxy-authorization", b"proxy-connection", b"max-forwards")
"""Headers of the guest's that are no business of the proxy's."""
REPEATING: Final = (b"TRACE", b"TRACK")
"""Methods that are answered by the request as it came, credentials included."""
FRAME: Final = 2
"""Bytes with which a websocket's frame begins (RFC 6455, 5.2)."""
MASKED: Final = 0x80
"""What the second of them has in each frame of a client's, and in no request: those are ASCII."""
LAST_S: Final = 60.0
"""How long an answer may take on once the guest's side has ended."""


class Absolute:
    """Says the requests of one connection again for a proxy. Pure.

    It is fed only what `Requests` let pass: every request names the host. The proxy's credentials
    are not to come back: what would have a proxy repeat the request to the guest is refused, and
    they are taken out of its answers.
    """

    def __init__(self, request: Request, authorization: str) -> None:
        self._root = f"http://{request.host}".encode()
        self._more = [(b"Proxy-Authorization", authorization.encode())] if authorization else []
        self._reader = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._writer = h11.Connection(h11.CLIENT)
        self._first = True
        self._upgrading = False
        self._answer = b""
        self._raw = False
        self._framed = b""
        pair = authorization.partition(" ")[2].encode()
        plain = base64.b64decode(pair) if pair else b""
        self._scrubber = Scrubber(forms(pair) | forms(plain)) if pair else None

    def feed(self, data: bytes) -> bytes:
        """Return what the proxy is told for bytes of the guest. Raises h11.ProtocolError."""
        if self._raw:
            return self._checked(data)
        if not data:
            return data
        self._reader.receive_data(data)
        said = bytearray()
        while not isinstance(event := self._event(), type):
            if isinstance(event, h11.Request):
                said += self._writer.send(self._absolute(event)) or b""
            elif isinstance(event, h11.Data):
                said += self._writer.send(h11.Data(data=bytes(event.data))) or b""
            elif isinstance(event, h11.EndOfMessage):
                said += self._writer.send(h11.EndOfMessage(headers=event.headers)) or b""
                self._next()
            else:
                break
        return bytes(said)

    def _event(self) -> object:
        """Return the next event; a type (`h11.NEED_DATA`, `h11.PAUSED`) where there is none."""
        return self._reader.next_event()

    def _absolute(self, request: h11.Request) -> h11.Request:
        if bytes(request.method).upper() in REPEATING:
            raise h11.LocalProtocolError("a proxy would answer with the request itself")
        target = bytes(request.target)
        if target == b"*":
            target = self._root  # RFC 9112, 3.2.4: what the last proxy makes `*` of again
        elif target.startswith(b"/"):
            target = self._root + target
        headers = [
            (bytes(name), bytes(value))
            for name, value in request.headers.raw_items()
            if name.lower() not in LEFT_OUT
        ]
        plain = [(name.lower(), value) for name, value in headers]
        # as for the gateway, which waits for the answer to this one alone; an answer to a later one
        # cannot be told from what an earlier one brings
        self._upgrading = self._first and asks_for_websocket(bytes(request.method), plain)
        self._first = False
        return h11.Request(method=request.method, target=target, headers=headers + self._more)

    def _next(self) -> None:
        rest = self._reader.trailing_data[0]
        self._reader = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._writer = h11.Connection(h11.CLIENT)
        if rest:
            self._reader.receive_data(rest)

    def _checked(self, data: bytes) -> bytes:
        """Refuse what is no websocket's: a proxy that did not follow would take it for requests."""
        if len(self._framed) < FRAME:
            self._framed += data[: FRAME - len(self._framed)]
            if len(self._framed) == FRAME and not self._framed[1] & MASKED:
                raise h11.LocalProtocolError("the guest speaks no websocket")
        return data

    def answered(self, data: bytes) -> bytes:
        """Hear what the proxy says, which may agree to another protocol; what goes to the guest.

        Nothing: it is at its end.
        """
        if self._upgrading:
            self._answer += data[: len(SWITCHING) - len(self._answer)]
            if len(self._answer) == len(SWITCHING):
                self._raw, self._upgrading = self._answer == SWITCHING, False
        if self._scrubber is None:
            return data
        return self._scrubber.feed(data) if data else self._scrubber.finish()


class Forwarding:
    """All connections of plain HTTP through a proxy; lives in an asyncio loop."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, proxy_socket: socket.socket, request: Request, proxy: Proxy) -> socket.socket:
        """Return the gateway's end of a connection that leads through a proxy's socket."""
        ours, theirs = socket.socketpair()
        for sock in (ours, theirs):
            sock.setblocking(False)
        absolute = Absolute(request, proxy.authorization)
        task = asyncio.create_task(_joined(theirs, proxy_socket, absolute))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return ours


async def _joined(guest: socket.socket, proxy: socket.socket, absolute: Absolute) -> None:
    """Carry a connection to its end."""
    up = asyncio.create_task(_up(guest, proxy, absolute))
    down = asyncio.create_task(_down(proxy, guest, absolute))
    try:
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({down}, timeout=LAST_S)
    finally:
        for task in (up, down):
            task.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
        guest.close()
        proxy.close()


async def _up(guest: socket.socket, proxy: socket.socket, absolute: Absolute) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError, h11.ProtocolError):
        while data := await loop.sock_recv(guest, CHUNK):
            await loop.sock_sendall(proxy, absolute.feed(data))
    with contextlib.suppress(OSError):
        proxy.shutdown(socket.SHUT_WR)


async def _down(proxy: socket.socket, guest: socket.socket, absolute: Absolute) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while data := await loop.sock_recv(proxy, CHUNK):
            await loop.sock_sendall(guest, absolute.answered(data))
        await loop.sock_sendall(guest, absolute.answered(b""))
