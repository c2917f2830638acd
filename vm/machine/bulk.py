"""Client of the port `cloche.bulk`: listings of the upper dirs and contents of files.

Frames, both ways: `u32 length | u8 type | payload`, little endian, length counts type and payload
and is at most 1 MiB. Whatever arrives is the word of a guest that may be hostile: lengths are
checked before anything is kept, and a violation ends the link.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from vm.errors import GuestProtocol, LinkLost, VMError
from vm.machine.entries import MAX_FRAME, Entries, EntryReader, UpperEntry
from vm.machine.link import open_link
from vm.text import printable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
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

MAX_TEXT = 4096
"""Bytes of explanation that are kept from an `x` frame."""

MAX_COPY_PATH = 4095
"""Bytes of the path that a copy begins at; Linux itself takes no longer one."""

COPY_ROOT, COPY_INTO = 1, 2
COPY_WAIT_MS = 500
"""How long the guest waits for a copy to say something."""

_READ_LIMIT = 1 << 18
_LENGTH = struct.Struct("<I")
_DATA = struct.Struct("<I")
_END = struct.Struct("<IQqq")
_ERROR = struct.Struct("<II")
_ACTIVITY = struct.Struct("<BQ")
_LIST_END = struct.Struct("<IB")


class GuestError(VMError):
    """The guest could not do what it was asked; the link goes on. `errno` is the guest's."""

    code = "guest-error"
    way_out = "Try again; when it fails again: cloche logs ID"

    def __init__(self, errno: int, text: str) -> None:
        super().__init__(f"The guest answered: {text or 'error'} (errno {errno}).")
        self.errno = errno


class UpperEntries(Protocol):
    """Entries that are walked over as often as they are needed."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def __iter__(self) -> Iterator[UpperEntry]:
        """Yield them in their order."""
        ...

    def clear(self) -> None:
        """Let go of them."""
        ...


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries of an upper dir, parents before children; `truncated` when a cap cut it short.

    `digest` names the list as it was sent. `known` says that it is the one that was known already:
    then it was not taken apart, and there are no entries.
    """

    entries: UpperEntries
    truncated: bool
    digest: bytes = b""
    known: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """The end of a file's content: what the guest saw after the last byte was read.

    `received` is what arrived here; it differs from `size` when the file changed meanwhile.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    received: int


@dataclass(frozen=True, slots=True)
class Activity:
    """What the agent is busy with, as PID 1 sees it."""

    waits: bool
    """Whether a program that the agent started has its terminal and reads no single keys."""
    cpu_s: float
    """Seconds of processor time that the agent and its programs have used so far."""


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
            return Listing(entries, _list_end(answer[1], len(entries)), digest)

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
                _, size, mtime_ns, ctime_ns = _unpack(_END, payload)
                return Fetched(size, mtime_ns, ctime_ns, received)
            received += len(payload) - _DATA.size
            if received > cap or len(payload) - _DATA.size > MAX_DATA:
                raise GuestProtocol("The guest sent more of a file than it was asked for.")
            sink(payload[_DATA.size :])

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
                limit -= len(payload) - _DATA.size
                if limit < 0 or len(payload) <= _DATA.size:
                    raise GuestProtocol("The guest sent more of a copy than it was asked for.")
                sink(payload[_DATA.size :])

    async def copy_write(self, data: bytes, timeout_s: float = 60.0) -> None:
        """Give at most MAX_WRITE bytes to the copy. GuestError EPIPE when it reads no more.

        All pieces are on their way before the first answer: the guest waits for nobody in between.
        """
        if len(data) > MAX_WRITE:
            raise ValueError("too much to give to a copy at a time")
        first, *rest = (data[at : at + MAX_DATA] for at in range(0, len(data) or 1, MAX_DATA))
        refused: GuestError | None = None
        async with self._call(b"W", first, timeout_s):
            await self._send(b"".join(_frame(b"W", piece) for piece in rest))
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
            waits, microseconds = _unpack(_ACTIVITY, payload)
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
                    await self._send(_frame(kind, payload))
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
        (length,) = _LENGTH.unpack(await self._receive(_LENGTH.size))
        if not 1 <= length <= MAX_FRAME:
            raise GuestProtocol(f"The guest announced a frame of {length} bytes.")
        body = await self._receive(length)
        kind, payload = body[:1], body[1:]
        if kind == b"x":
            raise _guest_error(payload, wanted)
        if kind not in kinds:
            raise GuestProtocol(f"The guest answered with a frame of type {kind!r}.")
        if wanted is not None and payload[:4] != _DATA.pack(wanted):
            raise GuestProtocol("The guest answered another request.")
        return kind, payload


def _frame(kind: bytes, payload: bytes) -> bytes:
    return _LENGTH.pack(len(payload) + 1) + kind + payload


def _unpack(shape: struct.Struct, payload: bytes) -> tuple[int, ...]:
    if len(payload) != shape.size:
        raise GuestProtocol("The guest sent a frame of a wrong size.")
    return shape.unpack(payload)


def _list_end(payload: bytes, count: int) -> bool:
    """Check the end of a list against what arrived; whether the guest cut it short."""
    said, truncated = _unpack(_LIST_END, payload)
    if said != count or truncated > 1:
        raise GuestProtocol(f"The guest sent {count} entries and says that they are {said}.")
    return bool(truncated)


def _guest_error(payload: bytes, wanted: int | None) -> VMError:
    if len(payload) < _ERROR.size:
        return GuestProtocol("The guest sent a frame of a wrong size.")
    request, errno = _ERROR.unpack_from(payload)
    if wanted is not None and request != wanted:
        return GuestProtocol("The guest answered another request.")
    text = payload[_ERROR.size :][:MAX_TEXT].decode(errors="replace")
    return GuestError(errno, printable(text))
