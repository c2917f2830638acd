"""The wire to QEMU: frames with their lengths before them, and how it ends."""

from __future__ import annotations

import asyncio
import random
import socket
from typing import TYPE_CHECKING

import dns.message
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vm.egress_tap import DENY
from tests.vm.test_egress_gateway import Bench, question
from vm.egress import pace
from vm.egress.link import BUFFER, MAX_FRAME, MAX_WAITING, StreamLink, split

if TYPE_CHECKING:
    from pathlib import Path

FRAME = bytes(65_000)


@given(sizes=st.lists(st.integers(0, 200), max_size=8), cut=st.integers(0, 1000))
def test_frames_are_split_where_their_lengths_say(sizes: list[int], cut: int) -> None:
    whole = [bytes((size & 255,)) * size for size in sizes]
    data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in whole)[:cut]
    found, end = split(memoryview(data))
    assert [bytes(frame) for frame in found] == whole[: len(found)]
    assert end <= len(data)


class Wired:
    """A link whose other end is a socket of the test."""

    def __init__(self) -> None:
        ours, self.far = socket.socketpair()
        loop = asyncio.get_running_loop()
        self.link = StreamLink(ours, loop)
        self.got: list[bytes] = []
        self.drained = asyncio.Event()
        self.link.start(self._take, self.drained.set)
        self.far.setblocking(False)

    def _take(self, batch: list[memoryview]) -> None:
        self.got += [bytes(frame) for frame in batch]


async def test_frames_in_any_pieces_arrive_whole() -> None:
    wired = Wired()
    dice = random.Random(1)
    sent = [dice.randbytes(dice.choice((0, 1, 60, 65_014))) for _ in range(60)]
    data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in sent)
    loop = asyncio.get_running_loop()
    at = 0
    while at < len(data):
        size = dice.choice((1, 3, 1000, 100_000))
        await loop.sock_sendall(wired.far, data[at : at + size])
        at += size
    wired.far.close()
    assert await asyncio.wait_for(wired.link.closed, 30) == "the machine closed its network socket"
    assert wired.got == sent


async def test_a_length_that_cannot_be_ends_the_link() -> None:
    wired = Wired()
    wired.far.send((MAX_FRAME + 1).to_bytes(4, "big"))
    assert "longer" in await asyncio.wait_for(wired.link.closed, 30)
    wired.far.close()


async def test_a_guest_that_takes_nothing_costs_a_bounded_memory() -> None:
    wired = Wired()
    frame = bytes(65_000)
    taken = 0
    while wired.link.send(frame):
        taken += 1
        wired.link.flush()
    assert wired.link.congested
    assert MAX_WAITING // 65_004 <= taken < MAX_WAITING // 65_004 + 100
    loop = asyncio.get_running_loop()
    count = 0
    while count < taken * 65_004:
        count += len(await loop.sock_recv(wired.far, 1 << 20))
    await asyncio.wait_for(wired.drained.wait(), 30)
    assert not wired.link.congested
    wired.link.close()
    wired.far.close()


async def test_what_is_sent_at_a_pace_waits_and_goes_on_when_nothing_is_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "RATE", 1)
    wired = Wired()
    wired.link.keep_pace(True)
    assert not wired.link.congested
    assert wired.link.send(b"a frame")
    wired.link.flush()
    assert wired.link.congested
    assert (await asyncio.get_running_loop().sock_recv(wired.far, 100))[4:] == b"a frame"
    wired.link.keep_pace(False)
    await asyncio.wait_for(wired.drained.wait(), 30)
    assert not wired.link.congested
    wired.link.keep_pace(True)
    wired.link.send(b"another")
    wired.link.flush()
    wired.link.close()
    wired.far.close()


async def test_what_is_read_at_a_pace_takes_its_time_and_all_arrives() -> None:
    wired = Wired()
    loop = asyncio.get_running_loop()
    began = loop.time()
    wired.link.keep_pace(True)
    data = (len(FRAME).to_bytes(4, "big") + FRAME) * 30
    await loop.sock_sendall(wired.far, data)
    wired.far.close()
    await asyncio.wait_for(wired.link.closed, 60)
    assert wired.got == [FRAME] * 30
    assert loop.time() - began >= (len(data) - BUFFER) / pace.RATE


async def test_a_gateway_serves_a_machines_socket_until_it_ends(tmp_path: Path) -> None:
    bench = Bench()
    bench.judge.verdicts["c.example"] = DENY
    with pytest.raises(OSError, match="No such file"):
        await bench.gateway.serve(tmp_path / "net.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "net.sock"))
    listener.listen(1)
    listener.setblocking(False)
    serving = asyncio.create_task(bench.gateway.serve(tmp_path / "net.sock"))
    loop = asyncio.get_running_loop()
    far, _ = await loop.sock_accept(listener)
    far.setblocking(False)
    asked = question("c.example")
    await loop.sock_sendall(far, len(asked).to_bytes(4, "big") + asked)
    reply = await asyncio.wait_for(loop.sock_recv(far, 4096), 30)
    assert dns.message.from_wire(reply[4 + 42 :]).rcode() == 3
    far.close()
    assert "closed" in await asyncio.wait_for(serving, 30)
    serving = asyncio.create_task(bench.gateway.serve(tmp_path / "net.sock"))
    far, _ = await loop.sock_accept(listener)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    far.setblocking(False)
    assert await asyncio.wait_for(loop.sock_recv(far, 1), 30) == b""
    far.close()
    listener.close()
