"""The preamble against guests that answer late, wrongly, twice, with old bytes, or never."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vm.machine_fakes import greet, listening
from vm.errors import LinkLost
from vm.machine import link
from vm.machine.link import MAGIC, line, open_link

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "0123456789abcdef" * 2


async def _first_bytes(path: Path, count: int, deadline_s: float = 5.0) -> bytes:
    port = await open_link(path, TOKEN, deadline_s)
    try:
        data = b""
        while len(data) < count:
            data += await asyncio.get_running_loop().sock_recv(port, count - len(data))
        return data
    finally:
        port.close()


async def test_the_next_byte_is_the_links_first(tmp_path: Path) -> None:
    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer, TOKEN)
        writer.write(b"SSH-2.0-first\r\n")
        await reader.read()

    async with listening(tmp_path / "s", guest):
        assert await _first_bytes(tmp_path / "s", 15) == b"SSH-2.0-first\r\n"


async def test_stale_bytes_are_thrown_away(tmp_path: Path) -> None:
    """Old ciphertext, an old READY and an old BEGIN come first, glued to the true answers."""

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(os.urandom(300_000) + line(TOKEN, "READY", "0" * 32))
        writer.write(line(TOKEN, "BEGIN", "0" * 32) + MAGIC + TOKEN.encode())
        await greet(reader, writer, TOKEN)
        writer.write(b"clean")
        await reader.read()

    async with listening(tmp_path / "s", guest):
        assert await _first_bytes(tmp_path / "s", 5) == b"clean"


async def test_a_guest_that_hears_late_is_greeted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "HELLO_INTERVAL_S", 0.02)

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            await reader.readline()
        await greet(reader, writer, TOKEN)
        writer.write(b"late")
        await reader.read()

    async with listening(tmp_path / "s", guest):
        assert await _first_bytes(tmp_path / "s", 4) == b"late"


async def test_a_lost_start_is_tried_again_with_a_new_nonce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "START_PATIENCE_S", 0.1)
    nonces: list[bytes] = []

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = (await reader.readline()).split()
        nonces.append(hello[-1])
        writer.write(line(TOKEN, "READY", hello[-1].decode()))
        await greet(reader, writer, TOKEN)
        writer.write(b"second")
        await reader.read()

    async with listening(tmp_path / "s", guest):
        assert await _first_bytes(tmp_path / "s", 6) == b"second"
    assert len(nonces) == 1


async def test_silence_ends_at_the_deadline(tmp_path: Path) -> None:
    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(tmp_path / "s", guest):
        with pytest.raises(LinkLost, match=r"within 0\.2 s"):
            await open_link(tmp_path / "s", TOKEN, 0.2)


async def test_endless_noise_ends_at_the_deadline(tmp_path: Path) -> None:
    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"A" * 65536)
            await writer.drain()

    async with listening(tmp_path / "s", guest):
        with pytest.raises(LinkLost, match=r"within 0\.3 s"):
            await open_link(tmp_path / "s", TOKEN, 0.3)


async def test_a_guest_without_the_token_gets_nowhere(tmp_path: Path) -> None:
    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonce = (await reader.readline()).split()[-1].decode()
        writer.write(line("f" * 32, "READY", nonce) + line("f" * 32, "BEGIN", nonce))
        await reader.read()

    async with listening(tmp_path / "s", guest):
        with pytest.raises(LinkLost):
            await open_link(tmp_path / "s", TOKEN, 0.2)


async def test_a_closed_port_and_an_absent_one(tmp_path: Path) -> None:
    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()

    with pytest.raises(LinkLost, match="cannot be reached"):
        await open_link(tmp_path / "none", TOKEN, 1.0)
    async with listening(tmp_path / "s", guest):
        with pytest.raises(LinkLost):
            await open_link(tmp_path / "s", TOKEN, 5.0)


async def test_a_full_queue_of_callers_is_waited_for(tmp_path: Path) -> None:
    """Linux refuses the third caller of a queue of one; that is no failure."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "s"))
    server.listen(0)
    server.setblocking(False)
    first = socket.socket(socket.AF_UNIX)
    first.connect(str(tmp_path / "s"))
    second = socket.socket(socket.AF_UNIX)
    second.setblocking(False)
    waiting = asyncio.create_task(link.reach(second, tmp_path / "s"))
    await asyncio.sleep(0)
    assert not waiting.done()
    server.accept()[0].close()
    await asyncio.wait_for(waiting, 30.0)
    second.getpeername()
    for one in (first, second, server):
        one.close()


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=400), st.lists(st.integers(1, 90), max_size=12))
def test_any_noise_in_any_pieces(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, cuts: list[int]
) -> None:
    path = tmp_path_factory.mktemp("l") / "s"

    async def guest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonce = (await reader.readline()).split()[-1].decode()
        await _in_pieces(writer, noise + line(TOKEN, "READY", nonce), cuts)
        while b"START" not in await reader.readline():
            continue
        await _in_pieces(writer, noise + line(TOKEN, "BEGIN", nonce) + b"link", cuts)
        await reader.read()

    async def check() -> None:
        async with listening(path, guest):
            assert await _first_bytes(path, 4) == b"link"

    asyncio.run(check())


async def _in_pieces(writer: asyncio.StreamWriter, data: bytes, cuts: list[int]) -> None:
    for cut in cuts:
        writer.write(data[:cut])
        await asyncio.sleep(0)
        data = data[cut:]
    writer.write(data)
    await writer.drain()
