"""Ends of a guest's connection that lie in the gateway itself: names over TCP, and refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from vm.egress.dns_answers import MAX_QUERY, NoAnswer
from vm.egress.kinds import FAILURES

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.egress.kinds import Request
    from vm.egress.stream import Stream

MAX_HEAD: Final = 65_536
MAX_ANSWERS: Final = 65_535
"""Bytes of answers that wait for a guest that asks and does not read."""
ALERT: Final = bytes((21, 3, 3, 0, 2, 2, 49))
"""A TLS record: fatal alert "access denied" (RFC 8446, 6.2)."""


class Names:
    """DNS over TCP: each message has its length before it, 16 bits (RFC 1035, 4.2.2)."""

    def __init__(self, stream: Stream, answer: Callable[[bytes], bytes]) -> None:
        self._stream = stream
        self._answer = answer
        self._buffer = b""
        self._answers = b""
        self._over = False

    def data(self, view: memoryview) -> None:
        """Answer every message that is whole."""
        self._buffer += view
        self._stream.taken(len(view))
        while len(self._buffer) >= 2:
            length = int.from_bytes(self._buffer[:2], "big")
            if length > MAX_QUERY:
                self._stream.abort()
                return
            if len(self._buffer) < 2 + length:
                break
            message, self._buffer = self._buffer[2 : 2 + length], self._buffer[2 + length :]
            if not self._reply(message):
                return
        self.room()

    def _reply(self, message: bytes) -> bool:
        try:
            reply = self._answer(message)
        except NoAnswer:
            self._stream.abort()
            return False
        self._answers += len(reply).to_bytes(2, "big") + reply
        if len(self._answers) > MAX_ANSWERS:
            self._stream.abort()
            return False
        return True

    def finished(self) -> None:
        """Close, once all is said."""
        self._over = True
        self.room()

    def room(self) -> None:
        """Say what waits, as far as the guest takes it."""
        self._answers = say(self._stream, self._answers)
        if self._over and not self._answers:
            self._stream.finish()

    def gone(self, reset: bool) -> None:
        """Nothing is left to do."""


class Farewell:
    """Says one thing, ends, and ignores what the guest still sends."""

    def __init__(self, stream: Stream, words: bytes) -> None:
        self._stream = stream
        self._words = words

    def data(self, view: memoryview) -> None:
        """Ignore it; refusing it would make the guest lose the words."""
        self._stream.taken(len(view))

    def finished(self) -> None:
        """Ignore it: the end comes anyway."""

    def room(self) -> None:
        """Say the rest."""
        self._words = say(self._stream, self._words)
        if not self._words:
            self._stream.finish()

    def gone(self, reset: bool) -> None:
        """Nothing is left to do."""


class RefusedHttp:
    """Waits for the head of a request and answers it with a refusal that programs can read."""

    def __init__(self, stream: Stream, answer: bytes) -> None:
        self._stream = stream
        self._answer = answer
        self._head = b""

    def data(self, view: memoryview) -> None:
        """Answer once the head is whole, or longer than any."""
        self._head += view
        self._stream.taken(len(view))
        whole = b"\r\n\r\n" in self._head or b"\n\n" in self._head
        if whole or len(self._head) > MAX_HEAD:
            self._stream.end = Farewell(self._stream, self._answer)
            self._stream.end.room()

    def finished(self) -> None:
        """Go as well: there was no request."""
        self._stream.finish()

    def room(self) -> None:
        """Wait for the request."""

    def gone(self, reset: bool) -> None:
        """Nothing is left to do."""


def say(stream: Stream, words: bytes) -> bytes:
    """Send as much as the guest takes; return the rest."""
    room = stream.room()
    if words and room:
        stream.send(words[:room])
        return words[room:]
    return words


def http_refusal(request: Request, code: str, reason: str) -> bytes:
    """Return a 403 whose body tells people and agents that trying again changes nothing.

    For what was allowed and could not be made a 502, for which trying again may do.
    """
    failed = code in FAILURES
    told = {
        "error": "egress-failed" if failed else "egress-refused",
        "host": request.host,
        "port": request.port,
        "code": code,
        "reason": reason,
        "retry": failed,
    }
    body = json.dumps(told, separators=(",", ":")).encode() + b"\n"
    head = (
        f"HTTP/1.1 {'502 Bad Gateway' if failed else '403 Forbidden'}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Connection: close\r\n"
        f"X-Cloche-Egress: {'failed' if failed else 'refused'}\r\n\r\n"
    )
    return head.encode("ascii") + body
