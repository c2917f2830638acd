"""sftp in the guest for any SSH client, as the agent or as the world's root.

The guest's own OpenSSH speaks it, in a chroot of the agent's world and in its own process, so
nothing of the image runs. The keeper's connection belongs to the toolkit's root; so another sshd is
started in one of its channels and logged in to as `agent`, by the session's key, which stays here.
The client's bytes are passed on unread.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import socket
from typing import TYPE_CHECKING, Final, Self, cast

import asyncssh

from app.keeper.threads import end_tasks
from vm.errors import LinkLost
from vm.machine.opening import OPEN_S, open_process

if TYPE_CHECKING:
    from app.keeper.links import Links

    ServerProcess = asyncssh.SSHServerProcess[bytes]
    Streams = tuple[asyncssh.SSHWriter[bytes], asyncssh.SSHReader[bytes], asyncssh.SSHReader[bytes]]

CHUNK: Final = 1 << 16
SSHD: Final = ("/usr/sbin/sshd", "-i", "-e")
ROOT_IN_WORLD: Final = (
    *("-o", "ChrootDirectory=/world"),
    *("-o", "ForceCommand=internal-sftp -d /workspace"),
)
"""What the toolkit's configuration says of `agent`, for its root."""


class GuestFiles:
    """One sftp conversation with the guest."""

    def __init__(
        self,
        outer: asyncssh.SSHClientProcess[bytes],
        relay: asyncio.Task[None],
        inner: asyncssh.SSHClientConnection,
        streams: Streams,
    ) -> None:
        self._outer = outer
        self._relay = relay
        self._inner = inner
        self._writer, self._reader, _ = streams

    @classmethod
    async def open(cls, links: Links, *, root: bool) -> Self:
        """Start the second sshd, log in and ask for sftp. Raises LinkLost."""
        ssh = await links.ssh()
        command = shlex.join((*SSHD, *(ROOT_IN_WORLD if root else ())))
        outer = await open_process(ssh, f"exec {command}", what="sshd")
        near, far = socket.socketpair()
        far.setblocking(False)
        relay = asyncio.get_running_loop().create_task(_relay(outer, far))
        try:
            inner = await links.log_in(near, "cloche" if root else "agent")
            async with asyncio.timeout(OPEN_S):
                opened = await inner.open_session(subsystem="sftp", encoding=None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            streams = cast("Streams", opened)
        except BaseException as error:
            await end_tasks([relay])
            outer.close()
            if isinstance(error, asyncssh.Error | OSError):
                raise LinkLost(f"The guest offers no sftp: {error}.") from error
            raise
        return cls(outer, relay, inner, streams)

    async def carry(self, client: ServerProcess) -> None:
        """Pass bytes both ways until the guest's end or the client's."""
        loop = asyncio.get_running_loop()
        there = loop.create_task(_pass(client.stdin, self._writer))
        back = loop.create_task(_pass(self._reader, client.stdout))
        gone = loop.create_task(client.wait_closed())
        try:
            await asyncio.wait({back, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end_tasks([there, back, gone])

    async def close(self) -> None:
        """End the conversation and the sshd that was started for it."""
        self._inner.abort()
        await end_tasks([self._relay])
        self._outer.close()


async def _pass(source: asyncssh.SSHReader[bytes], target: asyncssh.SSHWriter[bytes]) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(CHUNK):
            target.write(data)
            await target.drain()
        target.write_eof()


async def _relay(outer: asyncssh.SSHClientProcess[bytes], end: socket.socket) -> None:
    """Carry the inner connection's bytes through the channel of the outer one."""
    reader, writer = await asyncio.open_connection(sock=end)

    async def there() -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            while data := await reader.read(CHUNK):
                outer.stdin.write(data)
                await outer.stdin.drain()
            outer.stdin.write_eof()

    async def back() -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            while data := await outer.stdout.read(CHUNK):
                writer.write(data)
                await writer.drain()

    going = asyncio.get_running_loop().create_task(there())
    try:
        await back()
    finally:
        await end_tasks([going])
        writer.transport.abort()
