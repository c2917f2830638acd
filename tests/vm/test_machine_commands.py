"""Commands and the agent's terminal against an SSH server whose programs are ours."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from typing import TYPE_CHECKING

import asyncssh
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vm.machine_ssh_fakes import Server, guest, ssh_server
from vm.errors import GuestProtocol, LinkLost
from vm.machine import commands, ssh
from vm.machine.commands import Command, enter_words
from vm.machine.guest_exec import (
    GuestFailed,
    agent_running,
    agent_status,
    attach,
    run,
    run_toolkit,
    start_agent,
)
from vm.machine.identity import Identity

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine
    from pathlib import Path

    Process = asyncssh.SSHServerProcess[bytes]
    Program = Callable[[Process], Coroutine[None, None, None]]


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


def says(out: bytes = b"", err: bytes = b"77\n", status: int = 0) -> Program:
    async def program(process: Process) -> None:
        process.stdout.write(out)
        process.stderr.write(err)
        process.exit(status)

    return program


async def test_the_shells_pid_is_no_output(tmp_path: Path) -> None:
    async with connected(tmp_path, says(b"out", b"77\nerr", 3)) as connection:
        result = await run(connection, Command(("x",)))
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out", b"err")
    assert not result.stdout_truncated


@pytest.mark.parametrize("err", [b"hello\n", b"1" * 40 + b"\n", b"\n", b"12a\n"])
async def test_a_shell_that_is_none(tmp_path: Path, err: bytes) -> None:
    async with connected(tmp_path, says(err=err)) as connection:
        with pytest.raises(GuestProtocol):
            await run(connection, Command(("x",)))


async def test_signals_become_128_and_more(tmp_path: Path) -> None:
    async def program(process: Process) -> None:
        process.stderr.write(b"77\n")
        process.exit_with_signal("SEGV")

    async with connected(tmp_path, program) as connection:
        assert (await run(connection, Command(("x",)))).exit_code == 139


async def test_a_link_that_breaks_under_a_command(tmp_path: Path) -> None:
    async def program(process: Process) -> None:
        process.stderr.write(b"77\n")
        process.channel.get_connection().abort()

    async with connected(tmp_path, program) as connection:
        with pytest.raises(LinkLost):
            await run(connection, Command(("x",)))
        with pytest.raises(LinkLost):
            await run(connection, Command(("x",)))


async def test_a_guest_that_never_starts_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "KILL_PATIENCE_S", 0.1)

    async def program(process: Process) -> None:
        await process.stdin.read()

    async with connected(tmp_path, program) as connection:
        result = await run(connection, Command(("x",)), timeout_s=0.2)
    assert (result.exit_code, result.timed_out) == (124, True)


async def test_a_flood_is_counted_and_not_kept(tmp_path: Path) -> None:
    async def program(process: Process) -> None:
        process.stderr.write(b"77\n")
        for _ in range(200):
            process.stdout.write(b"x" * 30_000)
            await process.stdout.drain()
        process.exit(0)

    async with connected(tmp_path, program) as connection:
        result = await run(connection, Command(("x",)), max_output=100)
    assert (len(result.stdout), result.stdout_bytes) == (100, 6_000_000)


async def test_what_is_asked_of_the_guest(tmp_path: Path) -> None:
    asked: list[str] = []

    async def program(process: Process) -> None:
        asked.append(process.command or "")
        process.stderr.write(b"77\n")
        process.exit(0)

    command = Command(("a b", "'"), env={"K": "$v"}, cwd="/w", root=True, cgroup="agent")
    async with connected(tmp_path, program) as connection:
        await run(connection, command)
        await start_agent(connection, command)
        assert await agent_running(connection)
        assert await agent_status(connection) is None
    assert [words.partition("exec ")[0] for words in asked] == ["echo $$ >&2; "] * 4
    run_words = shlex.split(asked[0].partition("exec ")[2])
    assert run_words == [
        "/bin/enter", "--root", "--cgroup", "agent", "--cwd", "/w", "-e", "K=$v", "--", "a b", "'",
    ]  # fmt: skip
    start = shlex.split(shlex.split(asked[1].partition("exec ")[2])[2])
    assert start[start.index("dtach") : start.index("--root")] == [
        "dtach", "-n", "/run/agent.sock", "-r", "winch", "/bin/enter",
    ]  # fmt: skip
    assert start[start.index("--status") + 1] == "/run/agent.status"


@pytest.mark.parametrize(
    ("program", "expected"),
    [(says(b"7\n"), 7), (says(b"x"), None), (says(b"", status=1), None), (says(b"-1\n"), None)],
)
async def test_the_agents_status(tmp_path: Path, program: Program, expected: int | None) -> None:
    async with connected(tmp_path, program) as connection:
        assert await agent_status(connection) == expected


async def test_a_holder_that_does_not_start(tmp_path: Path) -> None:
    async with connected(tmp_path, says(err=b"77\nno room\n", status=1)) as connection:
        with pytest.raises(GuestFailed, match="no room"):
            await start_agent(connection, Command(("x",)))


async def test_a_terminal(tmp_path: Path) -> None:
    sizes: list[tuple[int, int]] = []

    async def program(process: Process) -> None:
        process.stdout.write(b"screen")
        while True:
            try:
                data = await process.stdin.read(100)
            except asyncssh.TerminalSizeChanged as change:
                sizes.append((change.width, change.height))
                continue
            process.stdout.write(data.upper())
            if data.endswith(b"q"):
                break
        process.exit(0)

    async with connected(tmp_path, program) as connection:
        terminal = await attach(connection, 80, 24)
        assert await terminal.read() == b"screen"
        terminal.resize(100, 30)
        terminal.write(b"abcq")
        await terminal.drain()
        assert await terminal.read() == b"ABCQ"
        assert await terminal.read() == b""
        terminal.write(b"after the end")
        terminal.resize(1, 1)
        await terminal.close()
    assert sizes == [(100, 30)]


async def test_no_agent_to_attach_to(tmp_path: Path) -> None:
    async with connected(tmp_path, says(err=b"", status=1)) as connection:
        with pytest.raises(LinkLost, match="no running agent"):
            await attach(connection, 80, 24)

    async def silent(process: Process) -> None:
        await process.stdin.read()

    (tmp_path / "s").unlink()
    async with connected(tmp_path, silent) as connection:
        with pytest.raises(LinkLost, match="did not answer"):
            await attach(connection, 80, 24, timeout_s=0.2)


async def test_many_commands_at_once(tmp_path: Path) -> None:
    async with connected(tmp_path, says(b"x")) as connection:
        results = await asyncio.gather(*(run_toolkit(connection, "x") for _ in range(20)))
    assert {result.stdout for result in results} == {b"x"}


text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(text, min_size=1, max_size=5), text)
def test_quoting_is_undone_exactly(argv: list[str], value: str) -> None:
    words = enter_words(Command(tuple(argv), env={"NAME": value}))
    assert shlex.split(shlex.join(words)) == words
    assert words[words.index("--") + 1 :] == argv


@pytest.mark.parametrize(
    "command",
    [
        Command(()),
        Command(("a\0b",)),
        Command(("a",), cwd="\0"),
        Command(("a",), env={"": "x"}),
        Command(("a",), env={"A=B": "x"}),
        Command(("a",), env={"A": "x\0"}),
    ],
)
def test_what_no_argv_can_hold(command: Command) -> None:
    with pytest.raises(ValueError, match=r"NUL|no name"):
        enter_words(command)
