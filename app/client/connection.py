"""The SSH connection to one keeper and the JSON-RPC calls over it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import TYPE_CHECKING, Final, Self, TypeVar, cast

import asyncssh
import msgspec

from app.client.launch import ensure_keeper
from app.errors import AppError
from app.paths import check_sockets_private
from app.processes import lock_held
from app.protocol import PROTOCOL, SUBSYSTEM, Event
from app.records import KEEPER_LOCK
from app.rpc import Incoming, Lines, call_line, notice_line
from app.rpc_parts import MAX_VALUE, PIECE, WHOLE, LetGo, Parted, Put, Wanted, too_long

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

T = TypeVar("T")

if TYPE_CHECKING:
    _Streams = tuple[
        asyncssh.SSHWriter[bytes], asyncssh.SSHReader[bytes], asyncssh.SSHReader[bytes]
    ]

OPEN_S: Final = 20.0
"""Seconds for starting a keeper and getting through to it."""

WAKE_S: Final = 300.0
"""Seconds more for a keeper that is there and does not answer yet: it begins by comparing all that
its agent changed, which takes its time with ten thousand files on a busy host."""

CALL_S: Final = 30.0
RETRY_S: Final = 0.05
MAX_EVENTS: Final = 256


def keeper_lost() -> AppError:
    """Return the error of a connection that ended."""
    return AppError("keeper-lost", "The session's keeper went away.", "See: cloche ps")


def new_host_key() -> tuple[str, bytes]:
    """Return a fresh host key for one `control.sock`: its public line and its private text."""
    key = asyncssh.generate_private_key("ssh-ed25519", comment="cloche")  # pyright: ignore[reportUnknownMemberType]
    return key.export_public_key().decode().strip(), key.export_private_key()


async def connect(socket_path: Path, host_key: str) -> asyncssh.SSHClientConnection:
    """Connect to a keeper's SSH server and check its pinned key.

    Raises OSError when none is there, AppError `unsafe-folder` when it may be somebody else's.
    """
    check_sockets_private(socket_path.parent)
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    plain.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(plain, str(socket_path))
        return await asyncssh.connect(
            sock=plain,
            config=None,
            username="me",
            known_hosts=([asyncssh.import_public_key(host_key)], [], []),
            client_keys=None,
            agent_path=None,
            preferred_auth="none",
            kex_algs=["curve25519-sha256"],
            # the quickest by far where the processor knows AES, which copies are glad of
            encryption_algs=["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
            compression_algs=["none"],
            login_timeout=10,
        )
    except BaseException:
        plain.close()
        raise


async def open_subsystem(
    ssh: asyncssh.SSHClientConnection, name: str = SUBSYSTEM
) -> tuple[asyncssh.SSHWriter[bytes], asyncssh.SSHReader[bytes]]:
    """Open a subsystem's streams of bytes on a connection."""
    streams = await ssh.open_session(subsystem=name, encoding=None)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    writer, reader, _ = cast("_Streams", streams)
    return writer, reader


class Connection:
    """One conversation with one keeper."""

    def __init__(self, ssh: asyncssh.SSHClientConnection) -> None:
        self.ssh = ssh
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Incoming]] = {}
        self._events: asyncio.Queue[Event | None] = asyncio.Queue(MAX_EVENTS)
        self._writer: asyncssh.SSHWriter[bytes] | None = None
        self._putting = asyncio.Lock()
        """Long parameters go one after the other: two would take each other's room."""
        self._listening: asyncio.Task[None] | None = None
        self._closed = False

    @classmethod
    async def open(
        cls, folder: Path, sockets: Callable[[], Path], host_key: str, *, start: bool = True
    ) -> Self:
        """Reach the keeper of `folder`; with `start` one is started when none runs.

        `sockets` is asked again and again, for a new keeper may have them elsewhere.
        """
        deadline = time.monotonic() + OPEN_S
        last = deadline + WAKE_S
        while True:
            try:
                connection = cls(await connect(sockets() / "control.sock", host_key))
                await connection._greet()
                return connection
            except asyncssh.HostKeyNotVerifiable as error:
                raise AppError("protocol", "Somebody else answers as this keeper.") from error
            except (OSError, asyncssh.Error) as error:
                if not start:
                    raise keeper_lost() from error
                await ensure_keeper(folder, deadline)
            now = time.monotonic()
            if now > last or (now > deadline and not lock_held(folder / KEEPER_LOCK)):
                raise keeper_lost()
            await asyncio.sleep(RETRY_S)

    async def _greet(self) -> None:
        self._writer, reader = await open_subsystem(self.ssh)
        self._listening = asyncio.get_running_loop().create_task(self._listen(Lines(reader)))
        await self.call("hello", {"protocol": PROTOCOL, "version": ""})

    async def _listen(self, lines: Lines) -> None:
        try:
            while line := await lines.next():
                self._receive(msgspec.json.decode(line, type=Incoming))
        except (AppError, msgspec.MsgspecError, asyncssh.Error, OSError):
            pass  # whatever broke: the conversation is over, and every caller is told so below
        finally:
            self._closed = True
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(keeper_lost())
            self._push(None)

    def _receive(self, message: Incoming) -> None:
        if message.method == "event":
            self._push(msgspec.json.decode(message.params, type=Event))
            return
        future = self._waiting.get(message.id if message.id is not None else -1)
        if future is None or future.done():
            return
        if message.error is None:
            future.set_result(message)
            return
        data = message.error.data
        code, hint = (data.code, data.hint) if data else ("keeper", "")
        future.set_exception(AppError(code, message.error.message, hint))

    def _push(self, event: Event | None) -> None:
        if self._events.full():
            self._events.get_nowait()  # every event bears the whole state, so the newest will do
        self._events.put_nowait(event)

    async def call(self, method: str, params: object, timeout_s: float = CALL_S) -> msgspec.Raw:
        """Do one call and return its raw result; AppError when it fails or nobody answers.

        What is too long for one line crosses in pieces.
        """
        body = msgspec.json.encode(params)
        parted = None
        if len(body) > WHOLE:
            parted, body = await self._put(body), b"{}"
        answer = await self._exchange(method, msgspec.Raw(body), timeout_s, parted)
        return answer.result if answer.parted is None else await self._fetch(answer.parted)

    async def _put(self, body: bytes) -> Parted:
        """Bring a long parameter to the keeper."""
        if len(body) > MAX_VALUE:
            raise too_long(len(body))
        self._number += 1
        number = self._number
        async with self._putting:
            try:
                for at in range(0, len(body), PIECE):
                    await self._exchange("put", Put(number, body[at : at + PIECE]))
            except BaseException:  # broken off: nobody will name it
                self._let_go(LetGo(number))
                raise
        return Parted(number, len(body))

    def _let_go(self, named: LetGo) -> None:
        """Have the keeper forget what crossed in part."""
        if self._writer is not None and not self._closed:
            with contextlib.suppress(OSError, asyncssh.Error):  # then it hung up, and forgets all
                self._writer.write(notice_line("let_go", named))

    async def _fetch(self, parted: Parted) -> msgspec.Raw:
        """Return a long result."""
        if parted.size > MAX_VALUE:
            raise too_long(parted.size)
        found = bytearray()
        try:
            while len(found) < parted.size:
                answer = await self._exchange("piece", Wanted(parted.id, len(found)))
                piece = msgspec.json.decode(answer.result, type=bytes)
                if not piece:
                    raise AppError("protocol", "The keeper's answer has a piece that is empty.")
                found += piece
        except BaseException:  # broken off: nobody will fetch the rest
            self._let_go(LetGo(parted.id, result=True))
            raise
        return msgspec.Raw(bytes(found))

    async def _exchange(
        self, method: str, params: object, timeout_s: float = CALL_S, parted: Parted | None = None
    ) -> Incoming:
        """Send one line and return the line that answers it."""
        if self._writer is None or self._closed:
            raise keeper_lost()
        self._number += 1
        number = self._number
        future: asyncio.Future[Incoming] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._writer.write(call_line(number, method, params, parted))
            return await asyncio.wait_for(future, timeout_s)
        except TimeoutError as error:
            text = f"The keeper did not answer '{method}' in {timeout_s:.0f} s."
            raise AppError("timeout", text, "See: cloche ps") from error
        except (OSError, asyncssh.Error) as error:
            raise keeper_lost() from error
        finally:
            del self._waiting[number]

    async def ask(self, method: str, params: object, kind: type[T], timeout_s: float = CALL_S) -> T:
        """Do one call and decode its result."""
        raw = await self.call(method, params, timeout_s)
        try:
            return msgspec.json.decode(raw, type=kind)
        except msgspec.MsgspecError as error:
            raise AppError("protocol", f"The keeper's answer makes no sense: {error}") from error

    async def events(self) -> AsyncIterator[Event]:
        """Yield events; call `subscribe` first."""
        while (event := await self._events.get()) is not None:
            yield event
        raise keeper_lost()

    async def close(self) -> None:
        """Hang up."""
        self.ssh.abort()
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening
        await self.ssh.wait_closed()
