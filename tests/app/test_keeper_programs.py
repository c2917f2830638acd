"""Commands with open streams through `control.sock`: a program outlives no client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import asyncssh
import pytest

from app.client.connection import Connection, new_host_key
from app.keeper.control import ControlServer
from tests.doubles.programs_only import ProgramsOnly
from tests.vm.machine_ssh_fakes import Server, guest, ssh_server
from vm.machine import ssh
from vm.machine.identity import Identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


class FakeGuest:
    """Runs one kind of program, which ends when its process group is killed or it reads `end`."""

    pid = b"77\n"

    def __init__(self) -> None:
        self.killed = asyncio.Event()

    async def program(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        if command.startswith("echo $$ >&2; exec kill -9 -- -77"):
            self.killed.set()
            process.stderr.write(b"78\n")
            process.exit(0)
            return
        (process.stdout if process.term_type else process.stderr).write(self.pid)
        process.stdout.write(b"out\n")
        if await process.stdin.readline() == b"end\n":
            process.exit(7)
        else:
            await self.killed.wait()
            process.exit_with_signal("KILL")


@pytest.fixture
def fake() -> FakeGuest:
    return FakeGuest()


@pytest.fixture
def services() -> list[ProgramsOnly]:
    """What serves the client, once there is one."""
    return []


@pytest.fixture
async def client(
    fake: FakeGuest, tmp_path: Path, services: list[ProgramsOnly]
) -> AsyncIterator[Connection]:
    identity = Identity.new()
    options = {"process_factory": fake.program, "encoding": None, "line_editor": False}
    public, private = new_host_key()
    async with guest(
        tmp_path / "s", identity.token, ssh_server(Server(), identity.host_key, **options)
    ):
        link = await ssh.connect(tmp_path / "s", identity, 5.0)
        service = ProgramsOnly(link)
        services.append(service)
        key = asyncssh.import_private_key(private)
        server = ControlServer(tmp_path / "control.sock", key, service, service, tmp_path)
        server.start()
        connection = await Connection.open(tmp_path, lambda: tmp_path, public)
        yield connection
        await connection.close()
        await server.close()
        link.abort()
        await link.wait_closed()


async def opened(client: Connection, **options: object) -> asyncssh.SSHClientProcess[bytes]:
    process = await client.ssh.create_process("sleep 1", encoding=None, **options)
    assert await process.stdout.readline() == b"out\n"
    return process


@pytest.mark.parametrize("options", [{}, {"term_type": "xterm", "term_size": (80, 24)}])
async def test_a_program_runs_to_its_end_and_its_pid_is_no_output(
    client: Connection, fake: FakeGuest, services: list[ProgramsOnly], options: dict[str, object]
) -> None:
    process = await opened(client, **options)
    process.stdin.write(b"end\n")
    done = await process.wait()
    assert (done.exit_status, done.stdout, done.stderr) == (7, b"", b"")
    assert not fake.killed.is_set()
    assert bool(services[0].typed) == bool(options)


@pytest.mark.parametrize("options", [{}, {"term_type": "xterm", "term_size": (80, 24)}])
async def test_a_client_that_goes_away_takes_its_program_along(
    client: Connection, fake: FakeGuest, options: dict[str, object]
) -> None:
    (await opened(client, **options)).close()
    async with asyncio.timeout(30):
        await fake.killed.wait()


async def test_a_lost_client_takes_its_program_along(client: Connection, fake: FakeGuest) -> None:
    await opened(client)
    client.ssh.abort()
    async with asyncio.timeout(30):
        await fake.killed.wait()


async def test_a_signal_becomes_128_and_more(client: Connection, fake: FakeGuest) -> None:
    process = await opened(client)
    fake.killed.set()
    process.stdin.write(b"go\n")
    assert (await process.wait()).exit_status == 137


async def test_a_guest_that_talks_nonsense_is_one_sentence(
    client: Connection, fake: FakeGuest
) -> None:
    fake.pid = b"hello\n"
    done = await client.ssh.run("true")
    assert done.exit_status == 125
    sentence, hint = str(done.stderr).splitlines()
    assert sentence == "cloche: The guest's shell did not say who it is."
    assert "cloche stop " in hint
    assert "ID" not in hint
