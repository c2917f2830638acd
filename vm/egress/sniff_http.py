"""Which host each plain HTTP request asks for, before the request is passed on.

The bytes go on as they came; `h11` reads along. What it does not understand, or what another server
might read otherwise (two lengths, two hosts), does not pass. Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import h11

from vm.egress.kinds import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_HEAD: Final = 65_536
"""Bytes of a request's line and headers."""
SWITCHING: Final = b"HTTP/1.1 101"
"""How a server agrees to another protocol (RFC 9110, 15.2.2)."""

_LENGTHS: Final = (b"content-length", b"transfer-encoding")
_HOST: Final = re.compile(rb"([^@/?#\[\]:]*)(?::([0-9]{1,5}))?\Z")
_ABSOLUTE: Final = re.compile(rb"(?i:http)://([^/?#]*)(?:[/?#]|\Z)")


class Requests:
    """The requests of one connection. `passes(host, port)` says whether a Host may be asked for."""

    def __init__(self, passes: Callable[[bytes, int | None], bool]) -> None:
        self._passes = passes
        self._parser = _parser()
        self._kept = b""
        self._answer = b""
        self._upgrading = False
        self._first = True
        self.raw = False
        """The connection speaks another protocol now, and nothing is read along any more."""

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the guest; return those that may go on. Raises Refused."""
        if self.raw:
            return data
        whole = self._kept + data
        if self._upgrading:
            if len(whole) > MAX_HEAD:
                raise Refused("http-early-data")
            self._kept = whole
            return b""
        return self._read(whole, data)

    def answered(self, data: bytes) -> bytes:
        """Hear what the server says; return what may go on because of it. Raises Refused.

        Whether a connection changes its protocol is the server's word, so what follows the first
        request that asks for it waits for that word.
        """
        if not self._upgrading:
            return b""
        self._answer += data[: len(SWITCHING)]
        if len(self._answer) < len(SWITCHING):
            return b""
        self._upgrading = False
        self.raw = self._answer.startswith(SWITCHING)
        kept, self._kept = self._kept, b""
        return kept if self.raw else self._read(kept, kept)

    def _read(self, whole: bytes, data: bytes) -> bytes:
        if not data:
            return b""  # to the parser, nothing means the end
        try:
            self._parser.receive_data(data)
            while self._event(self._parser.next_event()):
                pass
        except h11.RemoteProtocolError:
            raise Refused("not-http") from None
        return self._release(whole)

    def _event(self, event: object) -> bool:
        """Look at one event; False where more bytes are needed, or somebody's word."""
        if isinstance(event, h11.Request):
            self._check(event)
        elif isinstance(event, h11.EndOfMessage):
            return self._next(self._parser)
        elif isinstance(event, h11.ConnectionClosed):
            return False
        return event is not h11.NEED_DATA and event is not h11.PAUSED

    def _next(self, done: h11.Connection) -> bool:
        """Go on with the next request; h11 itself would first want the answer."""
        self._first = False
        rest = done.trailing_data[0]
        self._parser = _parser()
        if self._upgrading:
            self._kept = rest
            return False
        if rest:
            self._parser.receive_data(rest)
        return bool(rest)

    def _release(self, whole: bytes) -> bytes:
        """Keep back the head of a request that is not complete."""
        if self._upgrading:
            kept = self._kept
        else:
            idle = self._parser.their_state is h11.IDLE
            kept = self._parser.trailing_data[0] if idle else b""
        self._kept = kept
        return whole[: len(whole) - len(kept)]

    def _check(self, request: h11.Request) -> None:
        headers = [(bytes(name), bytes(value)) for name, value in request.headers]
        names = {name for name, _ in headers}
        if request.method == b"CONNECT":
            raise Refused("http-connect")
        if {b"transfer-encoding", b"content-length"} <= names:
            raise Refused("http-two-lengths")
        self._check_host(bytes(request.target), [v for n, v in headers if n == b"host"])
        self._upgrading = self._first and asks_for_websocket(bytes(request.method), headers)

    def _check_host(self, target: bytes, hosts: list[bytes]) -> None:
        if len(hosts) != 1:
            raise Refused("http-no-host")
        absolute = _ABSOLUTE.match(target)
        if absolute is None and not target.startswith(b"/") and target != b"*":
            raise Refused("http-target")
        for value in (hosts[0], *(absolute.groups() if absolute else ())):
            match = _HOST.match(value)
            if match is None or not self._passes(match[1], int(match[2]) if match[2] else None):
                raise Refused("host-mismatch")


def asks_for_websocket(method: bytes, headers: list[tuple[bytes, bytes]]) -> bool:
    """Tell whether a head is a websocket's handshake: a GET without a body (RFC 6455, 4.1).

    So the request ends with its head, and what follows it is what has to wait. Anything else that
    asks for another protocol is read on as HTTP, whatever the server says to it.
    """
    asked = b"".join(value for name, value in headers if name == b"upgrade").lower()
    lengths = {(name, value) for name, value in headers if name in _LENGTHS}
    return method == b"GET" and asked == b"websocket" and lengths <= {(b"content-length", b"0")}


def _parser() -> h11.Connection:
    return h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
