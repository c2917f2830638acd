"""The agent in the guest: its start on a terminal that PID 1 holds, and the machine's end.

PID 1 keeps the terminal and what is printed on it, so the agent runs on when the connection goes;
see `held_terminal` for the way to it.
"""

from __future__ import annotations

import contextlib
import shlex
from typing import TYPE_CHECKING

from vm.errors import LinkLost, VMError
from vm.machine.commands import Command, enter_words, run_toolkit
from vm.machine.held_terminal import OldImage

if TYPE_CHECKING:
    import asyncssh

_NO_SUCH_PROGRAM = 127


class GuestFailed(VMError):
    """A part of the guest's toolkit did not do its work."""

    code = "guest-failed"
    way_out = "Boot the session anew: cloche stop ID && cloche resume ID"


async def start_agent(
    connection: asyncssh.SSHClientConnection,
    command: Command,
    run: int,
    columns: int,
    rows: int,
    *,
    timeout_s: float = 30.0,
) -> None:
    """Start the agent on a terminal of that size; it runs on when the connection goes.

    `run` names it for whoever attaches: any number from 1 to 2^63 that was not used before.
    Raises GuestFailed when it does not start, or another one runs; OldImage.
    """
    words = ["/bin/hold", "start", str(run), str(columns), str(rows), *enter_words(command)[1:]]
    result = await run_toolkit(connection, shlex.join(words), timeout_s=timeout_s)
    if result.exit_code == _NO_SUCH_PROGRAM:
        raise OldImage
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()[-300:]
        raise GuestFailed(f"The agent's terminal could not be started: {said}")


async def power_off(connection: asyncssh.SSHClientConnection) -> None:
    """Let the guest write its disks and end the machine; returns when that has begun."""
    with contextlib.suppress(LinkLost):  # the guest may be gone before it answers
        await run_toolkit(connection, "kill -TERM 1", timeout_s=30.0)
