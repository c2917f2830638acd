"""Listening on a Unix socket for the user's own processes and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import struct
from typing import TYPE_CHECKING

from app.errors import AppError
from app.keeper.threads import end_tasks

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

log = logging.getLogger(__name__)

_UCRED = struct.Struct("3i")
"""`struct ucred`: pid, uid, gid (unix(7))."""

BACKLOG = 16
MAX_PEERS = 64
"""Connections served at the same time on one socket."""


def peer_uid(connection: socket.socket) -> int:
    """Return the uid of the process that connected, as the kernel recorded it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    return int(_UCRED.unpack(raw)[1])


class PeerListener:
    """Accepts connections on `path` and serves each in a task of its own.

    `serve` gets a connected, non-blocking socket and owns it. A peer with another uid is closed at
    once, whatever the folder's mode says.
    """

    def __init__(self, path: Path, serve: Callable[[socket.socket], Awaitable[None]]) -> None:
        self._path = path
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()
        self._new: set[socket.socket] = set()
        self._socket: socket.socket | None = None

    @property
    def peers(self) -> int:
        """How many connections are being served."""
        return len(self._tasks)

    def start(self) -> None:
        """Bind and begin to accept; replaces a socket file that an ended keeper left."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._socket.bind(os.fspath(self._path))
        self._path.chmod(0o600)
        self._socket.listen(BACKLOG)
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._accept, self._socket)

    @property
    def there(self) -> bool:
        """Whether the socket can still be found at its path."""
        return self._path.is_socket()

    def move(self, path: Path) -> None:
        """Accept at another path, or at the same one again; connections that there are go on."""
        listening, self._socket = self._socket, None
        if listening is not None:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self._path = path
        self.start()

    def _accept(self, listening: socket.socket) -> None:
        """Take one connection; a task that waits for one would lose it when it is cancelled."""
        try:
            connection, _ = listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # it went away before it was taken
        connection.setblocking(False)
        if peer_uid(connection) != os.getuid() or len(self._tasks) >= MAX_PEERS:
            connection.close()
            return
        self._new.add(connection)
        task = asyncio.get_running_loop().create_task(self._one(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _one(self, connection: socket.socket) -> None:
        self._new.discard(connection)
        try:
            await self._serve(connection)
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # a peer that goes away in the middle of a frame is everyday life
        except AppError as error:
            log.info("a client of %s was cut off: %s", self._path.name, error.message)

    async def close(self) -> None:
        """Stop accepting, end every connection and remove the socket."""
        listening, self._socket = self._socket, None
        if listening is not None:
            asyncio.get_running_loop().remove_reader(listening)
        await end_tasks(list(self._tasks))
        for connection in self._new:
            connection.close()  # whose task was ended before it began
        self._new.clear()
        if listening is not None:
            listening.close()
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
