"""The wire to the guest: QEMU's `-netdev stream`, a Unix socket that carries frames.

Each frame has its length before it, 32 bits, big-endian. QEMU listens and this end connects, so the
gateway may end and come back while the machine runs.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING, Protocol

from vm.egress.pace import Brake

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from pathlib import Path

MAX_FRAME = 4096 + 65_536
"""The largest that QEMU passes on (its NET_BUFSIZE); a longer length ends the link."""
BUFFER = 512 * 1024
"""Bytes read at once: several of the largest frames."""
MAX_WAITING = 4 << 20
"""Bytes that may wait for a guest that takes nothing; further frames are dropped."""
PIECES = 64
"""Buffers handed to the kernel at once; it takes 1,024 (IOV_MAX)."""


class Outlet(Protocol):
    """What sends frames to the guest."""

    @property
    def congested(self) -> bool:
        """Whether frames wait for the guest; whoever has a choice sends nothing now."""
        ...

    def send(self, *parts: bytes | memoryview) -> bool:
        """Queue one frame made of parts; False where it was dropped."""
        ...

    def flush(self) -> None:
        """Hand what is queued to the kernel."""
        ...

    def keep_pace(self, kept: bool) -> None:
        """Carry no more than `pace.RATE` each way from now on, or as much as there is."""
        ...


class StreamLink:
    """One connected socket. `closed` is done when it ended, with the reason where it failed."""

    def __init__(self, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self.closed: asyncio.Future[str] = loop.create_future()
        self.congested = False
        self._over = False
        self._socket = sock
        self._loop = loop
        self._buffer = bytearray(BUFFER)
        self._filled = 0
        self._waiting: deque[bytes | memoryview] = deque()
        self._size = 0
        self._full = False
        self._inward = Brake(loop, self._read_on)
        self._outward = Brake(loop, self._note_congestion)

    def start(
        self, frames: Callable[[list[memoryview]], None], drained: Callable[[], None]
    ) -> None:
        """Begin to read. `frames` gets batches of views that are valid during the call."""
        self._frames, self._drained = frames, drained
        self._socket.setblocking(False)
        self._read_on()

    def close(self, reason: str = "") -> None:
        """End the link; a second time does nothing."""
        if self._over:
            return
        self._over = True
        self._inward.close()
        self._outward.close()
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._waiting.clear()
        if not self.closed.done():  # who waited for it may have been cancelled, and it with them
            self.closed.set_result(reason)

    def _readable(self) -> None:
        view = memoryview(self._buffer)
        try:
            count = self._socket.recv_into(view[self._filled :])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(str(error))
            return
        if not count:
            self.close("the machine closed its network socket")
            return
        self._filled += count
        self._inward.spend(count)
        self._take(view)
        if not self._over and self._inward.holds():  # what comes too fast waits in the socket
            self._loop.remove_reader(self._socket)

    def _take(self, view: memoryview) -> None:
        batch, end = split(view[: self._filled])
        rest = self._filled - end
        self._filled = 0
        if batch:
            self._frames(batch)
        if rest >= 4 and int.from_bytes(view[end : end + 4], "big") > MAX_FRAME:
            self.close("a frame is longer than the link allows")
            return
        view[:rest] = bytes(view[end : end + rest])
        self._filled = rest

    def send(self, *parts: bytes | memoryview) -> bool:
        """Queue one frame; False where it was dropped."""
        length = sum(map(len, parts))
        if self._size + length > MAX_WAITING or self._over:
            return False
        self._waiting.append(length.to_bytes(4, "big") + parts[0])
        self._waiting.extend(part for part in parts[1:] if part)
        self._size += length + 4
        self._outward.spend(length)
        return True

    def flush(self) -> None:
        """Hand what is queued to the kernel, as far as it takes it."""
        try:
            while self._waiting:
                pieces = [self._waiting[n] for n in range(min(PIECES, len(self._waiting)))]
                self._sent(self._socket.sendmsg(pieces))
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self.close(str(error))
            return
        self._watch(bool(self._waiting))

    def _sent(self, count: int) -> None:
        self._size -= count
        while count:
            first = self._waiting.popleft()
            if len(first) > count:
                self._waiting.appendleft(memoryview(first)[count:])
                return
            count -= len(first)

    def _watch(self, full: bool) -> None:
        if full != self._full and not self._over:
            self._full = full
            if full:
                self._loop.add_writer(self._socket, self.flush)
            else:
                self._loop.remove_writer(self._socket)
        self._note_congestion()

    def _note_congestion(self) -> None:
        """Let those wait who have a choice, or go on, as socket and pace have it now."""
        was, self.congested = self.congested, self._full or self._outward.holds()
        if was and not self.congested:
            self._loop.call_soon(self._drained)

    def _read_on(self) -> None:
        self._loop.add_reader(self._socket, self._readable)

    def keep_pace(self, kept: bool) -> None:
        """Carry no more than `pace.RATE` each way from now on, or as much as there is."""
        self._inward.keep(kept)
        self._outward.keep(kept)


async def connect(path: Path, loop: asyncio.AbstractEventLoop) -> StreamLink:
    """Connect to the socket at which QEMU listens. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        await loop.sock_connect(sock, str(path))
    except BaseException:  # a cancelled attempt leaves no descriptor behind either
        sock.close()
        raise
    return StreamLink(sock, loop)


def split(data: memoryview) -> tuple[list[memoryview], int]:
    """Return the whole frames in `data`, and where the first that is not whole begins."""
    frames: list[memoryview] = []
    at = 0
    while at + 4 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        if length > MAX_FRAME or at + 4 + length > len(data):
            break
        frames.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return frames, at
