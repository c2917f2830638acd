"""The agent's terminal, which PID 1 holds: attached to over a channel of the SSH connection.

PID 1 counts what the program prints from its first byte on and keeps the last MiB. Whoever attaches
says from which count on it wants the output, so nothing comes twice and nothing is missing that is
still kept. What was recorded is acknowledged: PID 1 keeps the rest and makes the program wait.
Frames: see docs/architecture.md. All of them are the word of a guest that may be hostile.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import deque
from typing import TYPE_CHECKING, Final

import asyncssh

from vm.errors import GuestProtocol, LinkLost, VMError

if TYPE_CHECKING:
    from vm.machine.commands import Process

RING: Final = 1 << 20
"""Bytes of output that PID 1 keeps (RING in vm/guest/terminal.c)."""

MAX_FRAME: Final = 1 + 32768
"""Longest frame: a type and what PID 1 puts into one piece."""

PIECE: Final = 16384
"""Bytes of input in one frame; PID 1 takes up to 32 KiB."""

AHEAD: Final = 48 << 10
"""Bytes of input that the program's terminal has not taken yet; PID 1 has room for 64 KiB."""

RECORDED_STEP: Final = 64 << 10
"""Bytes between two acknowledgements: an eighth of what makes the program wait."""

MAX_COUNT: Final = 1 << 62

_NO_SUCH_RUN: Final = 3
_NO_SUCH_PROGRAM: Final = 127
_LENGTH = struct.Struct("<I")
_BEGIN = struct.Struct("<QQI")
_NUMBER = struct.Struct("<I")
_COUNT = struct.Struct("<Q")
_SIZE = struct.Struct("<HH")


class NoAgent(VMError):
    """PID 1 holds no terminal of that run."""

    code = "no-agent"
    way_out = "Start it again: cloche resume ID"


class OldImage(VMError):
    """The session's image comes from a Cloche that held terminals in another way."""

    code = "old-image"
    way_out = "Run: cloche image build base; then begin anew, the old changes by: cloche merge ID"

    def __init__(self) -> None:
        super().__init__("The session's image is too old for this Cloche to run an agent in it.")


class Terminal:
    """One attachment. Output waits here until it is read, never more than PID 1 keeps."""

    def __init__(self, process: Process, run: int, begun: int, waiting: int) -> None:
        self.run = run
        """Which run of the program it is, as it was named at its start."""
        self.begun = begun
        """The count of the first byte that `read` returns."""
        self.status: int | None = None
        """The program's exit status, 128+N for a signal, once `read` has returned all output."""
        self._process = process
        self._recorded = begun
        self._ahead = waiting
        self._taken = -waiting
        self._output: deque[bytes] = deque()
        self._held = 0
        self._ended: int | None = None
        self._fault: VMError | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._typing = asyncio.Lock()
        self._pump = asyncio.create_task(self._hear())

    async def read(self) -> bytes:
        """Return the next output; empty when there is no more, then `status` is known.

        Raises LinkLost or GuestProtocol when the attachment broke.
        """
        while not self._output:
            if self._ended is not None:
                self.status = self._ended
                return b""
            if self._fault is not None:
                raise self._fault
            self._news.clear()
            await self._news.wait()
        data = self._output.popleft()
        self._held -= len(data)
        return data

    def recorded(self, count: int) -> None:
        """Say that all output before byte `count` is safe; PID 1 is told now and then."""
        if count - self._recorded >= RECORDED_STEP:
            self._recorded = count
            self._say(b"A", _COUNT.pack(count))

    async def send(self, data: bytes) -> None:
        """Send input in one piece between all other input; waits while the program reads none.

        Nothing happens after the program's end. Raises LinkLost when the attachment broke.
        """
        async with self._typing:
            for start in range(0, len(data), PIECE):
                piece = data[start : start + PIECE]
                while self._ahead + len(piece) > AHEAD and not self._over:
                    self._room.clear()
                    await self._room.wait()
                if self._ended is not None:
                    return
                if self._fault is not None:
                    raise LinkLost("The agent's terminal is gone.") from self._fault
                self._ahead += len(piece)
                self._say(b"I", piece)
            await self._drain()

    async def deliver(self, data: bytes) -> None:
        """Send input and return when the program's terminal has taken all of it.

        Not with another `deliver` at a time. Raises LinkLost when the attachment broke, or the
        program ended, before that.
        """
        wanted = self._taken + self._ahead + len(data)
        await self.send(data)
        wanted = max(wanted, self._taken + self._ahead)  # others may have typed before
        while self._taken < wanted:
            if self._over:
                raise LinkLost("The agent's terminal is gone.") from self._fault
            self._room.clear()
            await self._room.wait()

    @property
    def _over(self) -> bool:
        return self._ended is not None or self._fault is not None

    async def _drain(self) -> None:
        try:
            await self._process.stdin.drain()
        except (asyncssh.Error, OSError) as error:
            raise LinkLost("The agent's terminal is gone.") from error

    def resize(self, columns: int, rows: int) -> None:
        """Tell the program its new size."""
        self._say(b"W", _SIZE.pack(columns, rows))

    async def close(self) -> None:
        """Let go; the program runs on."""
        self._pump.cancel()
        await asyncio.gather(self._pump, return_exceptions=True)
        self._process.close()
        await self._process.wait_closed()

    def _say(self, kind: bytes, payload: bytes) -> None:
        if not self._process.stdin.is_closing():
            self._process.stdin.write(_LENGTH.pack(1 + len(payload)) + kind + payload)

    # -- from the guest ----------------------------------------------------------------------

    async def _hear(self) -> None:
        """Take frames for ever, also while nobody reads: what they say of input must not wait."""
        try:
            while not self._over:
                self._obey(*await read_frame(self._process))
                self._wake()
        except VMError as error:
            self._fault = error
        finally:
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._room.set()

    def _obey(self, kind: bytes, payload: bytes) -> None:
        if kind == b"O" and payload:
            self._output.append(payload)
            self._held += len(payload)
            if self._held > RING:
                raise GuestProtocol("The guest sent more of the terminal than it may keep.")
        elif kind == b"T" and len(payload) == _NUMBER.size:
            took = min(self._ahead, _NUMBER.unpack(payload)[0])
            self._ahead -= took
            self._taken += took
        elif kind == b"X" and len(payload) == _NUMBER.size and _NUMBER.unpack(payload)[0] < 256:
            self._ended = int(_NUMBER.unpack(payload)[0])
        else:
            raise GuestProtocol(f"The guest's terminal sent a frame of type {kind!r}.")


async def read_frame(process: Process) -> tuple[bytes, bytes]:
    """Read one frame: its type and payload. Raises LinkLost, GuestProtocol."""
    try:
        (length,) = _LENGTH.unpack(await process.stdout.readexactly(_LENGTH.size))
        if not 1 <= length <= MAX_FRAME:
            raise GuestProtocol(f"The guest's terminal announced a frame of {length} bytes.")
        body = await process.stdout.readexactly(length)
    except (asyncssh.Error, OSError, EOFError) as error:
        raise LinkLost("The agent's terminal is gone.") from error
    return body[:1], body[1:]


async def attach(
    connection: asyncssh.SSHClientConnection,
    run: int,
    recorded: int,
    columns: int,
    rows: int,
    *,
    timeout_s: float = 15.0,
) -> Terminal:
    """Attach to the agent's terminal from byte `recorded` of its output on; run 0: whichever runs.

    It begins later than that where the output is no longer kept, and earlier in a machine that was
    put back to an earlier moment. Another attachment ends. Raises NoAgent, OldImage, LinkLost,
    GuestProtocol.
    """
    words = f"exec /bin/hold attach {run} {recorded} {columns} {rows}"
    process: Process | None = None
    try:
        async with asyncio.timeout(timeout_s):
            process = await connection.create_process(words, encoding=None)
            return await _begun(process, run)
    except BaseException as error:
        if process is not None:
            process.close()
        if isinstance(error, TimeoutError):
            text = f"The agent's terminal did not answer within {timeout_s:g} s."
            raise LinkLost(text) from error
        if isinstance(error, (asyncssh.Error, OSError)):
            raise LinkLost(f"The agent's terminal could not be reached: {error}.") from error
        raise


async def _begun(process: Process, run: int) -> Terminal:
    try:
        kind, payload = await read_frame(process)
    except LinkLost:
        await process.wait_closed()
        if process.exit_status == _NO_SUCH_RUN:
            raise NoAgent("There is no running agent to attach to.") from None
        if process.exit_status == _NO_SUCH_PROGRAM:
            raise OldImage from None
        raise
    if kind != b"B" or len(payload) != _BEGIN.size:
        raise GuestProtocol("The guest's terminal did not say where it begins.")
    found, begun, waiting = _BEGIN.unpack(payload)
    if run not in (0, found) or begun > MAX_COUNT:
        raise GuestProtocol("The guest's terminal is another one than was asked for.")
    return Terminal(process, found, begun, min(waiting, AHEAD))


async def end(terminal: Terminal, patience_s: float) -> None:
    """Let go of a terminal whose link may hang; never raises."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience_s):
            await terminal.close()
