"""The shell that waits for its command: against a fake guest, and its line in a real shell."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vm.machine_ssh_fakes import Server, guest, ssh_server
from vm.machine import shells as shells_module
from vm.machine import ssh
from vm.machine.commands import Command, run
from vm.machine.identity import Identity
from vm.machine.shells import MAX_LINE, WAITS, Shells

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    import asyncssh

    Process = asyncssh.SSHServerProcess[bytes]

PATIENCE_S = 60.0


class Guest:
    """Runs commands by saying how they came; knows how many shells wait."""

    def __init__(self) -> None:
        self.waiting = self.direct = 0
        self.works = True
        self.news = asyncio.Event()

    async def program(self, process: Process) -> None:
        if process.command != WAITS:
            self.direct += 1
            process.stderr.write(b"77\n")
            process.stdout.write(b"direct ")
        elif not self.works:
            process.exit(2)
            return
        else:
            process.stderr.write(b"78\n")
            self.waiting += 1
            self.news.set()
            line = await process.stdin.readline()
            self.waiting -= 1
            if not line:
                return
            process.stdout.write(b"waited " + line.partition(b" -- ")[2])
        process.stdout.write(await process.stdin.read())
        process.exit(3)

    async def until_one_waits(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.waiting:
                self.news.clear()
                await self.news.wait()


@contextlib.asynccontextmanager
async def connected(folder: Path, fake: Guest) -> AsyncGenerator[asyncssh.SSHClientConnection]:
    identity = Identity.new()
    options = {"process_factory": fake.program, "encoding": None, "line_editor": False}
    serve = ssh_server(Server(), identity.host_key, **options)
    async with guest(folder / "s", identity.token, serve):
        connection = await ssh.connect(folder / "s", identity, PATIENCE_S)
        try:
            yield connection
        finally:
            connection.abort()
            await connection.wait_closed()


async def test_the_second_command_finds_a_shell_that_waits(tmp_path: Path) -> None:
    fake = Guest()
    async with connected(tmp_path, fake) as connection:
        shells = Shells(connection)
        for number in range(4):
            done = await run(connection, Command(("x",)), stdin=b"in", shells=shells)
            how = b"waited x\nin" if number else b"direct in"
            assert (done.exit_code, done.stdout, done.stderr) == (3, how, b"")
            await fake.until_one_waits()
        assert fake.direct == 1
        await shells.close()


@pytest.mark.parametrize("word", ["x" * MAX_LINE, "two\nlines"])
async def test_what_is_no_line_is_started_directly_and_the_shell_stays(
    tmp_path: Path, word: str
) -> None:
    fake = Guest()
    async with connected(tmp_path, fake) as connection:
        shells = Shells(connection)
        await run(connection, Command(("x",)), shells=shells)
        await fake.until_one_waits()
        done = await run(connection, Command((word,)), shells=shells)
        assert done.stdout.startswith(b"direct")
        assert (await run(connection, Command(("x",)), shells=shells)).stdout == b"waited x\n"
        await shells.close()


async def test_a_guest_whose_shells_do_not_wait_runs_commands_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shells_module, "AGAIN_S", 0.01)
    fake = Guest()
    fake.works = False
    async with connected(tmp_path, fake) as connection:
        shells = Shells(connection)
        for _ in range(4):
            done = await run(connection, Command(("x",)), shells=shells)
            assert (done.exit_code, done.stdout) == (3, b"direct ")
        await shells.close()


async def test_many_at_once_and_the_end_of_all(tmp_path: Path) -> None:
    fake = Guest()
    async with connected(tmp_path, fake) as connection:
        shells = Shells(connection)
        await run(connection, Command(("x",)), shells=shells)
        await fake.until_one_waits()
        many = (run(connection, Command(("x",)), shells=shells) for _ in range(10))
        done = await asyncio.gather(*many)
        assert sorted(it.stdout for it in done)[8:] == [b"direct ", b"waited x\n"]
        await shells.close()
        assert await shells.take("x") is None
        await asyncio.sleep(0)
        assert await shells.take("x") is None


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\n")), st.binary())
@settings(max_examples=25)
def test_the_line_is_run_as_it_is_and_the_input_after_it_is_left(text: str, rest: bytes) -> None:
    line = f"exec sh -c 'printf %s \"$1\"; exec cat' sh {shlex.quote(text)}\n"
    done = subprocess.run(
        ["sh", "-c", WAITS], input=line.encode() + rest, capture_output=True, check=True
    )
    assert done.stdout == text.encode() + rest
    assert done.stderr.strip().isdigit()
