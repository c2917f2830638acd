"""One program in the agent's world with open streams, and its certain end.

The guest's own shell says its pid first, as in `vm.machine.commands`: that names the process group
to end when the client goes away before the program does.
"""

from __future__ import annotations

import logging
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from app.errors import AppError
from app.keeper.agent_terminal import ENVIRONMENT
from app.programs import CWD_VARIABLE, ENV_VARIABLE
from vm.errors import LinkLost
from vm.machine import guest_exec
from vm.machine.commands import SIGNALS, enter_words
from vm.machine.ending import ended
from vm.machine.opening import open_process
from vm.machine.shells import shell_pid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import asyncssh

    from vm.machine.commands import Process
    from vm.machine.shells import Shells

log = logging.getLogger(__name__)

END_S: Final = 10.0

FIND_SHELL: Final = "command -v bash >/dev/null 2>&1 && exec bash"
"""An image need not have bash; `sh` it has."""


def shell_words(command: str) -> tuple[str, ...]:
    """Return the argument vector of a command line for the guest's shell."""
    return ("sh", "-c", f'{FIND_SHELL} -c "$1"; exec sh -c "$1"', "sh", command)


def login_words() -> tuple[str, ...]:
    """Return the argument vector of an interactive login shell."""
    return ("sh", "-c", f"{FIND_SHELL} -l; exec sh -l")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program starts in the guest, and what is in its environment besides the usual."""

    cwd: str = "/workspace"
    env: Mapping[str, str] = field(default_factory=dict[str, str])


HOME: Final = Place()


def place_of(asked: Mapping[str, str]) -> Place:
    """Return what Cloche's own clients say in their channel's environment (`app.programs`).

    Raises AppError `usage` for what makes no sense.
    """
    try:
        env = msgspec.json.decode(asked.get(ENV_VARIABLE, "{}"), type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise AppError("usage", f"The environment makes no sense: {error}.") from error
    return Place(asked.get(CWD_VARIABLE, HOME.cwd), env)


@dataclass(frozen=True, slots=True)
class GuestProgram:
    """A program that runs; `group` is its process group in the guest."""

    process: Process
    group: int
    ssh: asyncssh.SSHClientConnection
    typed: Callable[[], None] | None = None
    """Called for each piece of its input, where that comes from a terminal."""

    async def signal(self, name: str) -> None:
        """Send a signal (its name without SIG) to the whole process group; unknown ones to none."""
        if name in SIGNALS:
            command = f"kill -{SIGNALS[name]} -- -{self.group}"
            await guest_exec.run_toolkit(self.ssh, command, timeout_s=END_S)

    async def end(self) -> None:
        """End the program and all its children if it still runs; returns within END_S."""
        try:
            if not ended(self.process):
                await self.signal("KILL")
        except LinkLost as error:
            log.info("a program may run on in the guest: %s", error.message)
        finally:
            self.process.close()


async def start(
    ssh: asyncssh.SSHClientConnection,
    argv: tuple[str, ...],
    *,
    root: bool,
    term: tuple[str, int, int] | None,
    place: Place = HOME,
    shells: Shells | None = None,
    typed: Callable[[], None] | None = None,
) -> GuestProgram:
    """Run a program in the agent's world; with `term` (type, columns, rows) on a terminal.

    Without a terminal one of the connection's `shells` may be ready for it. `typed` is called for
    each piece of input that comes from a terminal.

    Raises LinkLost when the guest starts nothing, GuestProtocol when it does not say what,
    BadCommand for what no argument vector can hold.
    """
    environment = ENVIRONMENT if term is None else ENVIRONMENT | {"TERM": term[0]}
    command = guest_exec.Command(argv, root=root, cwd=place.cwd, env={**environment, **place.env})
    words = enter_words(command)
    if term is None and shells is not None:
        ready = await shells.take(shlex.join(words))
        if ready is not None:
            return GuestProgram(ready.process, ready.group, ssh)
    options: dict[str, Any] = {}
    stream = ">&2"
    if term is not None:
        options, stream = {"term_type": term[0], "term_size": term[1:]}, ""
    script = f"echo $$ {stream}; exec {shlex.join(words)}"
    process = await open_process(ssh, script, **options)
    try:
        group = await shell_pid(process.stdout if term else process.stderr)
    except BaseException:
        process.close()
        raise
    return GuestProgram(process, group, ssh, typed if term else None)
