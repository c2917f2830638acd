"""Ports of this host that lead to the guest's loopback, and nowhere else.

Each is bound to 127.0.0.1. The guest's sshd connects to the guest's own 127.0.0.1 for each
connection and passes the bytes on; the guest can open nothing on this host. The session
remembers its ports in `ports.json`: they are listened on while its machine runs, whoever its keeper
is, and end with the session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED

from app.errors import AppError
from app.forwarding import (
    HOST,
    MAX_FORWARDS,
    check_forward,
    not_bound,
    read_forwards,
    write_forwards,
)
from app.keeper.threads import end_tasks
from app.protocol import Forward
from vm.errors import LinkLost
from vm.machine.opening import OPEN_S, open_process

if TYPE_CHECKING:
    from pathlib import Path

    from app.keeper.links import Links

    _Ends = tuple[asyncssh.SSHReader[bytes], asyncssh.SSHWriter[bytes]]

log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 24
"""Connections of one session at a time: each may hold `vm.machine.ssh.WINDOW` bytes here."""

MAX_WAITING: Final = 256
"""Connections that wait for their turn; more are closed at once."""

CHUNK: Final = 1 << 16
END_S: Final = 2.0
"""Seconds in which the last bytes may still reach a client when its port is removed."""


@dataclass(slots=True)
class _Listening:
    server: asyncio.Server
    serving: set[asyncio.Task[None]]


class Forwards:
    """The forwarded ports of one running machine."""

    def __init__(self, folder: Path, links: Links) -> None:
        self._folder = folder
        self._links = links
        self._listening: dict[int, _Listening] = {}
        self._known: dict[int, Forward] = {}
        self._room = asyncio.Semaphore(MAX_CONNECTIONS)

    def list(self) -> list[Forward]:
        """Return the ports in order."""
        return [self._known[port] for port in sorted(self._known)]

    async def restore(self) -> None:
        """Listen again on what the session remembers; what cannot be says why in the list."""
        for forward in read_forwards(self._folder)[:MAX_FORWARDS]:
            try:
                check_forward(forward)
                await self._listen(forward)
            except AppError as error:
                log.warning("port %d is not forwarded: %s", forward.host_port, error.message)
                problem = Forward(forward.host_port, forward.guest_port, error.message)
                self._known[forward.host_port] = problem

    async def add(self, forward: Forward) -> Forward:
        """Listen and remember; host port 0 takes a free one. Raises AppError."""
        check_forward(forward)
        if len(self._known) >= MAX_FORWARDS:
            text = f"A session has at most {MAX_FORWARDS} forwarded ports."
            raise AppError("busy", text, "Remove one: cloche port ID --remove PORT")
        made = await self._listen(forward)
        write_forwards(self._folder, self.list())
        return made

    async def _listen(self, forward: Forward) -> Forward:
        serving: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(
                self._serve(forward.guest_port, reader, writer)
            )
            serving.add(task)
            task.add_done_callback(serving.discard)

        try:
            server = await asyncio.start_server(accept, HOST, forward.host_port, limit=CHUNK)
        except OSError as error:
            raise not_bound(forward.host_port, error) from error
        bound = int(server.sockets[0].getsockname()[1])
        self._listening[bound] = _Listening(server, serving)
        self._known[bound] = Forward(bound, forward.guest_port)
        return self._known[bound]

    async def remove(self, host_port: int) -> None:
        """Forget a port and end its connections. Raises AppError `not-found`."""
        if self._known.pop(host_port, None) is None:
            text = f"The session forwards no port {host_port}."
            raise AppError("not-found", text, "See them: cloche port ID")
        write_forwards(self._folder, self.list())
        found = self._listening.pop(host_port, None)
        if found is not None:
            await _end(found)

    async def close(self) -> None:
        """Listen no longer; the session remembers its ports."""
        while self._listening:
            await _end(self._listening.popitem()[1])

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return sum(len(one.serving) for one in self._listening.values())

    async def _serve(
        self, guest_port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            if self.connections <= MAX_CONNECTIONS + MAX_WAITING:
                async with self._room:
                    await _carry(await self._links.ssh(), guest_port, reader, writer)
        except (LinkLost, asyncssh.Error, OSError) as error:
            log.info("a connection to the guest's port %d ended: %s", guest_port, error)
        finally:
            writer.close()


async def _end(listening: _Listening) -> None:
    listening.server.close()  # from here on nobody is accepted
    await end_tasks(list(listening.serving))
    with contextlib.suppress(TimeoutError):  # newer Pythons wait for clients that read nothing
        async with asyncio.timeout(END_S):
            await listening.server.wait_closed()


async def _carry(
    ssh: asyncssh.SSHClientConnection,
    guest_port: int,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    from_guest, to_guest = await _connect(ssh, guest_port)
    going = asyncio.get_running_loop().create_task(_there(reader, to_guest))
    try:
        while data := await from_guest.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        await writer.drain()
    finally:
        await end_tasks([going])
        to_guest.close()


async def _connect(ssh: asyncssh.SSHClientConnection, guest_port: int) -> _Ends:
    """Connect to a port of the guest. Raises LinkLost, TimeoutError, asyncssh.Error."""
    try:
        async with asyncio.timeout(OPEN_S):
            return cast("_Ends", await ssh.open_connection(HOST, guest_port))  # pyright: ignore[reportUnknownMemberType]
    except asyncssh.ChannelOpenError as error:
        if error.code != OPEN_ADMINISTRATIVELY_PROHIBITED:
            raise
    # the sshd of an image of an earlier Cloche opens nothing, but it starts programs
    process = await open_process(ssh, f"exec /bin/busybox nc {HOST} {guest_port}")
    return process.stdout, process.stdin


async def _there(reader: asyncio.StreamReader, to_guest: asyncssh.SSHWriter[bytes]) -> None:
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await reader.read(CHUNK):
            to_guest.write(data)
            await to_guest.drain()
        to_guest.write_eof()
