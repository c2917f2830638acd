"""Input of a client whose worker died: what its old connection still holds is not typed again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app import pane_frames as frames
from app.keeper.pane import PaneServer
from app.keeper.terminal_record import TerminalRecord

if TYPE_CHECKING:
    from pathlib import Path


class Keyboard:
    """Remembers what is typed."""

    program = 1

    def __init__(self) -> None:
        self.typed = bytearray()
        self.news = asyncio.Event()

    async def send(self, data: bytes) -> None:
        self.typed += data
        self.news.set()

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(30):
            while text not in self.typed:
                self.news.clear()
                await self.news.wait()

    def resize(self, columns: int, rows: int) -> None:
        raise AssertionError("nobody asked for a size")

    def repaint(self) -> None:
        """Nothing is drawn here."""


async def heard(reader: asyncio.StreamReader, kind: int) -> bytes:
    async with asyncio.timeout(30):
        while True:
            found, payload = await frames.read_frame(reader)
            if found == kind:
                return payload


def named(done: int) -> bytes:
    return frames.frame(frames.NAME, frames.NAMED.pack(7, done))


TAKE = frames.frame(frames.HOLD, bytes([frames.TAKE]))


async def test_input_that_a_dead_worker_left_in_its_socket_is_dropped(tmp_path: Path) -> None:
    keyboard = Keyboard()
    record = TerminalRecord(tmp_path, 80, 24)
    server = PaneServer(tmp_path / "s", record, keyboard)
    server.start()
    hears, first = await asyncio.open_unix_connection(tmp_path / "s")
    first.write(named(0) + TAKE + frames.frame(frames.COUNTED, b"a"))
    await keyboard.until(b"a")
    again, second = await asyncio.open_unix_connection(tmp_path / "s")
    second.write(named(0))
    assert frames.PASSED.unpack(await heard(again, frames.TAKEN))[0] == 1
    # the keeper reads this only now, and the client sends it again on its new connection
    first.write(frames.frame(frames.COUNTED, b"b") + frames.frame(frames.INPUT, b"x"))
    for _ in range(2):  # that another one holds the terminal now, and that "x" was dropped for it
        while frames.HOLDER.unpack(await heard(hears, frames.HOLD))[0]:
            pass
    second.write(TAKE + frames.frame(frames.COUNTED, b"b") + frames.frame(frames.COUNTED, b"c"))
    await keyboard.until(b"c")
    assert keyboard.typed == b"abc"
    first.close()
    second.close()
    await server.close()
    record.close()
