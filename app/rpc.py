"""JSON-RPC 2.0 as it runs over `control.sock`: one object a line, both ends bounded.

The envelopes and the splitting into lines are shared by the keeper and its clients.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from app.errors import AppError
from app.protocol import MAX_LINE
from app.rpc_parts import Parted  # noqa: TC001 - msgspec reads the annotations

APPLICATION_ERROR = -32000
"""JSON-RPC's first code for errors of the application."""


class ErrorData(msgspec.Struct, frozen=True):
    """Our own part of an error: stable code and next step."""

    code: str
    hint: str = ""


class ErrorBody(msgspec.Struct, frozen=True):
    """JSON-RPC's error object."""

    code: int
    message: str
    data: ErrorData | None = None


class Request(msgspec.Struct, frozen=True):
    """A call; without `id` a notification."""

    method: str
    params: msgspec.Raw = msgspec.Raw(b"{}")
    id: int | None = None
    parted: Parted | None = None
    """Where the parameters are when they are too long for this line."""
    jsonrpc: str = "2.0"


class Incoming(msgspec.Struct, frozen=True):
    """What a client receives: the answer to a call, or a notification."""

    id: int | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorBody | None = None
    parted: Parted | None = None
    """Where the result is when it is too long for this line."""
    method: str = ""
    params: msgspec.Raw = msgspec.Raw(b"{}")
    jsonrpc: str = "2.0"


class _Result(msgspec.Struct, frozen=True):
    id: int | None
    result: object
    jsonrpc: str = "2.0"


class _PartedResult(msgspec.Struct, frozen=True):
    id: int | None
    parted: Parted
    result: None = None
    jsonrpc: str = "2.0"


class _Error(msgspec.Struct, frozen=True):
    id: int | None
    error: ErrorBody
    jsonrpc: str = "2.0"


class _Notice(msgspec.Struct, frozen=True):
    method: str
    params: object
    jsonrpc: str = "2.0"


class _Call(msgspec.Struct, frozen=True):
    id: int
    method: str
    params: object
    parted: Parted | None = None
    jsonrpc: str = "2.0"


def result_line(number: int | None, result: object) -> bytes:
    """Encode the answer to call `number`."""
    return _line(_Result(number, result))


def parted_line(number: int | None, parted: Parted) -> bytes:
    """Encode the answer to call `number` whose result is fetched in pieces."""
    return _line(_PartedResult(number, parted))


def error_line(number: int | None, code: str, message: str, hint: str) -> bytes:
    """Encode a failure as the answer to call `number`."""
    return _line(_Error(number, ErrorBody(APPLICATION_ERROR, message, ErrorData(code, hint))))


def notice_line(method: str, params: object) -> bytes:
    """Encode a notification."""
    return _line(_Notice(method, params))


def call_line(number: int, method: str, params: object, parted: Parted | None = None) -> bytes:
    """Encode a call; with `parted` its parameters were put before."""
    return _line(_Call(number, method, params, parted))


def _line(value: msgspec.Struct) -> bytes:
    line = msgspec.json.encode(value) + b"\n"
    if len(line) > MAX_LINE:
        raise AppError("too-large", f"A message of {len(line)} bytes is over the limit.")
    return line


class Reader(Protocol):
    """The reading half of a byte stream."""

    async def read(self, n: int = -1) -> bytes:
        """Return up to `n` bytes, empty at the end."""
        ...


class Lines:
    """Splits a byte stream into lines of at most MAX_LINE bytes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._buffer = bytearray()

    async def next(self) -> bytes:
        """Return the next line without its end; empty when the stream has ended.

        Raises AppError `protocol` for a line that is too long.
        """
        searched = 0
        while True:
            end = self._buffer.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return line
            searched = len(self._buffer)
            if searched > MAX_LINE:
                raise AppError("protocol", "The other end sent a line over the limit.")
            chunk = await self._reader.read(1 << 16)
            if not chunk:
                return b""
            self._buffer += chunk
