"""Commands and the agent's terminal against an SSH server whose programs are ours."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vm.machine_ssh_fakes import connected
from vm.errors import GuestProtocol, LinkLost
from vm.machine import commands
from vm.machine.commands import MAX_SCRIPT, Command, enter_words
from vm.machine.guest_exec import (
    GuestFailed,
    OldImage,
    run,
    run_toolkit,
    start_agent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    import asyncssh

    Process = asyncssh.SSHServerProcess[bytes]
    Program = Callable[[Process], Coroutine[None, None, None]]


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
        await start_agent(connection, command, 7, 80, 24)
    assert [words.partition("exec ")[0] for words in asked] == ["echo $$ >&2; "] * 2
    run_words = shlex.split(asked[0].partition("exec ")[2])
    assert run_words == [
        "/bin/enter", "--root", "--cgroup", "agent", "--cwd", "/w", "-e", "K=$v", "--", "a b", "'",
    ]  # fmt: skip
    start = shlex.split(asked[1].partition("exec ")[2])
    assert start == ["/bin/hold", "start", "7", "80", "24", *run_words[1:]]


async def test_a_holder_that_does_not_start(tmp_path: Path) -> None:
    async with connected(tmp_path, says(err=b"77\nno room\n", status=1)) as connection:
        with pytest.raises(GuestFailed, match="no room"):
            await start_agent(connection, Command(("x",)), 7, 80, 24)
    (tmp_path / "s").unlink()
    async with connected(tmp_path, says(err=b"77\nnot found\n", status=127)) as connection:
        with pytest.raises(OldImage, match="too old"):
            await start_agent(connection, Command(("x",)), 7, 80, 24)


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
        Command(("a\udcff",)),
        Command(("a", "x" * MAX_SCRIPT)),
        Command(("a",), env={"A": "'" * (MAX_SCRIPT // 5)}),
    ],
)
def test_what_no_argv_can_hold(command: Command) -> None:
    with pytest.raises(ValueError, match=r"NUL|no name|UTF-8|bytes"):
        enter_words(command)
