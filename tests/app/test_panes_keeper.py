"""Panes on the keeper's own `pane.sock`: both ends of the protocol as they ship."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

from app.keeper.pane import PaneServer
from app.keeper.terminal_record import CAPACITY, TerminalRecord
from tests.doubles.pane_watch import Watcher, hub_of

if TYPE_CHECKING:
    from pathlib import Path


class Keyboard:
    """The agent's terminal: remembers what it is sent and takes every size at once."""

    def __init__(self, record: TerminalRecord) -> None:
        self.record, self.typed = record, bytearray()
        self.repaints = 0
        self.program = 1
        self.server: PaneServer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, data: bytes) -> None:
        self.typed += data
        await self.print(data)

    async def print(self, data: bytes) -> None:
        self.record.append(data)
        assert self.server is not None
        await self.server.changed()

    def resize(self, columns: int, rows: int) -> None:
        self.record.resize(columns, rows)
        assert self.server is not None
        task = asyncio.create_task(self.server.changed())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def repaint(self) -> None:
        self.repaints += 1


async def test_a_pane_on_the_keepers_own_socket(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    keyboard = Keyboard(record)
    server = keyboard.server = PaneServer(tmp_path / "s", record, keyboard)
    record.append(b"before\x1b[6n\r\n")
    server.start()
    async with hub_of() as hub:
        pane = hub.open("one", tmp_path / "s", columns=90, rows=20)
        watcher = Watcher(pane)
        await watcher.enters("live")
        await watcher.shows("before")
        await watcher.until(lambda: (pane.columns, pane.rows) == (90, 20))
        assert not keyboard.typed
        pane.send_key("h", "h")
        await watcher.shows("h")
        await server.ended(3)
        await watcher.enters("ended")
        assert pane.status == 3
        await server.ended(None)
        await keyboard.print(b"resumed")
        await watcher.enters("live")
        await watcher.shows("resumed")
    await server.close()
    record.close()


async def test_a_full_record_is_back_within_a_second_after_the_worker_died(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    keyboard = Keyboard(record)
    server = keyboard.server = PaneServer(tmp_path / "s", record, keyboard)
    line = b"\x1b[32m%08d\x1b[m \x1b[1msome\x1b[m coloured log output of a program\r\n"
    step = b"".join(line % number for number in range(1000))
    for _ in range(CAPACITY // len(step) + 1):
        record.append(step)
    record.append(b"the end")
    server.start()
    async with hub_of() as hub:
        await hub.start()
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        await watcher.shows("the end")
        before = watcher.lines()
        pid = pane.worker_pid
        assert pid is not None
        watcher.states.clear()
        begin = asyncio.get_running_loop().time()
        os.kill(pid, signal.SIGKILL)
        await watcher.until(lambda: watcher.states[-1:] == ["live"])
        await watcher.until(lambda: watcher.lines() == before)
        assert asyncio.get_running_loop().time() - begin < 1
    await server.close()
    record.close()
