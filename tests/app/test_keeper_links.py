"""The keeper's way to its guest when the guest's sshd is gone, or answers nothing."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from app.keeper import links as links_module
from app.keeper.guest_files import GuestFiles
from app.keeper.links import Links
from tests.vm.machine_fakes import spec_for
from tests.vm.machine_ssh_fakes import Server, guest, ssh_server
from vm.errors import LinkLost
from vm.machine import guest_exec, opening, ssh
from vm.machine.guest_exec import Command
from vm.machine.identity import Identity
from vm.machine.link import ended_line

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator
    from pathlib import Path

    import asyncssh

    from vm.machine.spec import MachineSpec

WAIT_S = 30.0


class Guest:
    """A guest whose sshd can be made deaf, or end."""

    def __init__(self) -> None:
        self.logins = 0
        self.sockets: list[socket.socket] = []
        self._serve: Any = None

    def with_key(self, key: asyncssh.SSHKey) -> None:
        options = {"process_factory": _answers, "encoding": None, "line_editor": False}
        self._serve = ssh_server(Server(), key, **options)

    async def serve(self, client: socket.socket) -> None:
        self.logins += 1
        self.sockets.append(client.dup())
        near = self.sockets[-1]
        near.setblocking(False)
        await self._serve(client)


async def _answers(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.stderr.write(b"42\n")
    if "never" in (process.command or ""):
        await asyncio.Event().wait()
    process.exit(0)


@contextlib.asynccontextmanager
async def linked(folder: Path) -> AsyncGenerator[tuple[Links, Guest, MachineSpec, Identity]]:
    identity, far = Identity.new(), Guest()
    far.with_key(identity.host_key)
    spec = replace(spec_for(folder, "none"), runtime=folder)
    async with guest(spec.control_socket, identity.token, far.serve):
        links = Links(spec, identity, None)
        try:
            yield links, far, spec, identity
        finally:
            await links.close()
            for end in far.sockets:
                end.close()


async def _until_closed(connection: asyncssh.SSHClientConnection) -> None:
    async with asyncio.timeout(WAIT_S):
        await connection.wait_closed()


async def test_an_sshd_that_ended_is_known_at_once_and_the_next_command_gets_another(
    tmp_path: Path,
) -> None:
    async with linked(tmp_path) as (links, far, _, identity):
        first = await links.ssh()
        running = asyncio.create_task(guest_exec.run(first, Command(("never",)), timeout_s=WAIT_S))
        await asyncio.sleep(0)
        line = ended_line(identity.token)
        await asyncio.get_running_loop().sock_sendall(far.sockets[0], b"half a packet" + line[:9])
        await asyncio.get_running_loop().sock_sendall(far.sockets[0], line[9:])
        await _until_closed(first)
        with pytest.raises(LinkLost):
            await running
        assert (await guest_exec.run(await links.ssh(), Command(("true",)))).exit_code == 0
        assert far.logins == 2


async def test_a_connection_that_answers_nothing_ends_and_one_of_a_still_machine_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh, "KEEPALIVE_S", 0.05)
    monkeypatch.setattr(links_module, "WATCH_S", 0.01)
    still, looks = True, 0
    many = asyncio.Event()

    def stands_still() -> bool:
        nonlocal looks
        looks += 1
        if looks > 100:  # far longer than all questions take
            many.set()
        return still

    async with linked(tmp_path) as (links, _, _, _):
        connection = await links.ssh()
        watching = asyncio.create_task(links.watch(stands_still))
        _deafen(connection)
        async with asyncio.timeout(WAIT_S):
            await many.wait()
        assert not connection.is_closed()
        still = False
        await _until_closed(connection)
        assert await links.ssh() is not connection
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _deafen(connection: asyncssh.SSHClientConnection) -> None:
    """Let nothing arrive any more, as from an sshd that hangs."""
    transport = connection._transport  # pyright: ignore[reportPrivateUsage]
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()


async def test_nothing_waits_for_ever_on_a_deaf_sshd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "OPEN_S", 0.2)
    async with linked(tmp_path) as (links, _, _, _):
        connection = await links.ssh()
        _deafen(connection)
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(LinkLost, match=r"started no program within 0\.2 s"):
                await guest_exec.run(connection, Command(("true",)))
            with pytest.raises(LinkLost, match="started no sshd within"):
                await GuestFiles.open(links, root=False)


async def test_all_who_ask_share_one_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links_module, "CONNECT_S", 0.5)
    links = Links(replace(spec_for(tmp_path, "none"), runtime=tmp_path), Identity.new(), None)
    loop = asyncio.get_running_loop()
    began = loop.time()
    found = await asyncio.gather(*(links.ssh() for _ in range(40)), return_exceptions=True)
    assert all(isinstance(one, LinkLost) for one in found)
    assert loop.time() - began < 20 * 0.5  # one after the other they would take 40 times as long
    await links.close()
