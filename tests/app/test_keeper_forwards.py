"""Forwarded ports: bound to 127.0.0.1, remembered, bounded, gone when they are removed."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, cast

import asyncssh
import pytest
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED

from app.cli.ports import parse_forward
from app.client.checks import check_ports
from app.errors import AppError
from app.forwarding import FILE, MAX_FORWARDS, read_forwards, write_forwards
from app.keeper import forwards
from app.keeper.forwards import Forwards
from app.protocol import Forward
from tests.vm.machine_ssh_fakes import Server, guest, ssh_server
from vm.machine import ssh
from vm.machine.identity import Identity

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from app.keeper.links import Links


class FakeLinks:
    """Hands out one connection to a guest."""

    def __init__(self, connection: asyncssh.SSHClientConnection) -> None:
        self.connection = connection

    async def ssh(self) -> asyncssh.SSHClientConnection:
        return self.connection


class Guest(Server):
    """Each of its ports says which it is and echoes."""

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Callable[[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]], Awaitable[None]]:
        async def serve(
            reader: asyncssh.SSHReader[bytes], writer: asyncssh.SSHWriter[bytes]
        ) -> None:
            writer.write(f"{dest_host} {dest_port}\n".encode() + await reader.read())
            writer.close()

        return serve


class OlderGuest(Server):
    """Opens no connection, as the images of an earlier Cloche; its programs echo."""

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> bool:
        raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, "open failed")


async def echo(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.stdout.write(f"{process.command}\n".encode())
    process.stdout.write(await process.stdin.read())
    process.exit(0)


@contextlib.asynccontextmanager
async def forwarding(folder: Path, far: Server) -> AsyncGenerator[Forwards]:
    identity = Identity.new()
    options = {"process_factory": echo, "encoding": None, "line_editor": False}
    server = ssh_server(far, identity.host_key, **options)
    async with guest(folder / "s", identity.token, server):
        link = await ssh.connect(folder / "s", identity, 5.0)
        made = Forwards(folder, cast("Links", FakeLinks(link)))
        yield made
        await made.close()
        link.abort()
        await link.wait_closed()


@pytest.fixture
async def ports(tmp_path: Path) -> AsyncIterator[Forwards]:
    async with forwarding(tmp_path, Guest()) as made:
        yield made


async def ask(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    writer.write_eof()
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_connection_reaches_the_guests_loopback(ports: Forwards, tmp_path: Path) -> None:
    made = await ports.add(Forward(0, 80))
    assert ports.list() == [made]
    assert read_forwards(tmp_path) == (made,)
    assert await ask(made.host_port, b"hello") == b"127.0.0.1 80\nhello"
    await ports.remove(made.host_port)
    assert (ports.list(), read_forwards(tmp_path)) == ([], ())
    with pytest.raises(ConnectionRefusedError):
        await ask(made.host_port, b"")
    with pytest.raises(AppError):
        await ports.remove(made.host_port)


async def test_an_older_guest_passes_on_by_a_program(tmp_path: Path) -> None:
    async with forwarding(tmp_path, OlderGuest()) as ports:
        made = await ports.add(Forward(0, 80))
        expected = b"exec /bin/busybox nc 127.0.0.1 80\nhello"
        assert await ask(made.host_port, b"hello") == expected


async def test_connections_are_bounded(ports: Forwards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forwards, "MAX_CONNECTIONS", 0)
    monkeypatch.setattr(forwards, "MAX_WAITING", 0)
    made = await ports.add(Forward(0, 80))
    with contextlib.suppress(ConnectionResetError):  # what was sent may make a reset of the end
        assert await ask(made.host_port, b"x") == b""


async def test_more_at_once_than_there_is_room_for_wait_their_turn(ports: Forwards) -> None:
    made = await ports.add(Forward(0, 80))
    words = [b"%d" % number for number in range(3 * forwards.MAX_CONNECTIONS)]
    async with asyncio.timeout(60):
        said = await asyncio.gather(*(ask(made.host_port, word) for word in words))
    assert [word in answer for word, answer in zip(words, said, strict=True)] == [True] * len(words)


async def test_the_next_keeper_listens_on_and_says_what_it_cannot(
    ports: Forwards, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        write_forwards(tmp_path, [Forward(port, 80), Forward(0, 81)])
        await ports.restore()
    by_guest = {one.guest_port: one for one in ports.list()}
    assert str(port) in by_guest[80].problem
    assert (by_guest[81].problem, by_guest[81].host_port > 0) == ("", True)
    await ports.remove(port)
    await ports.close()
    with pytest.raises(ConnectionRefusedError):
        await ask(by_guest[81].host_port, b"")


@pytest.mark.parametrize("asked", [Forward(-1, 80), Forward(70_000, 80), Forward(0, 0)])
async def test_ports_that_there_are_not(ports: Forwards, asked: Forward) -> None:
    with pytest.raises(AppError) as caught:
        await ports.add(asked)
    assert caught.value.code == "usage"


async def test_a_session_has_so_many_ports(ports: Forwards, tmp_path: Path) -> None:
    for _ in range(MAX_FORWARDS):
        await ports.add(Forward(0, 80))
    with pytest.raises(AppError, match="at most"):
        await ports.add(Forward(0, 80))
    assert len(read_forwards(tmp_path)) == MAX_FORWARDS


def test_a_file_that_says_nothing_is_no_port(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"a": 1}')
    assert read_forwards(tmp_path) == ()


@pytest.mark.parametrize(
    "text", ["", "a", "1:", "1" * 5000, ":1", "1:2:3", "1:a", "-1:2", "\u0663:4"]
)
def test_text_that_names_no_ports(text: str) -> None:
    with pytest.raises(AppError) as caught:
        parse_forward(text)
    assert caught.value.code == "usage"


def test_ports_are_checked_before_a_session_is_made() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(AppError) as caught:
        check_ports([Forward(taken.getsockname()[1], 80)])
    assert caught.value.code == "busy"
    with pytest.raises(AppError):
        check_ports([Forward(0, 80)] * (MAX_FORWARDS + 1))
