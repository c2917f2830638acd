"""The one function that makes SSH connections to a guest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import asyncssh

    from vm.machine.identity import Identity


async def connect(
    path: Path, identity: Identity, deadline_s: float, username: str = "cloche"
) -> asyncssh.SSHClientConnection:
    """Open the control link at `path` and log in. Raises LinkLost; always ends in `deadline_s`."""
    raise NotImplementedError
