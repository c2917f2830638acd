"""Every way in which a program in the guest may behave, through a keeper's socket, in one machine.

The machine is a restored one, so all of this takes seconds; what the command line makes of it is in
`test_session_guest_work.py`.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import asyncssh
import pytest

from app.client import programs
from app.client.connection import Connection, new_host_key
from app.keeper.control import ControlServer
from app.programs import Program
from tests.doubles.programs_only import ProgramsOnly
from vm.machine.guest_exec import Command, run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from app.client.session import SessionClient
    from tests.e2e.vmlab import LabVM

pytestmark = pytest.mark.vm

MEGABYTES_8 = 8_000_000
FLOOD = (
    "import os\n"
    "for n in range(125):\n"
    "    for stream in 1, 2:\n"
    "        left = 64000\n"
    "        while left: left -= os.write(stream, b'x' * left)\n"
)
WAIT_S = 120.0


@dataclass
class Said:
    """What one program did."""

    status: int
    out: bytes
    err: bytes
    timed_out: bool = False


@dataclass
class Client:
    """A client of the keeper, as `cloche exec` and `cloche sandbox` are."""

    connection: Connection

    async def run(
        self, program: Program, *, stdin: bytes | None = None, timeout_s: float | None = None
    ) -> Said:
        out, err = bytearray(), bytearray()

        async def take_out(data: bytes) -> None:
            out.extend(data)

        async def take_err(data: bytes) -> None:
            err.extend(data)

        source = _source(stdin)
        running = await programs.start(cast("SessionClient", self.connection), program)
        try:
            async with asyncio.timeout(WAIT_S):
                ended = await programs.carry(
                    running, stdin=source, out=take_out, err=take_err, timeout_s=timeout_s
                )
        finally:
            running.close()
            if source is not None:
                os.close(source)
        return Said(ended.status, bytes(out), bytes(err), ended.timed_out)

    async def sh(self, script: str, *, timeout_s: float | None = None) -> Said:
        return await self.run(Program(("sh", "-c", script)), timeout_s=timeout_s)


def _source(data: bytes | None) -> int | None:
    if data is None:
        return None
    file = os.memfd_create("stdin")
    os.write(file, data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


@pytest.fixture
async def client(forked_vm: LabVM) -> AsyncIterator[Client]:
    folder = forked_vm.folder / "keeper"  # no keeper's sockets lie where others may write
    folder.mkdir(mode=0o700)
    public, private = new_host_key()
    service = ProgramsOnly(forked_vm.ssh)
    server = ControlServer(
        folder / "control.sock", asyncssh.import_private_key(private), service, service, folder
    )
    server.start()
    try:
        connection = await Connection.open(folder, lambda: folder, public)
        yield Client(connection)
        await connection.close()
    finally:
        await server.close()


async def test_the_table_of_programs(client: Client, forked_vm: LabVM) -> None:
    # one machine and one test: a machine for each line would take minutes
    await _ends(client)
    await _names(client)
    await _places_and_words(client)
    await _inputs(client)
    await _output(client)
    await _deadline(client)
    await _collected(forked_vm)


async def _ends(client: Client) -> None:
    assert await client.sh("printf o; printf e >&2; exit 42") == Said(42, b"o", b"e")
    assert await client.sh("echo said; kill -9 $$") == Said(137, b"said\n", b"")
    assert await client.sh("kill -TERM $$") == Said(143, b"", b"")
    assert await client.sh("kill -SEGV $$") == Said(139, b"", b"")
    background = "sleep 1000 & echo started; echo err >&2; exit 3"
    assert await client.sh(background) == Said(3, b"started\n", b"err\n")


async def _names(client: Client) -> None:
    for argv, status, named in (
        (("/nope",), 127, b"/nope"),
        (("no-such-program", "x"), 127, b"no-such-program"),
        (("/etc/passwd/x",), 127, b"/etc/passwd/x"),
        (("/etc/passwd",), 126, b"/etc/passwd"),
        (("/tmp",), 126, b"/tmp"),
    ):
        said = await client.run(Program(argv))
        assert (said.status, said.out) == (status, b""), argv
        assert said.err.startswith(named + b": "), said
    nowhere = await client.run(Program(("true",), cwd="/no/where"))
    assert (nowhere.status, nowhere.out) == (125, b"")
    assert b"/no/where" in nowhere.err


async def _places_and_words(client: Client) -> None:
    words = ("a b", "", "$HOME", "'\"\\", "two\nlines", "-n", "ü")
    said = await client.run(Program(("printf", "%s|", *words)))
    assert said.out.decode().split("|")[:-1] == list(words)
    large = "".join(map(chr, range(1, 0x250))) * 60
    quotes = "'" * 900
    program = Program(("printf", "%s|%s", large, quotes), env={"A": "b" * 20_000})
    assert (await client.run(program)).out.decode() == f"{large}|{quotes}"
    script = 'pwd; id -u; echo "$A"; echo "${LANG}"'
    program = Program(("sh", "-c", script), root=True, cwd="/tmp", env={"A": "b=c\nd"})
    assert await client.run(program) == Said(0, b"/tmp\n0\nb=c\nd\nC.UTF-8\n", b"")
    assert (await client.sh("pwd; id -u")).out == b"/workspace\n1000\n"


async def _inputs(client: Client) -> None:
    for size in (0, 1, 65536, 1 << 20):
        said = await client.run(Program(("wc", "-c")), stdin=b"x" * size)
        assert said.out.strip() == str(size).encode()
    data = os.urandom(300_000)
    assert (await client.run(Program(("cat",)), stdin=data)).out == data
    assert await client.run(Program(("true",)), stdin=data) == Said(0, b"", b"")
    assert await client.run(Program(("cat",))) == Said(0, b"", b"")


async def _output(client: Client) -> None:
    said = await client.run(Program(("python3", "-c", FLOOD)))
    assert (said.status, len(said.out), len(said.err)) == (0, MEGABYTES_8, MEGABYTES_8)


async def _deadline(client: Client) -> None:
    script = "echo part; echo err >&2; sleep 7531 & sleep 7532"
    said = await client.sh(script, timeout_s=3)
    assert (said.timed_out, said.out, said.err) == (True, b"part\n", b"err\n")
    assert (await client.sh("pgrep -f 'sleep 753[12]'")).out == b""


async def _collected(vm: LabVM) -> None:
    """The same of a command whose output the keeper collects, as `exec --json` has it."""
    script = "printf o; printf e >&2; exit 42"
    done = await run(vm.ssh, Command(("sh", "-c", script)))
    assert (done.exit_code, done.stdout, done.stderr) == (42, b"o", b"e")
    done = await run(vm.ssh, Command(("python3", "-c", FLOOD)), max_output=1 << 16)
    assert (len(done.stdout), done.stdout_bytes, done.stdout_truncated) == (
        1 << 16,
        MEGABYTES_8,
        True,
    )
    assert (done.stderr_bytes, done.stderr_truncated) == (MEGABYTES_8, True)
    done = await run(vm.ssh, Command(("sh", "-c", "echo part; sleep 7533")), timeout_s=3.0)
    assert (done.exit_code, done.timed_out, done.stdout) == (124, True, b"part\n")
    done = await run(vm.ssh, Command(("sh", "-c", "sleep 1000 & echo started")))
    assert (done.exit_code, done.stdout) == (0, b"started\n")
    assert (await run(vm.ssh, Command(("sh", "-c", "kill -9 $$")))).exit_code == 137
    assert (await run(vm.ssh, Command(("/nope",)))).exit_code == 127
