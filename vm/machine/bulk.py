"""Client of the port `cloche.bulk`: listings of the upper dirs and contents of files.

Whatever arrives is the word of a guest that may be hostile: lengths are checked before anything is
kept, and a violation ends the link. `bulk_frames` has what the bytes mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import TYPE_CHECKING, Literal

from vm.errors import GuestProtocol, LinkLost
from vm.machine.bulk_frames import (
    ACTIVITY,
    DATA,
    END,
    LENGTH,
    Activity,
    Fetched,
    GuestError,
    Listing,
    frame,
    guest_error,
    list_end,
    unpack,
)
from vm.machine.entries import MAX_FRAME, Entries, EntryReader, UpperEntry
from vm.machine.link import open_link

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

__all__ = ["Activity", "BulkClient", "Fetched", "GuestError", "Listing", "Tree", "UpperEntry"]

Tree = Literal["workspace", "root"]
TREES: dict[Tree, int] = {"workspace": 0, "root": 1}

MAX_DATA = 65536
"""Bytes of content in one `d` frame."""

MAX_WRITE = 8 * MAX_DATA
"""Bytes for a copy that are on their way at a time; of requests the guest takes twice as much."""

MAX_PATH = 65535
"""A request counts the path's bytes in 16 bits."""

MAX_COPY_PATH = 4095
"""Bytes of the path that a copy begins at; Linux itself takes no longer one."""

COPY_ROOT, COPY_INTO = 1, 2
COPY_WAIT_MS = 500
"""How long the guest waits for a copy to say something."""

_READ_LIMIT = 1 << 18


class BulkClient:
    """One bulk link. Calls wait for each other; after LinkLost or GuestProtocol make a new one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()
        self._last_id = 0

    @classmethod
    async def connect(cls, path: Path, token: str, deadline_s: float) -> BulkClient:
        """Open the bulk link. Raises LinkLost."""
        port = await open_link(path, token, deadline_s)
        return cls(*await asyncio.open_connection(sock=port, limit=_READ_LIMIT))

    async def list_upper(
        self,
        tree: Tree,
        max_entries: int,
        max_bytes: int,
        timeout_s: float = 60.0,
        known: bytes = b"",
    ) -> Listing:
        """List an upper dir under both caps. Raises LinkLost, GuestProtocol, GuestError.

        `known` is the digest of a listing that need not be taken apart again.
        """
        request = struct.pack("<BIQ", TREES[tree], max_entries, max_bytes)
        found = EntryReader(max_entries, max_bytes)
        async with self._call(b"L", request, timeout_s):
            while (answer := await self._answer(b"ez"))[0] == b"e":
                found.keep(answer[1])
            digest = found.digest + answer[1]
            if digest == known:
                return Listing(Entries(), False, digest, known=True)
            # a long list takes seconds, and the loop has other things to do
            entries = await asyncio.to_thread(found.decode)
            return Listing(entries, list_end(answer[1], len(entries)), digest)

    async def fetch(
        self,
        tree: Tree,
        path: bytes,
        inode: int,
        max_size: int,
        sink: Callable[[bytes], object],
        timeout_s: float = 60.0,
    ) -> Fetched:
        """Give a file's bytes to `sink`. GuestError when it is gone, changed or too large.

        An exception of `sink` ends the link, for the rest of the content is still on its way.
        """
        if len(path) > MAX_PATH:
            raise ValueError("the path is too long for a request")
        self._last_id = (self._last_id + 1) & 0xFFFFFFFF
        wanted = self._last_id
        request = struct.pack("<IBQQH", wanted, TREES[tree], inode, max_size, len(path)) + path
        async with self._call(b"G", request, timeout_s):
            return await self._content(wanted, max_size, sink)

    async def _content(self, wanted: int, cap: int, sink: Callable[[bytes], object]) -> Fetched:
        received = 0
        while True:
            kind, payload = await self._answer(b"df", wanted)
            if kind == b"f":
                _, size, mtime_ns, ctime_ns = unpack(END, payload)
                return Fetched(size, mtime_ns, ctime_ns, received)
            received += len(payload) - DATA.size
            if received > cap or len(payload) - DATA.size > MAX_DATA:
                raise GuestProtocol("The guest sent more of a file than it was asked for.")
            sink(payload[DATA.size :])

    async def copy_open(
        self, path: bytes, *, root: bool, into: bool, timeout_s: float = 20.0
    ) -> None:
        """Start a copy out of the guest, or `into` it; one that went on ends.

        It runs as the agent, or as the world's root. Its stream is the caller's to read. GuestError
        when there can be none (ENOSYS: the session's image knows no copies).
        """
        if not path or len(path) > MAX_COPY_PATH or b"\0" in path:
            raise ValueError("the path is empty or too long for a copy")
        flags = (COPY_ROOT if root else 0) | (COPY_INTO if into else 0)
        await self._order(b"C", bytes([flags]) + path, timeout_s)

    async def copy_read(
        self, limit: int, sink: Callable[[bytes], object], timeout_s: float = 30.0
    ) -> bool:
        """Give what the copy says to `sink`, at most `limit` bytes; True when it has ended.

        Returns within a second, with nothing if there is nothing yet. GuestError EBADF when the
        copy is gone.
        """
        async with self._call(b"R", struct.pack("<II", limit, COPY_WAIT_MS), timeout_s):
            while True:
                kind, payload = await self._answer(b"dkq")
                if kind != b"d":
                    return kind == b"q"
                limit -= len(payload) - DATA.size
                if limit < 0 or len(payload) <= DATA.size:
                    raise GuestProtocol("The guest sent more of a copy than it was asked for.")
                sink(payload[DATA.size :])

    async def copy_write(self, data: bytes, timeout_s: float = 60.0) -> None:
        """Give at most MAX_WRITE bytes to the copy. GuestError EPIPE when it reads no more.

        All pieces are on their way before the first answer: the guest waits for nobody in between.
        """
        if len(data) > MAX_WRITE:
            raise ValueError("too much to give to a copy at a time")
        first, *rest = (data[at : at + MAX_DATA] for at in range(0, len(data) or 1, MAX_DATA))
        refused: GuestError | None = None
        async with self._call(b"W", first, timeout_s):
            await self._send(b"".join(frame(b"W", piece) for piece in rest))
            for _ in range(1 + len(rest)):
                try:
                    await self._answer(b"k")
                except GuestError as error:
                    refused = refused or error
            if refused is not None:
                raise refused

    async def copy_close(self, timeout_s: float = 10.0) -> None:
        """End the copy, if one goes on."""
        await self._order(b"Q", b"", timeout_s)

    async def freeze(self, timeout_s: float = 30.0) -> None:
        """Freeze the agent's cgroup and sync."""
        await self._order(b"F", b"\x01", timeout_s)

    async def thaw(self, timeout_s: float = 10.0) -> None:
        """Thaw the agent's cgroup."""
        await self._order(b"F", b"\x00", timeout_s)

    async def set_clock(self, unix_ns: int, timeout_s: float = 10.0) -> None:
        """Set the guest's wall clock."""
        await self._order(b"T", struct.pack("<q", unix_ns), timeout_s)

    async def activity(self, timeout_s: float = 10.0) -> Activity:
        """Return what the agent is busy with. GuestError ENOSYS of an image that cannot tell."""
        async with self._call(b"A", b"", timeout_s):
            _, payload = await self._answer(b"a")
            waits, microseconds = unpack(ACTIVITY, payload)
            return Activity(bool(waits), microseconds / 1e6)

    async def ping(self, timeout_s: float = 10.0) -> None:
        """Return when PID 1 has answered."""
        await self._order(b"P", b"", timeout_s)

    async def close(self) -> None:
        """Close the link; never raises."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _order(self, kind: bytes, payload: bytes, timeout_s: float) -> None:
        async with self._call(kind, payload, timeout_s):
            await self._answer(b"k")

    @contextlib.asynccontextmanager
    async def _call(self, kind: bytes, payload: bytes, timeout_s: float) -> AsyncGenerator[None]:
        """Send a request; the body reads its answers. Anything left half read ends the link."""
        async with self._turn:
            scope = asyncio.timeout(timeout_s)
            try:
                async with scope:
                    await self._send(frame(kind, payload))
                    yield
            except GuestError:
                raise
            except BaseException as error:
                self._writer.transport.abort()
                if isinstance(error, TimeoutError) and scope.expired():
                    raise LinkLost(f"The guest did not answer within {timeout_s:g} s.") from error
                raise

    async def _send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise LinkLost("The bulk link to the guest broke.") from error

    async def _receive(self, count: int) -> bytes:
        try:
            return await self._reader.readexactly(count)
        except (OSError, EOFError) as error:
            raise LinkLost("The bulk link to the guest broke.") from error

    async def _answer(self, kinds: bytes, wanted: int | None = None) -> tuple[bytes, bytes]:
        """Read the next frame; it must be one of `kinds` (and bear the id), or an error."""
        (length,) = LENGTH.unpack(await self._receive(LENGTH.size))
        if not 1 <= length <= MAX_FRAME:
            raise GuestProtocol(f"The guest announced a frame of {length} bytes.")
        body = await self._receive(length)
        kind, payload = body[:1], body[1:]
        if kind == b"x":
            raise guest_error(payload, wanted)
        if kind not in kinds:
            raise GuestProtocol(f"The guest answered with a frame of type {kind!r}.")
        if wanted is not None and payload[:4] != DATA.pack(wanted):
            raise GuestProtocol("The guest answered another request.")
        return kind, payload
