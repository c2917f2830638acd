"""SSH servers in place of the guest's, behind an honest preamble."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import asyncssh

from vm.machine import ssh
from vm.machine.identity import Identity
from vm.machine.link import MAGIC

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
    from pathlib import Path

    Program = Callable[[asyncssh.SSHServerProcess[bytes]], Coroutine[None, None, None]]


@contextlib.asynccontextmanager
async def guest(path: Path, token: str, serve: Callable[[socket.socket], Awaitable[None]]) -> (
    AsyncGenerator[None]
):  # fmt: skip
    """Answer the preamble honestly, then hand the bare socket to `serve`."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(4)
    server.setblocking(False)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(server)
            client.setblocking(False)
            await _greet(client, token)
            await serve(client)

    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        server.close()


async def _greet(client: socket.socket, token: str) -> None:
    loop, nonce, text = asyncio.get_running_loop(), "", b""
    while b"START" not in text:
        text += await loop.sock_recv(client, 4096)
        for line in text.splitlines():
            words = line.removeprefix(MAGIC).decode().split()
            if words[1:2] == ["HELLO"] and words[2] != nonce:
                nonce = words[2]
                await loop.sock_sendall(client, MAGIC + f"{token} READY {nonce}\n".encode())
    await loop.sock_sendall(client, MAGIC + f"{token} BEGIN {nonce}\n".encode())


class Server(asyncssh.SSHServer):
    """Takes every login; what is offered is kept."""

    auth = True

    def __init__(self) -> None:
        self.log: list[str] = []
        self.connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self.connection = conn

    def begin_auth(self, username: str) -> bool:
        self.log.append(username)
        return self.auth

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return True

    def password_auth_supported(self) -> bool:
        return True

    def validate_password(self, username: str, password: str) -> bool:
        self.log.append(password)
        return True


def ssh_server(server: Server, key: asyncssh.SSHKey, **options: Any) -> Any:
    async def serve(client: socket.socket) -> None:
        with contextlib.suppress(asyncssh.Error, OSError):
            connection = await asyncssh.run_server(
                client,
                server_factory=lambda: server,
                server_host_keys=[key],
                **options,
            )
            await connection.wait_closed()

    return serve


@contextlib.asynccontextmanager
async def connected(folder: Path, program: Program) -> AsyncGenerator[asyncssh.SSHClientConnection]:
    """A connection to a guest that runs `program` for every command."""
    identity = Identity.new()
    options = {"process_factory": program, "encoding": None, "line_editor": False}
    serve = ssh_server(Server(), identity.host_key, **options)
    async with guest(folder / "s", identity.token, serve):
        connection = await ssh.connect(folder / "s", identity, 5.0)
        try:
            yield connection
        finally:
            connection.abort()
            await connection.wait_closed()
