"""Programs in the agent's world: one-off commands, the agent itself, its terminal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import asyncssh


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


async def run(
    connection: asyncssh.SSHClientConnection,
    command: Command,
    *,
    stdin: bytes = b"",
    max_output: int = 1 << 20,
    timeout_s: float = 60.0,
) -> ExecResult:
    """Run a command to its end; keeps the first `max_output` bytes of each stream.

    Raises LinkLost when the connection breaks, ValueError for an argument with a NUL byte.
    """
    raise NotImplementedError


async def start_agent(
    connection: asyncssh.SSHClientConnection, command: Command, timeout_s: float = 30.0
) -> None:
    """Start the agent under its terminal holder; it runs on when the connection goes."""
    raise NotImplementedError


async def agent_status(connection: asyncssh.SSHClientConnection) -> int | None:
    """Return the agent's exit status, None while it runs (or never ran)."""
    raise NotImplementedError


class Terminal:
    """The agent's terminal, seen through one attachment."""

    async def read(self) -> bytes:
        """Return the next output, at most 64 KiB; empty at the end."""
        raise NotImplementedError

    def write(self, data: bytes) -> None:
        """Send input."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Wait until the input sent so far has room."""
        raise NotImplementedError

    def resize(self, columns: int, rows: int) -> None:
        """Tell the agent its new size."""
        raise NotImplementedError

    async def close(self) -> None:
        """Detach; the agent runs on."""
        raise NotImplementedError


async def attach(
    connection: asyncssh.SSHClientConnection,
    columns: int,
    rows: int,
    *,
    term: str = "xterm-256color",
    timeout_s: float = 15.0,
) -> Terminal:
    """Attach to the agent's terminal. Raises LinkLost when there is no agent to attach to."""
    raise NotImplementedError
