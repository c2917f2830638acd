"""A pane worker as its screen sees it, without the screen: blocking calls with a deadline."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.doubles.engines import cache_folder
from vm.terminal import stream, wire
from vm.terminal.palette import TerminalPalette
from vm.terminal.wire import Down, Message, MessageReader, Rate, Up
from vm.terminal.wire_frame import unpack_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from vm.terminal.screen import Frame, Row

LAUNCHER = [sys.executable, "-P", str(Path(__file__).with_name("pane_worker.py"))]
DEADLINE = 20.0


class WorkerProcess:
    """A real worker in its real sandbox."""

    def __init__(self) -> None:
        self.link, theirs = socket.socketpair()
        argv = [*LAUNCHER, str(theirs.fileno()), str(cache_folder())]
        self.process = subprocess.Popen(argv, pass_fds=[theirs.fileno()], env={}, cwd="/")
        theirs.close()
        self.link.settimeout(DEADLINE)
        self.reader = MessageReader()
        self.messages: list[Message] = []
        self.keepers: list[Keeper] = []

    def __enter__(self) -> Self:
        self.hello = wire.unpack_hello(self.wait(Up.HELLO).payload)
        return self

    def __exit__(self, *_: object) -> None:
        self.link.close()
        try:
            self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.wait()
        for keeper in self.keepers:
            keeper.socket.close()

    def send(self, kind: Down, payload: bytes = b"", pane: int = 1) -> None:
        self.link.sendall(wire.message(kind, pane, payload))

    def open(
        self, pane: int = 1, size: tuple[int, int] = (80, 24), *, rate: Rate = Rate.FOCUSED,
        active: bool = True, careful: bool = False, named: bool = False, held: bool = False,
    ) -> Keeper:  # fmt: skip
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        flags = wire.ACTIVE * active | wire.CAREFUL * careful | wire.NAMED * named
        flags |= wire.HELD * held
        payload = wire.OPEN.pack(*size, rate, flags) + TerminalPalette().pack()
        socket.send_fds(self.link, [wire.message(Down.OPEN, pane, payload)], [theirs.fileno()])
        theirs.close()
        keeper = Keeper(ours)
        self.keepers.append(keeper)
        return keeper

    def wait(self, *kinds: int, seconds: float = DEADLINE) -> Message:
        """The next message of one of these kinds; TimeoutError when none comes."""
        end = time.monotonic() + seconds
        while True:
            for message in self.messages:
                if message.kind in kinds:
                    self.messages.remove(message)
                    return message
            self.link.settimeout(max(0.001, end - time.monotonic()))
            data = self.link.recv(1 << 20)
            if not data:
                raise EOFError(self.process.wait(DEADLINE))
            self.messages += self.reader.feed(data)

    def frame(self, seconds: float = DEADLINE) -> Frame:
        """The next frame, acknowledged."""
        message = self.wait(Up.FRAME, seconds=seconds)
        number, frame = unpack_frame(message.payload)
        self.send(Down.ACK, wire.NUMBER.pack(number), message.pane)
        return frame

    def page(self, condition: Callable[[list[str]], bool]) -> list[str]:
        """Wait until the page (built up from frames) is as wanted; return it."""
        rows: dict[int, Row] = {}
        while True:
            frame = self.frame()
            rows.update(frame.rows)
            shown = [rows[y].text.rstrip() if y in rows else "" for y in range(frame.height)]
            if condition(shown):
                return shown


class Keeper:
    """The other end of one pane's connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.socket.settimeout(DEADLINE)
        self.reader = stream.FrameReader()
        self.frames: list[tuple[int, bytes]] = []

    def output(self, data: bytes) -> None:
        self.socket.sendall(stream.pieces(stream.OUTPUT, data))

    def size(self, columns: int, rows: int) -> None:
        self.socket.sendall(stream.frame(stream.SIZE_FRAME, stream.SIZE.pack(columns, rows)))

    def live(self) -> None:
        self.socket.sendall(stream.frame(stream.REPLAYED))

    def expect(self, kind: int) -> bytes:
        """The payload of the next frame of that kind."""
        while True:
            for at, (found, payload) in enumerate(self.frames):
                if found == kind:
                    del self.frames[at]
                    return payload
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self.frames += self.reader.feed(data)

    def typed(self) -> bytes:
        return self.expect(stream.INPUT)

    def acked(self, count: int) -> None:
        """Wait until so many bytes were acknowledged."""
        while count > 0:
            count -= stream.unpack(stream.COUNT, self.expect(stream.ACK))[0]
        assert count == 0


__all__ = ["LAUNCHER", "Keeper", "WorkerProcess", "os"]
