"""A host's socket as the other end of a guest's connection.

Bytes go on at once and are kept only while one side does not take them: what waits for the host
closes the guest's window, what the guest has no window for is not read from the host.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from typing import TYPE_CHECKING, Final

from vm.egress.kinds import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.egress.inspect import Inspector
    from vm.egress.stream import Stream

CHUNK: Final = 256 * 1024
"""Bytes read from the host at once: four of the largest segments."""
TURNS: Final = 4
"""Chunks of one connection before the others have their turn."""
PIECES: Final = 64
DRAIN_S: Final = 60.0
"""How long the host may take for the last bytes of a guest that is done."""
_RESET: Final = struct.pack("ii", 1, 0)
"""`struct linger` that makes close send a reset (socket(7))."""


class HostEnd:
    """Joins a stream with a connected socket.

    `ended(code)` is called once, when nothing is left to do; `refused(code)` when the inspector
    says no, after which this end is out of use.
    """

    def __init__(
        self,
        stream: Stream,
        sock: socket.socket,
        inspector: Inspector | None,
        ended: Callable[[str], None],
        refused: Callable[[str], None],
    ) -> None:
        self.up = self.down = 0
        self._stream = stream
        self._socket = sock
        self._inspector = inspector
        self._ended, self._refused = ended, refused
        self._loop = asyncio.get_running_loop()
        self._queue: deque[bytes] = deque()
        self._inside = 0
        self._reading = self._writing = False
        self._over_up = self._over_down = self._leaving = self._closed = False
        self._timer: asyncio.TimerHandle | None = None

    # From the guest to the host.

    def data(self, view: memoryview) -> None:
        """Pass the guest's bytes on, as far as they may and the host takes them."""
        if self._closed:
            return
        if self._inspector is None:
            self._forward(view)
            return
        self._inside += len(view)
        try:
            self._let(self._inspector.feed(bytes(view)))
        except Refused as refused:
            self._refuse(refused.code)

    def _let(self, data: bytes) -> None:
        self._inside -= len(data)
        if self._inspector is not None and self._inspector.satisfied and not self._inside:
            self._inspector = None
        if data:
            self._forward(data)

    def _refuse(self, code: str) -> None:
        self.close(reset=True)
        self._refused(code)

    def _forward(self, data: bytes | memoryview) -> None:
        sent = 0
        if not self._queue:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self._broken_up()
                return
            self._count_up(sent)
        if sent < len(data):
            self._queue.append(bytes(data[sent:]))
            self._watch_writing(True)

    def _count_up(self, count: int) -> None:
        self.up += count
        self._stream.taken(count)

    def _writable(self) -> None:
        try:
            pieces = [self._queue[n] for n in range(min(PIECES, len(self._queue)))]
            count = self._socket.sendmsg(pieces)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._broken_up()
            return
        self._drop(count)
        self._count_up(count)
        if not self._queue:
            self._watch_writing(False)
            self._maybe_shut()
        if not self._closed:
            self._stream.flush()

    def _drop(self, count: int) -> None:
        while count:
            first = self._queue.popleft()
            if len(first) > count:
                self._queue.appendleft(first[count:])
                return
            count -= len(first)

    def finished(self) -> None:
        """Pass the guest's end on once its bytes are."""
        self._over_up = True
        self._maybe_shut()

    def _maybe_shut(self) -> None:
        if not self._over_up or self._queue or self._closed:
            return
        if self._leaving:
            self._end("closed")
            return
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._broken()

    # From the host to the guest.

    def start(self) -> None:
        """Begin to read from the host."""
        self.room()

    def room(self) -> None:
        """Read on where reading had stopped for want of room."""
        if not self._reading and not self._over_down and not self._closed:
            self._pump()

    def _readable(self) -> None:
        self._pump()
        if not self._closed:
            self._stream.flush()

    def _pump(self) -> None:
        for _ in range(TURNS):
            room = self._stream.room()
            if not room:
                self._watch_reading(False)
                return
            try:
                data = self._socket.recv(min(room, CHUNK))
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                self._broken()
                return
            if not self._deliver(data):
                return
        self._watch_reading(True)

    def _deliver(self, data: bytes) -> bool:
        """Send the host's bytes to the guest; False where no more come."""
        if not data:
            self._over_down = True
            self._watch_reading(False)
            self._stream.finish()
            return False
        self.down += len(data)
        self._stream.send(data)
        if self._inspector is not None:
            self._hear(self._inspector, data)
        return not self._closed

    def _hear(self, inspector: Inspector, data: bytes) -> None:
        try:
            self._let(inspector.answered(data))
        except Refused as refused:
            self._refuse(refused.code)

    # The end.

    def gone(self, reset: bool) -> None:
        """Close the host's side as the guest closed its own."""
        if self._closed:
            return
        if reset:
            self.close(reset=True)
            self._ended("reset-by-guest")
        elif self._queue:
            self._leaving = True
            self._timer = self._loop.call_later(DRAIN_S, self._end, "host-too-slow")
        else:
            self._end("closed")

    def _end(self, code: str) -> None:
        if not self._closed:
            self.close(reset=code != "closed")
            self._ended(code)

    def _broken_up(self) -> None:
        """Give the guest what the host said before it took no more: that says why, as a rule."""
        try:
            while room := self._stream.room():
                data = self._socket.recv(min(room, CHUNK))
                if not data:
                    break
                self.down += len(data)
                self._stream.send(data)
        except OSError:
            pass  # nothing is left
        self._broken()

    def _broken(self) -> None:
        """Tell the guest of a host that failed by a reset, as it would have been told."""
        if not self._closed:
            self.close(reset=True)
            self._ended("reset-by-host")
            self._stream.abort()

    def close(self, reset: bool) -> None:
        """Let go of the socket."""
        if self._closed:
            return
        self._closed = True
        self._watch_reading(False)
        self._watch_writing(False)
        if self._timer is not None:
            self._timer.cancel()
        if reset:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._socket.close()
        self._queue.clear()
        self._stream.release()

    def _watch_reading(self, wanted: bool) -> None:
        if wanted != self._reading:
            self._reading = wanted
            if wanted:
                self._loop.add_reader(self._socket, self._readable)
            else:
                self._loop.remove_reader(self._socket)

    def _watch_writing(self, wanted: bool) -> None:
        if wanted != self._writing:
            self._writing = wanted
            if wanted:
                self._loop.add_writer(self._socket, self._writable)
            else:
                self._loop.remove_writer(self._socket)
