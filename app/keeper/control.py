"""`control.sock`: an SSH server for the user's own clients.

It offers the JSON-RPC subsystem, commands in the guest, the agent's terminal on a PTY and the
session's blobs over read-only sftp. It forwards nothing: no agent, no X11, no TCP, no sockets.
Who may connect is decided by the folder's mode and the peer's uid, so SSH asks for no key.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from typing import TYPE_CHECKING, Final, NoReturn, Protocol

import asyncssh
from asyncssh.constants import FXF_READ

from app.client.terminal import PaneClient
from app.errors import AppError
from app.keeper.peers import PeerListener
from app.keeper.subsystem import serve_subsystem
from app.protocol import SUBSYSTEM
from vm.errors import LinkLost, VMError
from vm.machine.commands import exit_code

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from app.keeper.guest_program import GuestProgram
    from app.keeper.subsystem import Service

log = logging.getLogger(__name__)

LOGIN_S: Final = 10
_BLOB: Final = re.compile(rb"/?[0-9a-f]{2}/[0-9a-f]{64}\Z")

Process = asyncssh.SSHServerProcess[bytes]


class GuestPrograms(Protocol):
    """What the control server needs of the machine."""

    async def open_process(
        self, command: str, *, root: bool, term: tuple[str, int, int] | None
    ) -> GuestProgram:
        """Start a shell command in the agent's world with open streams."""
        ...


class ReadOnlyBlobs(asyncssh.SFTPServer):
    """sftp that can read blobs by their exact names and do nothing else."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], root: Path) -> None:
        super().__init__(channel, chroot=os.fsencode(root))  # pyright: ignore[reportUnknownMemberType]

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        """Open a blob for reading."""
        if pflags & ~FXF_READ or not _BLOB.match(path):
            self._refuse()
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(self.map_path(path), flags), "rb", buffering=0)

    def _refuse(self, *_: object) -> NoReturn:
        raise asyncssh.SFTPPermissionDenied("blobs are only read here")

    def open56(
        self, path: bytes, desired_access: int, flags: int, attrs: asyncssh.SFTPAttrs
    ) -> object:
        """Refuse the opening of later protocol versions; version 3 is what is spoken."""
        self._refuse()

    setstat = lsetstat = fsetstat = _refuse  # type: ignore[assignment]
    remove = mkdir = rmdir = rename = posix_rename = _refuse  # type: ignore[assignment]
    readlink = symlink = link = lock = unlock = write = _refuse  # type: ignore[assignment]
    scandir = _refuse  # type: ignore[assignment]


class _Gate(asyncssh.SSHServer):
    """Accepts the peer (its uid is checked already) and refuses every kind of forwarding."""

    def begin_auth(self, username: str) -> bool:
        """Ask for no authentication; the user name means nothing."""
        return False


class ControlServer:
    """Serves clients on one socket until it is closed."""

    def __init__(
        self,
        path: Path,
        host_key: asyncssh.SSHKey,
        service: Service,
        programs: GuestPrograms,
        blobs: Path,
    ) -> None:
        self._service = service
        self._programs = programs
        self._blobs = blobs
        self._pane = path.with_name("pane.sock")
        self._options = asyncssh.SSHServerConnectionOptions(
            server_factory=_Gate,
            server_host_keys=[host_key],
            process_factory=self._process,
            sftp_factory=self._sftp,
            encoding=None,
            line_editor=False,
            agent_forwarding=False,
            x11_forwarding=False,
            allow_scp=False,
            kex_algs=["curve25519-sha256"],
            compression_algs=["none"],
            login_timeout=LOGIN_S,
            server_version="cloche",
        )
        self._listener = PeerListener(path, self._serve)

    def start(self) -> None:
        """Begin to accept clients."""
        self._listener.start()

    async def close(self) -> None:
        """End every connection."""
        await self._listener.close()

    @property
    def clients(self) -> int:
        """How many clients are connected."""
        return self._listener.peers

    def _sftp(self, channel: asyncssh.SSHServerChannel[bytes]) -> asyncssh.SFTPServer:
        return ReadOnlyBlobs(channel, self._blobs)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            ssh = await asyncssh.run_server(connection, config=None, options=self._options)
        except (asyncssh.Error, OSError) as error:
            log.info("a client did not get through the handshake: %s", error)
            connection.close()
            return
        try:
            await ssh.wait_closed()
        finally:
            ssh.abort()

    async def _process(self, process: Process) -> None:
        try:
            if process.subsystem is not None:
                await self._subsystem(process)
            elif process.command is not None:
                await self._command(process, process.command)
            else:
                await self._terminal(process)
        except (AppError, VMError) as error:
            process.stderr.write(f"cloche: {error.message}\n".encode())
            process.exit(125)
        except (asyncssh.Error, OSError) as error:
            log.debug("a client's channel broke: %s", error)
            process.exit(125)

    async def _subsystem(self, process: Process) -> None:
        if process.subsystem != SUBSYSTEM:
            process.exit(127)
            return
        await serve_subsystem(process.stdin, process.stdout, self._service)
        process.exit(0)

    async def _command(self, process: Process, command: str) -> None:
        term = None
        if process.term_type:
            term = (process.term_type, *process.term_size[:2])
        root = process.env.get("CLOCHE_ROOT") == "1"
        guest = await self._programs.open_process(command, root=root, term=term)
        running = guest.process
        try:
            await process.redirect(running.stdin, running.stdout, running.stderr)
            # a client that went away waits for nothing: its program must not run on
            jobs = [asyncio.ensure_future(end) for end in (running.wait(), process.wait_closed())]
            try:
                await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for job in jobs:
                    job.cancel()
                await asyncio.gather(*jobs, return_exceptions=True)
        finally:
            await guest.end()
        process.exit(_status(running))

    async def _terminal(self, process: Process) -> None:
        if not process.term_type:
            process.stderr.write(b"cloche: ask for a terminal (ssh -t)\n")
            process.exit(125)
            return
        client = await PaneClient.open(self._pane)
        client.resize(*process.term_size[:2])
        client.take()
        keys = asyncio.create_task(_pass_keys(process, client))
        try:
            process.exit(await _pass_output(process, client))
        finally:
            keys.cancel()
            await client.close()


def _status(ended: asyncssh.SSHClientProcess[bytes]) -> int:
    try:
        return exit_code(ended)
    except LinkLost:
        return 125


async def _pass_keys(process: Process, client: PaneClient) -> None:
    while True:
        try:
            data = await process.stdin.read(1 << 12)
        except asyncssh.TerminalSizeChanged as change:
            client.resize(change.width, change.height)
            continue
        except (asyncssh.BreakReceived, asyncssh.SignalReceived):
            continue
        if not data:
            return
        await client.send(data)


async def _pass_output(process: Process, client: PaneClient) -> int:
    while (event := await client.next()) is not None:
        if event.kind == "output":
            process.stdout.write(event.data)
            await process.stdout.drain()
        elif event.kind == "ended":
            return event.status & 0xFF
    return 125
