"""The preamble of both serial ports: it throws away what an earlier connection left in the pipe.

    host  → guest   HELLO <nonce>    repeated until answered
    guest → host    READY <nonce>
    host  → guest   START <nonce>
    guest → host    BEGIN <nonce>    the link's bytes follow
    guest → host    ENDED            they end here: what served the link in the guest is gone

The socket is peeked at, so nothing beyond the BEGIN is taken out of it and whoever gets the socket
reads the link's very first byte. QEMU serves one client of a port at a time: a second one is heard
only after the first has closed.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from typing import TYPE_CHECKING

from vm.errors import LinkLost, NoAnswer

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"\x16\x03CLOCHE "
HELLO_INTERVAL_S = 0.5
BUSY_INTERVAL_S = 0.02
START_PATIENCE_S = 5.0
"""How long a BEGIN may take before a new nonce is tried; sshd starts in up to 1.3 s emulated."""

_PEEK = 65536


class _Retry(Exception):
    """The guest said READY and then nothing: try again with a new nonce."""


def line(token: str, word: str, nonce: str) -> bytes:
    """Return one line of the preamble."""
    return MAGIC + f"{token} {word} {nonce}\n".encode()


def ended_line(token: str) -> bytes:
    """Return the line by which the guest ends a running link."""
    return MAGIC + f"{token} ENDED\n".encode()


async def open_link(path: Path, token: str, deadline_s: float) -> socket.socket:
    """Connect to a port and return a non-blocking socket whose next byte is the link's first.

    Raises NoAnswer when there is none in `deadline_s` seconds, LinkLost when the port is closed.
    """
    port = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    port.setblocking(False)
    try:
        async with asyncio.timeout(deadline_s):
            await reach(port, path)
            await _greet(port, token)
    except TimeoutError as error:
        port.close()
        raise NoAnswer(
            f"The guest did not answer on {path.name} within {deadline_s:g} s."
        ) from error
    except OSError as error:
        port.close()
        raise LinkLost(f"The port {path.name} cannot be reached: {error}.") from error
    except BaseException:
        port.close()
        raise
    return port


async def reach(port: socket.socket, path: Path) -> None:
    """Connect a non-blocking socket; waits while QEMU's queue of callers (two) is full.

    Linux answers EAGAIN then, which the event loop's own connect takes for "in progress".
    """
    while True:
        try:
            return port.connect(str(path))
        except BlockingIOError:
            await asyncio.sleep(BUSY_INTERVAL_S)


async def _greet(port: socket.socket, token: str) -> None:
    while True:
        try:
            await _attempt(port, token, secrets.token_hex(16))
        except _Retry:
            continue
        return


async def _attempt(port: socket.socket, token: str, nonce: str) -> None:
    hello = asyncio.create_task(_repeat(port, line(token, "HELLO", nonce)))
    try:
        await _skip_past(port, line(token, "READY", nonce))
    finally:
        hello.cancel()
        # its own failure shows on the reading side too
        await asyncio.gather(hello, return_exceptions=True)
    await asyncio.get_running_loop().sock_sendall(port, line(token, "START", nonce))
    try:
        async with asyncio.timeout(START_PATIENCE_S):
            await _skip_past(port, line(token, "BEGIN", nonce))
    except TimeoutError as error:
        raise _Retry from error


async def _repeat(port: socket.socket, message: bytes) -> None:
    """Send the line again and again; Linux takes so few bytes whole or not at all."""
    loop = asyncio.get_running_loop()
    while True:
        await loop.sock_sendall(port, message)
        await asyncio.sleep(HELLO_INTERVAL_S)


async def _skip_past(port: socket.socket, wanted: bytes) -> None:
    """Consume bytes up to and including `wanted`, and not one more."""
    tail = b""
    while True:
        await _readable(port)
        try:
            fresh = port.recv(_PEEK, socket.MSG_PEEK)
        except BlockingIOError:
            continue
        if not fresh:
            raise LinkLost("The machine closed the port.")
        found = (tail + fresh).find(wanted)
        if found >= 0:
            _consume(port, found + len(wanted) - len(tail))
            return
        _consume(port, len(fresh))
        tail = (tail + fresh)[-(len(wanted) - 1) :]


def _consume(port: socket.socket, count: int) -> None:
    while count:
        count -= len(port.recv(count))


async def _readable(port: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(port.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(port.fileno())
