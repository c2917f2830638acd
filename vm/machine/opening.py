"""Starting a program over a connection to the guest, within a bound.

sshd may be gone without a word, or busy for ever; then an answer never comes.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import asyncssh

from vm.errors import LinkLost

OPEN_S: Final = 20.0
"""Seconds until a guest's sshd must have started a program; an emulated one takes under one."""

Process = asyncssh.SSHClientProcess[bytes]


async def open_process(
    connection: asyncssh.SSHClientConnection, script: str, *, what: str = "program", **options: Any
) -> Process:
    """Hand `script` to the guest's shell; `options` are asyncssh's, for a terminal.

    Raises LinkLost where nothing is started, which names `what` that would have been.
    """
    try:
        async with asyncio.timeout(OPEN_S):
            return await connection.create_process(
                script, encoding=None, **(options or {"request_pty": False})
            )
    except TimeoutError as error:
        raise LinkLost(f"The guest started no {what} within {OPEN_S:g} s.") from error
    except (asyncssh.Error, OSError) as error:
        raise LinkLost(f"The guest started no {what}: {error}.") from error
