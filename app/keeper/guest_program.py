"""One program in the agent's world with open streams, and its certain end.

The guest's own shell says its pid first, as in `vm.machine.commands`: that names the process group
to end when the client goes away before the program does.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import asyncssh

from app.keeper.agent_terminal import ENVIRONMENT
from vm.errors import GuestProtocol, LinkLost
from vm.machine import guest_exec
from vm.machine.commands import enter_words

if TYPE_CHECKING:
    from vm.machine.commands import Process

log = logging.getLogger(__name__)

START_S: Final = 20.0
"""Seconds until the guest's shell must have said its pid."""

END_S: Final = 10.0
MAX_PID: Final = 16
"""Longest line in bytes that can be a pid."""


@dataclass(frozen=True, slots=True)
class GuestProgram:
    """A program that runs; `group` is its process group in the guest."""

    process: Process
    group: int
    ssh: asyncssh.SSHClientConnection

    async def end(self) -> None:
        """End the program and all its children if it still runs; returns within END_S."""
        ended = self.process.exit_status is not None or self.process.exit_signal is not None
        try:
            if not ended:
                await guest_exec.run_toolkit(self.ssh, f"kill -9 -- -{self.group}", timeout_s=END_S)
        except LinkLost as error:
            log.info("a program may run on in the guest: %s", error.message)
        finally:
            self.process.close()


async def start(
    ssh: asyncssh.SSHClientConnection,
    command: str,
    *,
    root: bool,
    term: tuple[str, int, int] | None,
) -> GuestProgram:
    """Run a shell command in the agent's world; with `term` (type, columns, rows) on a terminal.

    Raises LinkLost when the guest starts nothing, GuestProtocol when it does not say what.
    """
    words = guest_exec.Command(("bash", "-c", command), root=root, env=ENVIRONMENT)
    options: dict[str, Any] = {"request_pty": False}
    stream = ">&2"
    if term is not None:
        options, stream = {"term_type": term[0], "term_size": term[1:]}, ""
    script = f"echo $$ {stream}; exec {shlex.join(enter_words(words))}"
    try:
        process: Process = await ssh.create_process(script, encoding=None, **options)
    except (asyncssh.Error, OSError) as error:
        raise LinkLost(f"The guest started no program: {error}.") from error
    try:
        group = await _pid(process.stdout if term else process.stderr)
    except BaseException:
        process.close()
        raise
    return GuestProgram(process, group, ssh)


async def _pid(stream: asyncssh.SSHReader[bytes]) -> int:
    line = b""
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(START_S):
            while not line.endswith(b"\n") and len(line) < MAX_PID:
                line += await stream.readexactly(1)
    if not line.strip().isdigit():
        raise GuestProtocol("The guest's shell did not say who it is.")
    return int(line)
