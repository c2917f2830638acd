"""The terminal's socket, spoken to over a real one by clients of all kinds."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from app import pane_frames as frames
from app.client.terminal import PaneClient, PaneEvent
from app.keeper import pane as pane_module
from app.keeper.pane import PaneServer
from app.keeper.terminal_record import TerminalRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class Keyboard:
    def __init__(self) -> None:
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.sizes: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        self.repaints = 0
        self.program = 1

    async def send(self, data: bytes) -> None:
        await self.sent.put(data)

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.put_nowait((columns, rows))

    def repaint(self) -> None:
        self.repaints += 1


class Bench:
    def __init__(self, folder: Path, capacity: int) -> None:
        self.path = folder / "pane.sock"
        self.record = TerminalRecord(folder, 80, 24, capacity)
        self.keyboard = Keyboard()
        self.server = PaneServer(self.path, self.record, self.keyboard)

    async def print(self, data: bytes) -> None:
        self.record.append(data)
        await self.server.changed()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path, 8 << 20)
    made.server.start()
    yield made
    await made.server.close()
    made.record.close()


async def chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield what arrives until the other end hangs up."""
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(1 << 16):
            yield chunk


async def collect(client: PaneClient, until: str) -> list[PaneEvent]:
    found: list[PaneEvent] = []
    async with asyncio.timeout(5):
        while (event := await client.next()) is not None:
            found.append(event)
            if event.kind == until:
                break
    return found


def text(events: list[PaneEvent]) -> bytes:
    return b"".join(event.data for event in events)


async def test_a_client_gets_size_record_and_then_the_live_end(bench: Bench) -> None:
    bench.record.append(b"before")
    client = await PaneClient.open(bench.path)
    replay = await collect(client, "live")
    assert replay[0] == PaneEvent("size", size=(80, 24))
    assert text(replay) == b"before"
    assert bench.keyboard.repaints == 1
    await bench.print(b"after")
    assert text(await collect(client, "output")) == b"after"
    await client.close()


async def test_changes_of_size_stand_between_the_bytes_they_belong_to(bench: Bench) -> None:
    bench.record.append(b"wide")
    bench.record.resize(40, 10)
    bench.record.append(b"narrow")
    client = await PaneClient.open(bench.path)
    kinds = [(event.kind, event.data, event.size) for event in await collect(client, "live")]
    assert kinds == [
        ("size", b"", (80, 24)),
        ("output", b"wide", (0, 0)),
        ("size", b"", (40, 10)),
        ("output", b"narrow", (0, 0)),
        ("live", b"", (0, 0)),
    ]
    await client.close()


async def test_input_and_size_reach_the_keyboard(bench: Bench) -> None:
    client = await PaneClient.open(bench.path)
    client.take()
    await client.send(b"ls\r")
    client.resize(120, 40)
    client.resize(0, 0)
    client.resize(100, 30)
    assert await asyncio.wait_for(bench.keyboard.sent.get(), 5) == b"ls\r"
    sizes = [await asyncio.wait_for(bench.keyboard.sizes.get(), 5) for _ in range(2)]
    assert sizes == [(120, 40), (100, 30)]
    await client.close()


async def test_the_end_is_told_and_a_new_beginning_too(bench: Bench) -> None:
    client = await PaneClient.open(bench.path)
    await collect(client, "live")
    await bench.server.ended(3)
    assert (await collect(client, "ended"))[-1].status == 3
    await bench.server.ended(None)
    await bench.print(b"again")
    assert text(await collect(client, "output")) == b"again"
    await client.close()


async def test_many_clients_each_get_everything(bench: Bench) -> None:
    bench.record.append(b"x" * 100_000)
    clients = [await PaneClient.open(bench.path) for _ in range(5)]
    replays = await asyncio.gather(*(collect(client, "live") for client in clients))
    assert {len(text(replay)) for replay in replays} == {100_000}
    for client in clients:
        await client.close()


async def test_a_client_that_acknowledges_nothing_holds_the_guest_only_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await asyncio.open_unix_connection(bench.path)
    await frames.read_frame(reader)
    await bench.print(b"y" * (pane_module.HIGH_WATER + 1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bench.server.room(), 0.05)
    quick = await PaneClient.open(bench.path)
    await collect(quick, "live")
    await asyncio.wait_for(bench.server.room(), 5)
    await quick.close()
    monkeypatch.setattr(pane_module, "PATIENCE_S", 0.0)
    await asyncio.wait_for(bench.server.room(), 5)
    writer.close()


async def test_a_client_behind_the_whole_ring_is_cut_off(tmp_path: Path) -> None:
    bench = Bench(tmp_path, 1 << 20)
    bench.server.start()
    reader, writer = await asyncio.open_unix_connection(bench.path, limit=1 << 12)
    await frames.read_frame(reader)
    for _ in range(24):
        await bench.print(b"z" * (1 << 18))
        await asyncio.wait_for(asyncio.sleep(0), 1)
    async with asyncio.timeout(10):
        rest = b"".join([chunk async for chunk in chunks(reader)])
    assert len(rest) < 24 << 18
    writer.close()
    await bench.server.close()
    bench.record.close()


@pytest.mark.parametrize(
    "bad", [frames.HEAD.pack(ord("I"), 1 << 30), frames.frame(ord("?")), frames.frame(ord("W"))]
)
async def test_a_client_that_breaks_the_protocol_is_cut_off(bench: Bench, bad: bytes) -> None:
    reader, writer = await asyncio.open_unix_connection(bench.path)
    writer.write(bad)
    async with asyncio.timeout(5):
        while await reader.read(1 << 16):
            pass
    writer.close()


async def test_a_peer_of_another_user_is_closed_at_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def somebody_else(_: object) -> int:
        return 65534

    monkeypatch.setattr("app.keeper.peers.peer_uid", somebody_else)
    reader, writer = await asyncio.open_unix_connection(bench.path)
    assert await asyncio.wait_for(reader.read(1), 5) == b""
    writer.close()
