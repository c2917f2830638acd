"""One-off commands in the agent's world and in the toolkit.

Everything goes through the toolkit's `/bin/enter`, which is the only way into the agent's world.
sshd hands our words to a shell, so they are quoted; the guest's own shell prints its pid first,
which names the process group to end when a command runs out of time.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import asyncssh

from vm.errors import GuestProtocol, LinkLost, VMError
from vm.machine.ending import Flow, output_over
from vm.machine.opening import open_process
from vm.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vm.machine.shells import Shells

ENTER = "/bin/enter"

TIMED_OUT = 124
"""Exit code of a command that ran out of time, as timeout(1) has it."""

KILL_PATIENCE_S = 10.0

_CHUNK = 65536
_MAX_PID = 16

# RFC 4254, 6.10, and the names OpenSSH sends beyond it; the numbers are Linux x86-64's.
SIGNALS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9,
    "USR1": 10, "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
}  # fmt: skip

MAX_SCRIPT = 120 << 10
"""Bytes of a quoted command: it is one word of the guest's shell, of which Linux takes 128 KiB
(MAX_ARG_STRLEN in binfmts.h)."""

Process = asyncssh.SSHClientProcess[bytes]


class BadCommand(VMError, ValueError):
    """What no argument vector can hold."""

    code = "usage"
    way_out = "Put what is too much into a file: cloche cp FILE ID:/tmp/"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The command cannot be run: {reason}.")


@dataclass(frozen=True, slots=True)
class Command:
    """A program of the agent's world, run through `/bin/enter`."""

    argv: tuple[str, ...]
    root: bool = False
    cwd: str = "/workspace"
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cgroup: Literal["agent", "none"] = "none"


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended. `exit_code` is 128+N for a signal and 124 when it ran out of time."""

    exit_code: int
    timed_out: bool
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int

    @property
    def stdout_truncated(self) -> bool:
        """Whether `stdout` is not all that was printed."""
        return self.stdout_bytes > len(self.stdout)

    @property
    def stderr_truncated(self) -> bool:
        """Whether `stderr` is not all that was printed."""
        return self.stderr_bytes > len(self.stderr)


def enter_words(command: Command) -> list[str]:
    """Return the `/bin/enter` words for a command. Raises BadCommand."""
    words = [ENTER]
    if command.root:
        words.append("--root")
    words += ["--cgroup", command.cgroup, "--cwd", command.cwd]
    for name, value in command.env.items():
        if not name or "=" in name:
            raise BadCommand(f"{printable(name[:60])!r} is no name for an environment variable")
        words += ["-e", f"{name}={value}"]
    words += ["--", *command.argv]
    if not command.argv or any("\0" in word for word in words):
        raise BadCommand("a command needs a program and no NUL bytes")
    try:
        size = len(shlex.join(words).encode())
    except UnicodeEncodeError as error:
        raise BadCommand("its words are not UTF-8") from error
    if size > MAX_SCRIPT:
        raise BadCommand(f"it has {size} bytes with its environment, {MAX_SCRIPT} are possible")
    return words


async def run(
    connection: asyncssh.SSHClientConnection,
    command: Command,
    *,
    stdin: bytes = b"",
    max_output: int = 1 << 20,
    timeout_s: float = 60.0,
    shells: Shells | None = None,
) -> ExecResult:
    """Run a command to its end; keeps the first `max_output` bytes of each stream.

    `shells` of the same connection may have one ready for it. Raises LinkLost when the connection
    breaks, BadCommand.
    """
    return await run_toolkit(
        connection,
        shlex.join(enter_words(command)),
        stdin=stdin,
        max_output=max_output,
        timeout_s=timeout_s,
        shells=shells,
    )


async def run_toolkit(
    connection: asyncssh.SSHClientConnection,
    script: str,
    *,
    stdin: bytes = b"",
    max_output: int = 1 << 20,
    timeout_s: float = 60.0,
    shells: Shells | None = None,
) -> ExecResult:
    """Run one command of the toolkit's shell as root, outside the agent's world; else like `run`.

    `script` ends in the command that decides the exit code; never put guest text into it unquoted.
    """
    try:
        return await _run(connection, script, stdin, max_output, timeout_s, shells)
    except (asyncssh.Error, OSError) as error:
        raise LinkLost(f"The connection to the guest broke: {error}.") from error


async def _begin(
    connection: asyncssh.SSHClientConnection,
    script: str,
    shells: Shells | None,
    group: asyncio.Future[int],
) -> Process:
    """Start a script; `group` is told at once in a shell that waited, else by its first line."""
    if shells is not None and (ready := await shells.take(script)) is not None:
        group.set_result(ready.group)
        return ready.process
    return await open_process(connection, f"echo $$ >&2; exec {script}")


async def _run(
    connection: asyncssh.SSHClientConnection,
    script: str,
    stdin: bytes,
    max_output: int,
    timeout_s: float,
    shells: Shells | None,
) -> ExecResult:
    out, err = _Kept(max_output), _Kept(max_output)
    group: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    process: Process | None = None
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            process = await _begin(connection, script, shells, group)
            await _carry(process, stdin, out, err, group)
    except TimeoutError:
        timed_out = True
        if process is None:
            raise LinkLost(f"The guest did not start a program in {timeout_s:g} s.") from None
        await _kill(connection, process, group)
    except asyncio.CancelledError:
        if process is not None:
            # nobody waits for it any more, so it must not run on; bounded by KILL_PATIENCE_S
            await _kill(connection, process, group)
        raise
    except BaseException:
        if process is not None:
            process.close()
        raise
    code = TIMED_OUT if timed_out else exit_code(process)
    return ExecResult(code, timed_out, bytes(out.data), bytes(err.data), out.total, err.total)


@dataclass(slots=True)
class _Kept:
    """The first bytes of a stream, and how many there were."""

    cap: int
    data: bytearray = field(default_factory=bytearray)
    total: int = 0

    def take(self, chunk: bytes) -> None:
        self.data += chunk[: self.cap - len(self.data)]
        self.total += len(chunk)


async def _carry(
    process: Process, stdin: bytes, out: _Kept, err: _Kept, group: asyncio.Future[int]
) -> None:
    """Move all three streams until the program has ended."""
    flow = Flow()
    jobs = (
        _collect(process.stdout, out, flow),
        _collect_errors(process.stderr, err, flow, group),
        _feed(process, stdin),
    )
    tasks = [asyncio.create_task(job) for job in jobs]
    streams = asyncio.gather(*tasks[:2])
    try:
        if await output_over(process, streams, flow):
            await streams
            await process.wait_closed()
        else:  # a child that the program left behind holds them
            process.close()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _feed(process: Process, stdin: bytes) -> None:
    # a program may end without reading its input
    with contextlib.suppress(BrokenPipeError, ConnectionError):
        for start in range(0, len(stdin), _CHUNK):
            process.stdin.write(stdin[start : start + _CHUNK])
            await process.stdin.drain()
        process.stdin.write_eof()


async def _collect(stream: asyncssh.SSHReader[bytes], kept: _Kept, flow: Flow) -> None:
    while chunk := await stream.read(_CHUNK):
        flow.moved = time.monotonic()
        kept.take(chunk)


async def _collect_errors(
    stream: asyncssh.SSHReader[bytes], kept: _Kept, flow: Flow, group: asyncio.Future[int]
) -> None:
    """Take our shell's pid, where nobody has yet, off the front of stderr; collect the rest."""
    if group.done():
        return await _collect(stream, kept, flow)
    head = b""
    while b"\n" not in head and len(head) <= _MAX_PID:
        if not (chunk := await stream.read(_CHUNK)):
            return
        head += chunk
    pid, _, rest = head.partition(b"\n")
    if not pid.isdigit() or len(pid) > _MAX_PID:
        raise GuestProtocol("The guest's shell did not say who it is.")
    group.set_result(int(pid))
    kept.take(rest)
    await _collect(stream, kept, flow)


async def _kill(
    connection: asyncssh.SSHClientConnection, process: Process, group: asyncio.Future[int]
) -> None:
    """End the whole process group of a command (OpenSSH signals no process of root's)."""
    if group.done():
        # a lost connection takes its programs along: the guest ends them
        with contextlib.suppress(TimeoutError, LinkLost, asyncssh.Error, OSError):
            async with asyncio.timeout(KILL_PATIENCE_S):
                killer = await open_process(connection, f"kill -9 -- -{group.result()}")
                await killer.wait_closed()
                await process.wait_closed()
    process.close()


def exit_code(process: Process) -> int:
    """Return how an ended program ended, 128+N for a signal. Raises LinkLost when nobody knows."""
    if process.exit_signal is not None:
        return 128 + SIGNALS.get(process.exit_signal[0], 9)
    if process.exit_status is None:
        raise LinkLost("The connection to the guest broke before the program ended.")
    return process.exit_status
