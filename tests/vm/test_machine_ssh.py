"""A hostile SSH server in place of the guest's: it gets nothing, opens nothing, ends in time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

import asyncssh
import pytest

from tests.vm.machine_fakes import listening
from tests.vm.machine_ssh_fakes import Server, guest, ssh_server
from vm.errors import LinkLost
from vm.machine import ssh
from vm.machine.identity import Identity, new_key

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Generator
    from pathlib import Path

BOUND_S = 3.0
PATIENCE_S = 60.0

_watched: list[str] = []
_watching = False


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if not _watching:
        return
    if event in ("open", "os.listdir", "os.scandir", "socket.connect", "subprocess.Popen"):
        _watched.append(f"{event} {arguments!r}")


sys.addaudithook(_audit)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home full of secrets and traps: keys, a configuration that runs a program, an agent."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_ed25519").write_bytes(new_key().export_private_key("openssh"))
    (folder / ".ssh" / "known_hosts").write_text("* ssh-ed25519 AAAA\n")
    (folder / ".ssh" / "config").write_text(
        f"Host *\n  ProxyCommand touch {folder}/ran\n  ForwardAgent yes\n  User evil\n"
    )
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(folder / "agent"))
    monkeypatch.setenv("DISPLAY", ":7")
    return folder


@contextlib.contextmanager
def untouched(home: Path) -> Generator[None]:
    """Fail when anything of the home is opened, listed, connected to or changed."""
    global _watching
    before = sorted(str(path) for path in home.rglob("*"))
    _watched.clear()
    _watching = True
    try:
        yield
    finally:
        _watching = False
    assert [line for line in _watched if str(home) in line] == []
    assert [line for line in _watched if "Popen" in line] == []
    assert sorted(str(path) for path in home.rglob("*")) == before


async def _refused(path: Path, identity: Identity, home: Path, match: str = ".") -> None:
    with untouched(home), pytest.raises(LinkLost, match=match):
        async with asyncio.timeout(PATIENCE_S):
            await ssh.connect(path, identity, BOUND_S)


async def test_an_honest_server_is_reached_without_the_users_files(
    tmp_path: Path, home: Path
) -> None:
    identity, server = Identity.new(), Server()
    async with guest(tmp_path / "s", identity.token, ssh_server(server, identity.host_key)):
        with untouched(home):
            connection = await ssh.connect(tmp_path / "s", identity, BOUND_S)
        assert server.log == ["cloche"]
        connection.abort()
        await connection.wait_closed()


async def test_a_wrong_host_key_learns_nothing(tmp_path: Path, home: Path) -> None:
    identity, server = Identity.new(), Server()
    other = new_key()
    async with guest(tmp_path / "s", identity.token, ssh_server(server, other)):
        await _refused(tmp_path / "s", identity, home, "host key")
    assert server.log == []


async def test_only_zlib(tmp_path: Path, home: Path) -> None:
    identity, server = Identity.new(), Server()
    serve = ssh_server(server, identity.host_key, compression_algs=["zlib"])
    async with guest(tmp_path / "s", identity.token, serve):
        await _refused(tmp_path / "s", identity, home)
    assert server.log == []


async def test_only_old_key_exchange(tmp_path: Path, home: Path) -> None:
    identity, server = Identity.new(), Server()
    serve = ssh_server(server, identity.host_key, kex_algs=["diffie-hellman-group14-sha256"])
    async with guest(tmp_path / "s", identity.token, serve):
        await _refused(tmp_path / "s", identity, home)


async def test_a_login_without_a_key_is_not_taken(tmp_path: Path, home: Path) -> None:
    identity, server = Identity.new(), Server()
    server.auth = False
    async with guest(tmp_path / "s", identity.token, ssh_server(server, identity.host_key)):
        await _refused(tmp_path / "s", identity, home)


class Asks(Server):
    """Wants a password, and nothing but a password."""

    def public_key_auth_supported(self) -> bool:
        return False


async def test_a_password_is_never_given(tmp_path: Path, home: Path) -> None:
    identity, server = Identity.new(), Asks()
    async with guest(tmp_path / "s", identity.token, ssh_server(server, identity.host_key)):
        await _refused(tmp_path / "s", identity, home, "refused this session's key")
    assert server.log == ["cloche"]


def _says(data: bytes, *, again: bool) -> Any:
    async def serve(client: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with client, contextlib.suppress(OSError):
            await loop.sock_sendall(client, data)
            while again:
                await loop.sock_sendall(client, data)
            while await loop.sock_recv(client, 65536):
                continue

    return serve


@pytest.mark.parametrize(
    ("data", "again"),
    [
        (b"", False),
        (b"SSH-2.0-quiet\r\n", False),
        (b"welcome\r\n" * 100, True),
        (b"no line end at all ", True),
        (b"SSH-2.0-" + b"x" * 4000, True),
        (b"SSH-2.0-b\xff\xfed\r\n", False),
        (b"SSH-2.0-big\r\n\xff\xff\xff\xff" + b"A" * 65536, True),
        (b"SSH-2.0-junk\r\n" + os.urandom(4096), True),
    ],
    ids=["silent", "version-only", "banner", "no-newline", "long", "not-ascii", "huge", "junk"],
)
async def test_bad_beginnings(tmp_path: Path, home: Path, data: bytes, again: bool) -> None:
    identity = Identity.new()
    async with guest(tmp_path / "s", identity.token, _says(data, again=again)):
        await _refused(tmp_path / "s", identity, home)


Tcp = asyncssh.SSHTCPSession[bytes]
Unix = asyncssh.SSHUNIXSession[bytes]


async def test_nothing_that_the_guest_opens_is_opened(tmp_path: Path, home: Path) -> None:
    """A guest with the true key asks for a TCP connection, a socket, the agent and the display."""
    identity, server = Identity.new(), Server()
    reached: list[str] = []

    async def trap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append("agent")

    async with (
        listening(home / "agent", trap),
        guest(tmp_path / "s", identity.token, ssh_server(server, identity.host_key)),
    ):
        with untouched(home):
            connection = await ssh.connect(tmp_path / "s", identity, BOUND_S)
            evil = server.connection
            assert evil is not None
            agent = evil.create_agent_channel()
            display = evil.create_x11_channel()
            attempts: list[Awaitable[object]] = [
                evil.create_connection(Tcp, "127.0.0.1", 22),
                evil.create_unix_connection(Unix, str(home / "agent")),
                agent.open(Unix),
                display.open(Tcp, "x", 1),
            ]
            for attempt in attempts:
                with pytest.raises(asyncssh.ChannelOpenError):
                    await attempt
        connection.abort()
        await connection.wait_closed()
    assert reached == []


async def test_a_guest_that_makes_us_answer_and_never_reads_is_cut_off(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "MAX_UNSENT", 1 << 16)
    identity, server = Identity.new(), Server()
    async with guest(tmp_path / "s", identity.token, ssh_server(server, identity.host_key)):
        connection = await ssh.connect(tmp_path / "s", identity, BOUND_S)
        evil = server.connection
        assert evil is not None
        vars(evil)["_transport"].pause_reading()
        request = len(b"ask").to_bytes(4, "big") + b"ask" + b"\x01"
        async with asyncio.timeout(20.0):
            while not connection.is_closed():
                for _ in range(200):
                    evil.send_packet(80, request)  # SSH_MSG_GLOBAL_REQUEST
                await asyncio.sleep(0)
        evil.abort()
        await connection.wait_closed()
