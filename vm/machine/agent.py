"""The agent in the guest: its start under a terminal holder, its end, and its terminal.

The holder (dtach) keeps the agent alive when the connection goes; what is printed while nobody is
attached is lost, and a program is made to repaint by a change of size.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from typing import TYPE_CHECKING

import asyncssh

from vm.errors import LinkLost, VMError
from vm.machine.commands import Command, enter_words, run_toolkit

if TYPE_CHECKING:
    from vm.machine.commands import Process

AGENT_SOCKET = "/run/agent.sock"
AGENT_STATUS = "/run/agent.status"
ATTACH = f"test -S {AGENT_SOCKET} && exec dtach -a {AGENT_SOCKET} -E -z -r winch"

_CHUNK = 65536
_MAX_STATUS = 16


class GuestFailed(VMError):
    """A part of the guest's toolkit did not do its work."""

    code = "guest-failed"
    way_out = "Boot the session anew: cloche stop ID && cloche resume ID"


async def start_agent(
    connection: asyncssh.SSHClientConnection, command: Command, timeout_s: float = 30.0
) -> None:
    """Start the agent under its terminal holder; it runs on when the connection goes.

    Raises GuestFailed when the holder does not start.
    """
    enter = shlex.join(enter_words(command, AGENT_STATUS))
    script = f"rm -f {AGENT_STATUS}; exec dtach -n {AGENT_SOCKET} -r winch {enter}"
    result = await run_toolkit(connection, f"sh -c {shlex.quote(script)}", timeout_s=timeout_s)
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()[-300:]
        raise GuestFailed(f"The agent's terminal could not be started: {said}")


async def agent_status(connection: asyncssh.SSHClientConnection) -> int | None:
    """Return the agent's exit status, None while it runs (or never ran)."""
    result = await run_toolkit(connection, f"cat {AGENT_STATUS}", max_output=_MAX_STATUS)
    text = result.stdout.strip()
    return int(text) if result.exit_code == 0 and text.isdigit() else None


async def agent_running(connection: asyncssh.SSHClientConnection) -> bool:
    """Whether the agent's terminal holder is there."""
    result = await run_toolkit(connection, f"test -S {AGENT_SOCKET}")
    return result.exit_code == 0


async def power_off(connection: asyncssh.SSHClientConnection) -> None:
    """Let the guest write its disks and end the machine; returns when that has begun."""
    with contextlib.suppress(LinkLost):  # the guest may be gone before it answers
        await run_toolkit(connection, "kill -TERM 1", timeout_s=30.0)


class Terminal:
    """The agent's terminal, seen through one attachment."""

    def __init__(self, process: Process, first: bytes) -> None:
        self._process = process
        self._first = first

    async def read(self) -> bytes:
        """Return the next output, at most 64 KiB; empty at the end. Raises LinkLost."""
        first, self._first = self._first, b""
        return first or await _read(self._process)

    def write(self, data: bytes) -> None:
        """Send input; nothing happens after the end."""
        if not self._process.stdin.is_closing():
            self._process.stdin.write(data)

    async def drain(self) -> None:
        """Wait until the input sent so far has room. Raises LinkLost."""
        try:
            await self._process.stdin.drain()
        except (asyncssh.Error, OSError) as error:
            raise LinkLost("The agent's terminal is gone.") from error

    def resize(self, columns: int, rows: int) -> None:
        """Tell the agent its new size."""
        if not self._process.stdin.is_closing():
            self._process.change_terminal_size(columns, rows)

    async def close(self) -> None:
        """Detach; the agent runs on."""
        self._process.close()
        await self._process.wait_closed()


async def attach(
    connection: asyncssh.SSHClientConnection,
    columns: int,
    rows: int,
    *,
    term: str = "xterm-256color",
    timeout_s: float = 15.0,
) -> Terminal:
    """Attach to the agent's terminal. Raises LinkLost when there is no agent to attach to.

    Returns after the first output, which the terminal holder sends at once.
    """
    try:
        async with asyncio.timeout(timeout_s):
            process: Process = await connection.create_process(
                ATTACH, encoding=None, term_type=term, term_size=(columns, rows)
            )
            first = await _read(process)
    except TimeoutError as error:
        raise LinkLost(f"The agent's terminal did not answer within {timeout_s:g} s.") from error
    except (asyncssh.Error, OSError) as error:
        raise LinkLost(f"The agent's terminal could not be reached: {error}.") from error
    if not first:
        raise LinkLost(
            "There is no running agent to attach to.", "Start it again: cloche resume ID"
        )
    return Terminal(process, first)


async def _read(process: Process) -> bytes:
    try:
        return await process.stdout.read(_CHUNK)
    except (asyncssh.Error, OSError) as error:
        raise LinkLost("The agent's terminal is gone.") from error
