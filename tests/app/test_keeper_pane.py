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
from app.keeper.pane_client import MAX_INPUT
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
    async with asyncio.timeout(30):
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
    assert await asyncio.wait_for(bench.keyboard.sent.get(), 30) == b"ls\r"
    sizes = [await asyncio.wait_for(bench.keyboard.sizes.get(), 30) for _ in range(2)]
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
    monkeypatch.setattr(pane_module, "PATIENCE_S", 600.0)
    reader, writer = await asyncio.open_unix_connection(bench.path)
    await frames.read_frame(reader)
    await bench.print(b"y" * (pane_module.HIGH_WATER + 1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(bench.server.room(), 0.05)
    quick = await PaneClient.open(bench.path)
    await collect(quick, "live")
    await asyncio.wait_for(bench.server.room(), 30)
    await quick.close()
    monkeypatch.setattr(pane_module, "PATIENCE_S", 0.0)
    await asyncio.wait_for(bench.server.room(), 30)
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
    async with asyncio.timeout(30):
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
    assert await asyncio.wait_for(reader.read(1), 30) == b""
    writer.close()


# -- who holds it ------------------------------------------------------------------------------


async def holder(client: PaneClient) -> tuple[bool, int]:
    event = (await collect(client, "holder"))[-1]
    return event.holds, event.clients


async def typed(bench: Bench) -> bytes:
    return await asyncio.wait_for(bench.keyboard.sent.get(), 30)


async def sized(bench: Bench) -> tuple[int, int]:
    size = await asyncio.wait_for(bench.keyboard.sizes.get(), 30)
    bench.record.resize(*size)
    return size


async def test_only_the_holders_input_and_size_count(bench: Bench) -> None:
    first, second = await PaneClient.open(bench.path), await PaneClient.open(bench.path)
    first.resize(100, 30)
    first.take()
    assert await holder(first) == (True, 2)
    assert await sized(bench) == (100, 30)
    second.resize(90, 20)
    await second.send(b"dropped")
    assert await holder(second) == (False, 2)
    await first.send(b"passed on")
    assert await typed(bench) == b"passed on"
    second.take()
    assert await holder(second) == (True, 2)
    assert await holder(first) == (False, 2)
    assert await sized(bench) == (90, 20)
    await first.send(b"dropped")
    assert await holder(first) == (False, 2)
    await second.close()
    assert await holder(first) == (True, 1)
    assert await sized(bench) == (100, 30)
    await first.send(b"again")
    assert await typed(bench) == b"again"
    assert bench.keyboard.sent.empty()
    await first.close()


async def test_whether_somebody_holds_it_is_told_once(tmp_path: Path) -> None:
    made, told = Bench(tmp_path, 1 << 20), list[bool]()
    made.server = PaneServer(made.path, made.record, made.keyboard, told.append)
    made.server.start()
    first, second = await PaneClient.open(made.path), await PaneClient.open(made.path)
    first.take()
    assert await holder(first) == (True, 2)
    second.take()
    assert await holder(second) == (True, 2)
    await first.close()
    assert await holder(second) == (True, 1)
    assert told == [True]
    await second.close()
    await made.server.close()
    assert told == [True, False]
    made.record.close()


async def test_a_client_that_never_asks_gets_nothing_but_output(bench: Bench) -> None:
    client = await PaneClient.open(bench.path)
    client.resize(100, 30)
    await client.send(b"dropped")
    assert await holder(client) == (False, 1)
    await bench.print(b"out")
    assert text(await collect(client, "output")) == b"out"
    assert bench.keyboard.sent.empty()
    assert bench.keyboard.sizes.empty()
    await client.close()


async def test_a_thousand_sizes_a_second_come_to_a_few_and_the_last_one_counts(
    bench: Bench,
) -> None:
    client = await PaneClient.open(bench.path)
    client.take()
    await holder(client)
    begin = asyncio.get_running_loop().time()
    for number in range(1000):
        client.resize(20 + number % 200, 10 + number % 50)
    client.resize(77, 33)
    seen = [await sized(bench)]
    while seen[-1] != (77, 33):
        seen.append(await sized(bench))
    spent = asyncio.get_running_loop().time() - begin
    assert len(seen) <= 2 + spent / pane_module.RESIZE_S
    await client.close()


# -- input ---------------------------------------------------------------------------------------


class StuckKeyboard(Keyboard):
    """A guest that reads nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.begun = asyncio.Event()

    async def send(self, data: bytes) -> None:
        self.begun.set()
        await self.go.wait()
        await super().send(data)


async def frame_of(reader: asyncio.StreamReader, kind: int) -> bytes:
    async with asyncio.timeout(30):
        while True:
            found, payload = await frames.read_frame(reader)
            if found == kind:
                return payload


async def test_input_is_counted_when_it_was_passed_on(bench: Bench) -> None:
    bench.server._keyboard = keyboard = StuckKeyboard()  # pyright: ignore[reportPrivateUsage]
    reader, writer = await asyncio.open_unix_connection(bench.path)
    assert frames.PROGRAM.unpack(await frame_of(reader, frames.PROGRAM_IS)) == (1,)
    writer.write(frames.frame(frames.NAME, frames.NAMED.pack(99, 5)))
    assert await passed(reader) == (5, 0)
    writer.write(frames.frame(frames.HOLD, bytes([frames.TAKE])))
    writer.write(frames.frame(frames.INPUT, b"abc") + frames.frame(frames.COUNTED, b"de"))
    writer.write(frames.frame(frames.COUNTED))
    await frame_of(reader, frames.HOLD)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(frames.read_frame(reader), 0.1)
    keyboard.go.set()
    done = count = 0
    while done < 7:
        done, more = await passed(reader)
        count += more
    assert (done, count) == (7, 5)
    writer.close()


async def passed(reader: asyncio.StreamReader) -> tuple[int, int]:
    done, count = frames.PASSED.unpack(await frame_of(reader, frames.TAKEN))
    return done, count


async def test_a_client_that_comes_back_hears_what_was_passed_on(bench: Bench) -> None:
    """Whether or not the keeper has seen its first connection end; nothing is passed on twice."""
    bench.server._keyboard = keyboard = StuckKeyboard()  # pyright: ignore[reportPrivateUsage]
    _, first = await asyncio.open_unix_connection(bench.path)
    first.write(frames.frame(frames.NAME, frames.NAMED.pack(99, 0)))
    first.write(frames.frame(frames.HOLD, bytes([frames.TAKE])))
    for text in (b"a", b"b", b"c"):
        first.write(frames.frame(frames.COUNTED, text))
    await asyncio.wait_for(keyboard.begun.wait(), 30)
    reader, second = await asyncio.open_unix_connection(bench.path)
    second.write(frames.frame(frames.NAME, frames.NAMED.pack(99, 0)))
    assert await passed(reader) == (1, 0)
    second.write(frames.frame(frames.HOLD, bytes([frames.TAKE])))
    for text in (b"b", b"c"):
        second.write(frames.frame(frames.COUNTED, text))
    keyboard.go.set()
    assert [await asyncio.wait_for(keyboard.sent.get(), 30) for _ in range(3)] == [b"a", b"b", b"c"]
    while (await passed(reader))[0] != 3:
        pass
    assert keyboard.sent.empty()
    for writer in (first, second):
        writer.close()


async def test_a_client_that_comes_back_holds_what_its_first_connection_held(bench: Bench) -> None:
    """The keeper has not seen that one end, and the client never heard whether it held."""
    bench.server._keyboard = keyboard = StuckKeyboard()  # pyright: ignore[reportPrivateUsage]
    keyboard.go.set()
    writers: list[asyncio.StreamWriter] = []
    for text in (b"a", b"b"):
        reader, writer = await asyncio.open_unix_connection(bench.path)
        writers.append(writer)
        writer.write(frames.frame(frames.HOLD, bytes([frames.WILLING])))
        writer.write(frames.frame(frames.NAME, frames.NAMED.pack(99, 0)))
        writer.write(frames.frame(frames.COUNTED, text))
        assert await asyncio.wait_for(keyboard.sent.get(), 30) == text
        while not frames.HOLDER.unpack(await frame_of(reader, frames.HOLD))[0]:
            pass
    for writer in writers:
        writer.close()


async def test_a_connected_client_is_not_forgotten_whoever_else_comes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.keeper.pane.MAX_COUNTS", 2)
    reader, first = await asyncio.open_unix_connection(bench.path)
    first.write(frames.frame(frames.HOLD, bytes([frames.TAKE])))
    first.write(frames.frame(frames.NAME, frames.NAMED.pack(99, 0)))
    first.write(frames.frame(frames.COUNTED, b"once"))
    while (await passed(reader))[0] != 1:
        pass
    for name in range(8):
        other_reader, other = await asyncio.open_unix_connection(bench.path)
        other.write(frames.frame(frames.NAME, frames.NAMED.pack(name, 0)))
        await passed(other_reader)
        other.close()
        if name == 6:
            first.close()
            await other_reader.read()
    reader, again = await asyncio.open_unix_connection(bench.path)
    again.write(frames.frame(frames.NAME, frames.NAMED.pack(99, 0)))
    assert (await passed(reader))[0] == 1
    assert len(bench.server._counts) <= 2 + bench.server.clients  # pyright: ignore[reportPrivateUsage]
    again.close()


async def test_what_is_being_passed_on_outlives_its_connection(bench: Bench) -> None:
    bench.server._keyboard = keyboard = StuckKeyboard()  # pyright: ignore[reportPrivateUsage]
    _, first = await asyncio.open_unix_connection(bench.path)
    first.write(frames.frame(frames.NAME, frames.NAMED.pack(99, 0)))
    first.write(frames.frame(frames.HOLD, bytes([frames.TAKE])))
    for text in (b"a", b"b"):
        first.write(frames.frame(frames.COUNTED, text))
    await asyncio.wait_for(keyboard.begun.wait(), 30)
    reader, second = await asyncio.open_unix_connection(bench.path)
    second.write(frames.frame(frames.HOLD, bytes([frames.WATCH])))
    await frame_of(reader, frames.HOLD)
    first.close()
    while frames.HOLDER.unpack(await frame_of(reader, frames.HOLD))[1] != 1:
        pass
    second.write(frames.frame(frames.NAME, frames.NAMED.pack(99, 0)))
    assert await passed(reader) == (1, 0)
    second.write(frames.frame(frames.HOLD, bytes([frames.TAKE])))
    second.write(frames.frame(frames.COUNTED, b"b"))
    await frame_of(reader, frames.HOLD)
    keyboard.go.set()
    assert [await asyncio.wait_for(keyboard.sent.get(), 30) for _ in range(2)] == [b"a", b"b"]
    second.close()


async def test_a_guest_that_reads_nothing_does_not_keep_acks_from_being_heard(
    bench: Bench,
) -> None:
    """Or a program that waits until its output is read would never read its input."""
    bench.server._keyboard = StuckKeyboard()  # pyright: ignore[reportPrivateUsage]
    client = await PaneClient.open(bench.path)
    client.take()
    await client.send(b"x" * (400 << 10))
    await bench.print(b"y" * (pane_module.HIGH_WATER + 1))
    read = 0
    while read < pane_module.HIGH_WATER + 1:
        read += len((await collect(client, "output"))[-1].data)
    await asyncio.wait_for(bench.server.room(), 30)
    await client.close()


async def test_input_that_nobody_reads_is_bounded(bench: Bench) -> None:
    bench.server._keyboard = keyboard = StuckKeyboard()  # pyright: ignore[reportPrivateUsage]
    client = await PaneClient.open(bench.path)
    client.take()
    await holder(client)
    sending = asyncio.ensure_future(client.send(b"z" * (16 << 20)))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(sending), 0.5)
    (served,) = bench.server._clients  # pyright: ignore[reportPrivateUsage]
    assert served._input_bytes <= MAX_INPUT  # pyright: ignore[reportPrivateUsage]
    keyboard.go.set()
    await asyncio.wait_for(sending, 10)
    arrived = 0
    while arrived < 16 << 20:
        arrived += len(await keyboard.sent.get())
    await client.close()


async def test_another_program_is_told_to_who_is_connected(bench: Bench) -> None:
    reader, writer = await asyncio.open_unix_connection(bench.path)
    assert frames.PROGRAM.unpack(await frame_of(reader, frames.PROGRAM_IS)) == (1,)
    bench.keyboard.program = 2
    await bench.print(b"new")
    assert frames.PROGRAM.unpack(await frame_of(reader, frames.PROGRAM_IS)) == (2,)
    writer.close()
