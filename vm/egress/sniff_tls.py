"""Which name a TLS connection asks for: the ClientHello, put together over records and segments.

Pure. Sources: RFC 8446 (records 5.1, handshake 4, ClientHello 4.1.2), RFC 6066 (server_name),
RFC 9849 (encrypted_client_hello).
"""

from __future__ import annotations

from typing import NamedTuple

HANDSHAKE, CLIENT_HELLO = 22, 1
SERVER_NAME, HIDDEN_HELLO = 0, 0xFE0D
HOST_NAME = 0
MAX_RECORD = 16_384
MAX_HELLO = 65_536
"""A longer ClientHello is refused; with post-quantum keys they have about 2,000 bytes."""


class NotTls(Exception):
    """Bytes that are no ClientHello."""


class Hello(NamedTuple):
    """What a ClientHello says about the name."""

    name: bytes | None
    """The server's name as it stands there; None where it is missing."""
    hidden: bool
    """An encrypted ClientHello is in it, so the true name may be another (or it is GREASE)."""


class Cursor:
    """Reads big-endian numbers and vectors, and never beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        """Return the next bytes. Raises NotTls where they are not all there."""
        piece = self._data[self._at : self._at + count]
        if len(piece) != count:
            raise NotTls
        self._at += count
        return piece

    def number(self, size: int) -> int:
        """Return a number of `size` bytes."""
        return int.from_bytes(self.take(size), "big")

    def rest(self) -> bytes:
        """Return what is left."""
        return self.take(len(self._data) - self._at)

    def vector(self, size: int) -> Cursor:
        """Return a cursor on a vector whose length takes `size` bytes."""
        return Cursor(self.take(self.number(size)))


class HelloReader:
    """Puts the ClientHello together, however it is cut into records and those into segments."""

    def __init__(self) -> None:
        self._raw = bytearray()
        self._message = bytearray()

    def feed(self, data: bytes) -> Hello | None:
        """Take the stream's next bytes; return what the ClientHello says once it is whole.

        Raises NotTls. It is for the caller to set a bound to the bytes.
        """
        self._raw += data
        while self._next_record():
            needed = _length(self._message)
            if needed is not None and len(self._message) >= needed:
                return _read(Cursor(bytes(self._message[4:needed])))
        return None

    def _next_record(self) -> bool:
        """Move a whole record's content to the message; False where none is whole."""
        header = bytes(self._raw[:5])
        if header[:1] not in (b"", b"\x16") or header[1:2] not in (b"", b"\x03"):
            raise NotTls
        length = int.from_bytes(header[3:5], "big")
        if len(header) < 5:
            return False
        if not 1 <= length <= MAX_RECORD:
            raise NotTls
        if len(self._raw) < 5 + length:
            return False
        self._message += self._raw[5 : 5 + length]
        del self._raw[: 5 + length]
        return True


def _length(message: bytearray) -> int | None:
    """Return the length of a handshake message with its header, None where that is not there."""
    if message and message[0] != CLIENT_HELLO:
        raise NotTls
    if len(message) < 4:
        return None
    length = int.from_bytes(message[1:4], "big")
    if length > MAX_HELLO:
        raise NotTls
    return 4 + length


def _read(hello: Cursor) -> Hello:
    if hello.number(2) < 0x0301:  # SSL 3 and older have no extensions
        raise NotTls
    hello.take(32)
    hello.vector(1)
    hello.vector(2)
    hello.vector(1)
    if not hello:
        return Hello(None, False)
    extensions = hello.vector(2)
    if hello:
        raise NotTls
    return _extensions(extensions)


def _extensions(extensions: Cursor) -> Hello:
    found: dict[int, Cursor] = {}
    while extensions:
        kind = extensions.number(2)
        body = extensions.vector(2)
        if kind in found:
            raise NotTls  # two names, of which a server may take the other
        found[kind] = body
    name = _server_name(found[SERVER_NAME]) if SERVER_NAME in found else None
    return Hello(name, HIDDEN_HELLO in found)


def _server_name(body: Cursor) -> bytes:
    entries = body.vector(2)
    kind = entries.number(1)
    name = entries.vector(2).rest()
    if kind != HOST_NAME or not name or entries or body:
        raise NotTls
    return name
