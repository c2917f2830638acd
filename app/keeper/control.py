"""`control.sock`: an SSH server for the user's own clients.

The user name says what a client wants. `agent` and `agent-root` are the guest's: shell, commands
and sftp there, for any SSH client. Every other name is the session's: the subsystems for calls and
copies, commands in the guest, the agent's terminal on a PTY and the session's blobs over read-only
sftp.

It forwards nothing: no agent, no X11, no TCP, no sockets. Who may connect is decided by the
folder's mode and the peer's uid, so SSH asks for no key.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shlex
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, cast

import asyncssh
from asyncssh.constants import EXTENDED_DATA_STDERR, FXF_READ

from app.client.terminal import PaneClient
from app.copy_stream import COPY_SUBSYSTEM
from app.errors import EXIT_NOT_FOUND, AppError, naming
from app.keeper.carrying import NO_STATUS, ClientSession, carry
from app.keeper.guest_program import HOME, login_words, place_of, shell_words
from app.keeper.peers import PeerListener
from app.keeper.subsystem import serve_subsystem
from app.programs import FAILED, ROOT_VARIABLE, WORDS_VARIABLE, Fault
from app.protocol import SUBSYSTEM
from vm.errors import VMError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from asyncssh.channel import SSHChannel

    from app.keeper.guest_files import GuestFiles
    from app.keeper.guest_program import GuestProgram, Place
    from app.keeper.subsystem import Service

log = logging.getLogger(__name__)

LOGIN_S: Final = 10
SFTP_VERSION: Final = 3
"""What OpenSSH speaks."""

GUEST_ROOT: Final = "agent-root"
GUEST_USERS: Final = ("agent", GUEST_ROOT)
"""User names that mean the guest; any other is a client of the session. `root` is none of them: it
is what OpenSSH sends for whoever is root on the host and named nobody."""

_BLOB: Final = re.compile(rb"/?[0-9a-f]{2}/[0-9a-f]{64}\Z")

Process = ClientSession


class GuestPrograms(Protocol):
    """What the control server needs of the machine."""

    async def open_process(
        self,
        argv: tuple[str, ...],
        *,
        root: bool,
        term: tuple[str, int, int] | None,
        place: Place = HOME,
    ) -> GuestProgram:
        """Start a program in the agent's world with open streams."""
        ...

    async def open_files(self, *, root: bool) -> GuestFiles:
        """Start sftp in the agent's world."""
        ...

    async def copy(self, client: Process) -> int:
        """Serve one client's copy; the exit status of its session."""
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

    # what they refuse differs in its arguments, so each takes any
    setstat = lsetstat = fsetstat = _refuse  # type: ignore[assignment]  # any arguments
    remove = mkdir = rmdir = rename = posix_rename = _refuse  # type: ignore[assignment]  # any arguments
    readlink = symlink = link = lock = unlock = write = _refuse  # type: ignore[assignment]  # any arguments
    scandir = _refuse  # type: ignore[assignment]  # any arguments


class GuestSession(ClientSession):
    """A session in the guest: sftp is a stream like any other, for the guest speaks it."""

    def subsystem_requested(self, subsystem: str) -> bool:
        """Only sftp is there."""
        return subsystem == "sftp"

    def session_started(self) -> None:
        """Hand the streams to the server; asyncssh itself would look for an sftp server of ours."""
        if self.channel.get_subsystem() is None:
            super().session_started()
            return
        streams = (
            asyncssh.SSHReader[bytes](self, self.channel),
            asyncssh.SSHWriter[bytes](self, self.channel),
            asyncssh.SSHWriter[bytes](self, self.channel, EXTENDED_DATA_STDERR),
        )
        self._serving = asyncio.ensure_future(
            cast("Coroutine[None, None, None]", self._start_process(*streams))
        )


class _Gate(asyncssh.SSHServer):
    """Accepts the peer (its uid is checked already) and refuses every kind of forwarding."""

    def __init__(self, sessions: Callable[[str], Process]) -> None:
        self._sessions = sessions
        self._user = ""

    def begin_auth(self, username: str) -> bool:
        """Ask for no authentication; the name only says what is wanted."""
        self._user = username
        return False

    def session_requested(self) -> Process:
        """Return what serves a new session."""
        return self._sessions(self._user)


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
            server_factory=lambda: _Gate(self._session),
            server_host_keys=[host_key],
            encoding=None,
            line_editor=False,
            agent_forwarding=False,
            x11_forwarding=False,
            kex_algs=["curve25519-sha256"],
            compression_algs=["none"],
            login_timeout=LOGIN_S,
            server_version="cloche",
        )
        self._listener = PeerListener(path, self._serve)

    def start(self) -> None:
        """Begin to accept clients."""
        self._listener.start()

    @property
    def there(self) -> bool:
        """Whether clients can still find the socket."""
        return self._listener.there

    def move(self, path: Path) -> None:
        """Accept clients at another path, or at the same one again."""
        self._pane = path.with_name("pane.sock")
        self._listener.move(path)

    async def close(self) -> None:
        """End every connection."""
        await self._listener.close()

    @property
    def clients(self) -> int:
        """How many clients are connected."""
        return self._listener.peers

    def _session(self, user: str) -> Process:
        if user in GUEST_USERS:
            return GuestSession(partial(self._process, user=user), None, SFTP_VERSION, False)
        return Process(self._process, self._sftp, SFTP_VERSION, False)

    def _sftp(self, channel: SSHChannel[bytes]) -> asyncssh.SFTPServer:
        return ReadOnlyBlobs(cast("asyncssh.SSHServerChannel[bytes]", channel), self._blobs)

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

    async def _process(self, process: Process, user: str = "") -> None:
        try:
            process.exit(await self._serve_process(process, user))
        except (AppError, VMError) as error:
            self._fail(process, error)
        except (asyncssh.Error, OSError) as error:
            log.debug("a client's channel broke: %s", error)
            process.exit(NO_STATUS)

    def _fail(self, process: Process, error: AppError | VMError) -> None:
        """Say why there is no exit status: to our own clients apart from what a program says."""
        known = AppError(error.code, error.message, error.hint)
        known = naming(known, self._blobs.parent.name)
        if process.env.get(WORDS_VARIABLE) == "1":
            process.exit_with_signal(FAILED, msg=Fault.of(known).line)
            return
        hint = f"  {known.hint}\n" if known.hint else ""
        process.stderr.write(f"cloche: {known.message}\n{hint}".encode())
        process.exit(NO_STATUS)

    async def _serve_process(self, process: Process, user: str) -> int:
        root = user == GUEST_ROOT or process.env.get(ROOT_VARIABLE) == "1"
        if process.subsystem == "sftp":
            return await self._guest_files(process, root)
        if process.subsystem == COPY_SUBSYSTEM:
            return await self._programs.copy(process)
        if process.subsystem is not None:
            return await self._subsystem(process)
        if process.command is not None:
            return await self._program(process, _words(process), root)
        if user:
            return await self._program(process, login_words(), root)
        return await self._terminal(process)

    async def _subsystem(self, process: Process) -> int:
        if process.subsystem != SUBSYSTEM:
            return EXIT_NOT_FOUND
        await serve_subsystem(process.stdin, process.stdout, self._service)
        return 0

    async def _program(self, process: Process, argv: tuple[str, ...], root: bool) -> int:
        term = (process.term_type, *process.term_size[:2]) if process.term_type else None
        place = place_of(process.env)
        guest = await self._programs.open_process(argv, root=root, term=term, place=place)
        try:
            return await carry(process, guest)
        finally:
            await guest.end()

    async def _guest_files(self, process: Process, root: bool) -> int:
        files = await self._programs.open_files(root=root)
        try:
            await files.carry(process)
        finally:
            await files.close()
        return 0

    async def _terminal(self, process: Process) -> int:
        if not process.term_type:
            process.stderr.write(b"cloche: ask for a terminal (ssh -t)\n")
            return NO_STATUS
        client = await PaneClient.open(self._pane)
        client.resize(*process.term_size[:2])
        client.take()
        keys = asyncio.create_task(_pass_keys(process, client))
        try:
            return await _pass_output(process, client)
        finally:
            keys.cancel()
            await client.close()


def _words(process: Process) -> tuple[str, ...]:
    """Return what to run: Cloche's own clients send words, all others a line for the shell."""
    command = process.command or ""
    if process.env.get(WORDS_VARIABLE) != "1":
        return shell_words(command)
    try:
        return tuple(shlex.split(command))
    except ValueError as error:
        raise AppError("usage", f"The command is no list of words: {error}.") from error


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
    return NO_STATUS
