"""Panes on the keeper's own `pane.sock`: both ends of the protocol as they ship."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from typing import TYPE_CHECKING

import pytest

from app.keeper.pane import PaneServer
from app.keeper.terminal_record import CAPACITY, TerminalRecord
from app.ui import pane as pane_module
from app.ui.pane_user import MIRRORED
from tests.doubles.pane_watch import Watcher, hub_of, spare_of

if TYPE_CHECKING:
    from pathlib import Path


class Keyboard:
    """The agent's terminal: remembers what it is sent and takes every size at once."""

    def __init__(self, record: TerminalRecord) -> None:
        self.record = record
        self.typed = bytearray()
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


async def test_a_full_record_is_back_by_the_spare_worker_after_one_died(tmp_path: Path) -> None:
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
        spare = await spare_of(hub)
        watcher.states.clear()
        os.kill(pid, signal.SIGKILL)
        await watcher.until(lambda: watcher.states[-1:] == ["live"])
        await watcher.until(lambda: watcher.lines() == before)
        assert pane.worker_pid == spare
    await server.close()
    record.close()


async def test_two_clients_one_holds_the_terminal_and_the_other_mirrors_it(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    keyboard = Keyboard(record)
    server = keyboard.server = PaneServer(tmp_path / "s", record, keyboard)
    server.start()
    async with hub_of() as hub:
        first = hub.open("one", tmp_path / "s", columns=90, rows=20)
        one = Watcher(first)
        await one.enters("live")
        second = hub.open("two", tmp_path / "s", columns=70, rows=30)
        two = Watcher(second)
        await two.until(lambda: second.mirrored)
        await two.until(lambda: (second.columns, second.rows) == (90, 20))
        second.send_key("x", "x")
        assert two.refused == [MIRRORED]
        first.send_key("a", "a")
        await one.shows("a")
        await two.shows("a")

        second.take_over()
        await one.until(lambda: first.mirrored)
        await two.until(lambda: not second.mirrored)
        await one.until(lambda: (first.columns, first.rows) == (70, 30))
        second.send_key("b", "b")
        await one.shows("ab")
        first.send_key("x", "x")
        assert keyboard.typed == b"ab"

        # a worker that dies takes nobody's place along
        assert second.worker_pid is not None
        os.kill(second.worker_pid, signal.SIGKILL)
        await two.until(lambda: two.states[-2:] == ["restarting", "live"])
        second.send_key("c", "c")
        await one.shows("abc")
        await one.until(lambda: first.mirrored)
        assert not second.mirrored

        second.close()
        await one.until(lambda: not first.mirrored)
        await one.until(lambda: (first.columns, first.rows) == (90, 20))
        first.send_key("d", "d")
        await one.shows("abcd")
    await server.close()
    record.close()


async def test_who_was_mirrored_does_not_take_the_terminal_by_coming_back(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    keyboard = Keyboard(record)
    server = keyboard.server = PaneServer(tmp_path / "s", record, keyboard)
    server.start()
    async with hub_of() as hub:
        holder, mirror = (hub.open(name, tmp_path / "s") for name in ("one", "two"))
        one, two = Watcher(holder), Watcher(mirror)
        await one.enters("live")
        await two.enters("live")
        holder.take_over()
        await two.until(lambda: mirror.mirrored)
        assert mirror.worker_pid is not None
        os.kill(mirror.worker_pid, signal.SIGKILL)
        await two.until(lambda: two.states[-2:] == ["restarting", "live"])
        await two.until(lambda: mirror.mirrored)
        assert not holder.mirrored
    await server.close()
    record.close()


async def test_who_only_watches_never_gets_the_terminal(tmp_path: Path) -> None:
    record = TerminalRecord(tmp_path, 80, 24)
    keyboard = Keyboard(record)
    server = keyboard.server = PaneServer(tmp_path / "s", record, keyboard)
    server.start()
    async with hub_of() as hub:
        pane = hub.open("one", tmp_path / "s", columns=100, rows=30, active=False)
        watcher = Watcher(pane)
        await watcher.enters("live")
        await keyboard.print(b"seen")
        await watcher.shows("seen")
        assert (pane.columns, pane.rows) == (80, 24)
        pane.set_active(True)
        await watcher.until(lambda: (pane.columns, pane.rows) == (100, 30))
    await server.close()
    record.close()


async def test_output_beyond_the_records_end_is_attached_to_as_a_sane_page(tmp_path: Path) -> None:
    """A full-screen program that switched everything on long before what the ring still holds."""
    record = TerminalRecord(tmp_path, 80, 24)
    keyboard = Keyboard(record)
    server = keyboard.server = PaneServer(tmp_path / "s", record, keyboard)
    record.append(b"a shell\r\n$ agent\r\n\x1b[?1049h\x1b[?2004h\x1b[?1003h\x1b[?1006h\x1b[?25l")
    rows = [
        b"\x1b[%d;1H\x1b[3%dmrow %d of it \xe6\xbc\xa2\x1b[K" % (y, y % 8, y) for y in range(1, 25)
    ]
    frame = b"\x1b[?2026h" + b"".join(rows) + b"\x1b[?2026l"
    for _ in range(CAPACITY // len(frame) + 1000):
        record.append(frame)
    server.start()
    async with hub_of() as hub:
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        await watcher.shows("row 24 of it")
        assert watcher.lines() == [f"row {y} of it 漢" for y in range(1, 25)]
        assert pane.modes.alternate
        assert pane.modes.mouse == "any"
        assert pane.modes.bracketed_paste
        assert pane.cursor is None
        await keyboard.print(b"\x1b[?1049l\x1b[?1003l$ ")
        await watcher.until(lambda: not pane.modes.alternate)
        assert not any("row" in line for line in watcher.lines())
    await server.close()
    record.close()


class SlowKeyboard(Keyboard):
    """A guest that reads now and then; it draws nothing of it."""

    def __init__(self, record: TerminalRecord, chance: random.Random) -> None:
        super().__init__(record)
        self._chance = chance

    async def send(self, data: bytes) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)
        self.typed += data
        await self.print(b".")


@pytest.mark.parametrize("seed", range(4))
async def test_workers_killed_at_random_cost_no_key_and_double_none(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pane_module, "CRASH_SPAN_S", 0.0)
    chance = random.Random(seed)
    record = TerminalRecord(tmp_path, 80, 24)
    keyboard = SlowKeyboard(record, chance)
    server = keyboard.server = PaneServer(tmp_path / "s", record, keyboard)
    server.start()
    typed = ""
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(server.close)
        hub = await stack.enter_async_context(hub_of())
        await hub.start()
        pane = hub.open("one", tmp_path / "s")
        watcher = Watcher(pane)
        await watcher.enters("live")
        for number in range(8):
            for _ in range(chance.randrange(40)):
                if chance.random() < 0.05:
                    text = f"<{number}>" * chance.randrange(1, 40_000)
                    pane.send_paste(text)
                    typed += text
                else:
                    c = chance.choice("abcdefgh")
                    pane.send_key(c, c)
                    typed += c
                if chance.random() < 0.3:
                    await asyncio.sleep(0)
            if pane.worker_pid is not None:
                os.kill(pane.worker_pid, chance.choice([signal.SIGKILL, signal.SIGSEGV]))
            if chance.random() < 0.5:
                await watcher.until(lambda: pane.state != "live")
                await watcher.enters("live")
        pane.send_key("z", "z")
        async with asyncio.timeout(30):
            while not keyboard.typed.endswith(b"z"):
                await watcher.next()
        assert bytes(keyboard.typed) == typed.encode() + b"z"
        assert watcher.refused == []
    record.close()
