"""Copies between the host and the guest: the bulk port's stream, passed on to one client.

The keeper reads nothing of what it carries: the client writes the host's files, and checks what
the guest says. Pieces are small, so mirror passes get their turn in between.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from app.copy_stream import REQUEST_LENGTH, CopyFault, CopyRequest
from app.errors import AppError, app_error
from app.wire_text import to_bytes
from vm.errors import GuestProtocol, LinkLost, VMError
from vm.machine.bulk import MAX_COPY_PATH, MAX_WRITE, GuestError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    import asyncssh

    from app.keeper.links import Links
    from vm.machine.bulk import BulkClient

PIECE: Final = 1 << 20
"""Bytes that are asked of the guest at a time; at most two pieces are held of a copy."""

REQUEST_S: Final = 10.0


class Client(Protocol):
    """The client's session."""

    @property
    def stdin(self) -> asyncssh.SSHReader[bytes]:
        """What the client sends."""
        ...

    @property
    def stdout(self) -> asyncssh.SSHWriter[bytes]:
        """What the client gets."""
        ...

    @property
    def stderr(self) -> asyncssh.SSHWriter[bytes]:
        """Where faults go."""
        ...


class Copies:
    """The copies of one session, one at a time: the guest keeps one stream."""

    def __init__(self, links: Callable[[], Links]) -> None:
        self._links = links
        self._turn = asyncio.Lock()

    async def serve(self, client: Client) -> int:
        """Serve one client; the exit status of its session."""
        try:
            request = await _request(client)
            async with self._turn, _Copy(self._links()) as copy:
                await copy.begin(request)
                if request.into:
                    await _send(client, copy)
                await _receive(client, copy)
        except (AppError, VMError) as error:
            client.stderr.write(_fault(error))
            return 1
        return 0


async def _request(client: Client) -> CopyRequest:
    try:
        async with asyncio.timeout(REQUEST_S):
            (length,) = REQUEST_LENGTH.unpack(await client.stdin.readexactly(REQUEST_LENGTH.size))
            line = await client.stdin.readexactly(length)
        request = msgspec.json.decode(line, type=CopyRequest)
        path = to_bytes(request.path)
    except (TimeoutError, asyncio.IncompleteReadError, ValueError) as error:
        raise AppError("protocol", "A client asked for no copy.") from error
    if not path or len(path) > MAX_COPY_PATH or b"\0" in path:
        text = f"A path in the guest has 1 to {MAX_COPY_PATH} bytes."
        raise AppError("usage", text, "cloche cp ID:PATH DST")
    return request


def _fault(error: AppError | VMError) -> bytes:
    known = app_error(error)
    assert known is not None
    return msgspec.json.encode(CopyFault(known.code, known.message, known.hint))


async def _send(client: Client, copy: _Copy) -> None:
    while data := await client.stdin.read(MAX_WRITE):
        if not await copy.write(data):
            return  # it says why


async def _receive(client: Client, copy: _Copy) -> None:
    loop = asyncio.get_running_loop()
    reading = loop.create_task(copy.read())
    try:
        while True:
            pieces, ended = await reading
            if not ended:  # the guest goes on while the client takes what it said
                reading = loop.create_task(copy.read())
                await asyncio.sleep(0)  # its request goes out before this piece is encrypted
            client.stdout.write(b"".join(pieces))
            await client.stdout.drain()
            if ended:
                return
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


class _Copy:
    """One copy on the session's bulk link, from its start to its certain end."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._link: BulkClient | None = None

    async def __aenter__(self) -> _Copy:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._link is not None:
            with contextlib.suppress(VMError):
                async with self._bulk() as bulk:
                    await bulk.copy_close()

    async def begin(self, request: CopyRequest) -> None:
        path = to_bytes(request.path)
        try:
            async with self._bulk() as bulk:
                self._link = bulk
                await bulk.copy_open(path, root=request.root, into=request.into)
        except GuestError as error:
            if error.errno != errno.ENOSYS:
                raise
            raise AppError(
                "host-lacks",
                "This session's image is older than cloche cp.",
                "Build it, then start a new session: cloche image build",
            ) from error

    async def read(self) -> tuple[list[bytes], bool]:
        pieces: list[bytes] = []
        async with self._bulk() as bulk:
            return pieces, await bulk.copy_read(PIECE, pieces.append)

    async def write(self, data: bytes) -> bool:
        try:
            async with self._bulk() as bulk:
                await bulk.copy_write(data)
        except GuestError as error:
            if error.errno == errno.EPIPE:
                return False
            raise
        return True

    @contextlib.asynccontextmanager
    async def _bulk(self) -> AsyncGenerator[BulkClient]:
        async with self._links.bulk_lock:
            bulk = await self._links.bulk()
            if self._link not in (None, bulk):
                raise LinkLost("The link to the guest broke during the copy.")
            try:
                yield bulk
            except (LinkLost, GuestProtocol):
                await self._links.drop_bulk()
                raise
            except asyncio.CancelledError:
                # half an answer may be on its way: this link is over
                await self._links.drop_bulk()
                raise
