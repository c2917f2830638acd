"""The keeper's side of the credential broker: starts it, hears it, and starts it again if it dies.

The broker is a process of its own beside the gateway: the gateway reads what a guest sends as
frames, the broker has the keys, and neither can reach into the other. What the keeper knows of it
is in the session's record: settings with references, never a value.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING, Final

import msgspec

from app.broker import wire
from app.client.launch import role_command
from app.errors import AppError
from app.keeper.children import PAUSE_S, end_child, next_pause, start_child
from app.wording import times
from vm.egress.broker.meter import Waiting
from vm.egress.broker.refusals import sentence
from vm.egress.kinds import Entry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.records import SessionRecord
    from vm.egress.broker.meter import Caps, Totals
    from vm.egress.proxy import Proxies

DOOR: Final = "broker.sock"
"""Where the gateway hands connections over, in the session's folder of sockets."""
BACKLOG: Final = 128
READY_S: Final = 60.0
"""A keyring may ask its user first."""
PAUSE_MAX_S: Final = 30.0
"""Between two starts, at the most."""


class BrokerKeeper:
    """One session's broker. All methods run on the keeper's loop.

    `log` gets a line of the egress log for each request, `changed` is called when use, caps or a
    question about them are others, `fault` gets a sentence when the broker died. None may wait.
    """

    def __init__(
        self,
        record: SessionRecord,
        sockets: Path,
        variables: int,
        proxies: Proxies,
        totals: Totals,
        caps: Caps,
        *,
        ask: bool,
        stopped: bool = False,
        log: Callable[[Entry], None],
        changed: Callable[[], None],
        fault: Callable[[str], None],
    ) -> None:
        self._record, self._variables, self._proxies, self.ask = record, variables, proxies, ask
        self._log, self._changed, self._fault = log, changed, fault
        self.door = sockets / DOOR
        self.totals, self.caps = totals, caps
        self.stopped = stopped
        """At a cap nothing waits: the user said so."""
        self.waiting = Waiting()
        """Requests that wait, for a cap is reached."""
        self.ready = wire.Ready((), {})
        self._listener: socket.socket | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self.process: asyncio.subprocess.Process | None = None
        """The child, while there is one."""

    async def start(self) -> wire.Ready:
        """Start it and return what it has. Raises AppError where it holds nothing at all."""
        self._listener = _listen(self.door)
        try:
            reader, self.ready = await self._begin()
        except BaseException:
            await self._reap()
            self._close_door()
            raise
        self._task = asyncio.create_task(self._keep(reader))
        return self.ready

    async def stop(self) -> None:
        """End it; the keys are gone with it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        try:
            await self._reap()
        finally:
            self._close_door()

    def cap(self, caps: Caps, *, stopped: bool = False) -> None:
        """Put other caps in force; requests that wait for them go on, are refused, or ask again."""
        self.caps, self.stopped = caps, stopped
        self.waiting = Waiting()  # the child says so where some wait on
        if self._writer is not None:
            self._writer.write(wire.line(wire.Capped(caps, stopped, self.ask)))
        self._changed()

    def asking(self, ask: bool) -> None:
        """Say whether somebody can be asked from now on; without, what waits is refused."""
        if self.ask != ask:
            self.ask = ask
            self.cap(self.caps, stopped=self.stopped)

    async def _begin(self) -> tuple[asyncio.StreamReader, wire.Ready]:
        """Start a child and hear what it has. Raises AppError."""
        ours, theirs = socket.socketpair()
        try:
            await self._spawn(theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=wire.MAX_LINE)
        self._writer = writer
        writer.write(wire.line(self._first()))
        try:
            async with asyncio.timeout(READY_S):
                raw = await reader.readline()
            said = wire.report(raw)
        except (TimeoutError, ValueError) as error:
            raise AppError(
                "broker-refused",
                "The session's credential broker did not start.",
                f"Read: cloche logs {self._record.id}",
            ) from error
        if isinstance(said, wire.Cannot):
            raise AppError("broker-refused", said.message, said.hint)
        assert isinstance(said, wire.Ready)
        return reader, said

    def _first(self) -> wire.Begin:
        broker = self._record.broker
        return wire.Begin(
            {name: one.data for name, one in broker.services.items()},
            broker.seed,
            self._record.workspace,
            self.caps,
            self.ask,
            self.totals,
            self.stopped,
            self._proxies,
        )

    async def _spawn(self, control: int) -> None:
        assert self._listener is not None
        numbers = (self._listener.fileno(), control, self._variables)
        self.process = await start_child(role_command("broker"), numbers)

    async def _keep(self, reader: asyncio.StreamReader) -> None:
        pause, loop = PAUSE_S, asyncio.get_running_loop()
        while True:
            began = loop.time()
            with contextlib.suppress(ConnectionError):
                await self._listen_to(reader)
            self._over(Waiting())
            await self._reap()
            self._fault("The session's credential broker ended and is started again.")
            pause = next_pause(pause, loop.time() - began, PAUSE_MAX_S)
            reader = await self._again(pause)

    async def _again(self, pause: float) -> asyncio.StreamReader:
        """Start it again until that works; what the guest was given stays as it is."""
        while True:
            await asyncio.sleep(pause)
            try:
                reader, self.ready = await self._begin()
            except (AppError, OSError) as error:
                await self._reap()
                self._fault(f"The session's credential broker does not start: {error}.")
                pause = min(pause * 2, PAUSE_MAX_S)
                continue
            self._changed()
            return reader

    async def _listen_to(self, reader: asyncio.StreamReader) -> None:
        while raw := await reader.readline():
            try:
                said = wire.report(raw)
            except msgspec.DecodeError:
                return  # it is none of ours any more
            if isinstance(said, wire.Asked):
                self._log(entry_of(said))
            elif isinstance(said, wire.Used):
                self.totals = said.totals
                self._changed()
            elif isinstance(said, wire.Over):
                self._over(said.waiting)

    def _over(self, waiting: Waiting) -> None:
        if self.waiting != waiting:
            self.waiting = waiting
            self._changed()

    async def _reap(self) -> None:
        """See to it that no child is left."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        process, self.process = self.process, None
        if process is not None:
            await end_child(process)

    def _close_door(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.door)


def _listen(path: Path) -> socket.socket:
    """Listen in a folder that is nobody else's. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        sock.bind(str(path))
        os.chmod(path, 0o600)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    return sock


def entry_of(said: wire.Asked) -> Entry:
    """Return a request as a line of the egress log: no header, no query, no body."""
    allowed = said.code == "answered"
    words = f"{said.method} {said.path}".strip() or "What came was no request"
    why = f" ({sentence(said.code).rstrip('.')})" if sentence(said.code) else ""
    scrubbed = f"; the key stood in the answer {times(said.scrubbed)}" if said.scrubbed else ""
    return Entry(
        at=time.time(),
        kind="request",
        host=said.host,
        port=80,
        verdict="allow" if allowed else "deny",
        level="session",
        origin="broker",
        code=said.code,
        reason=f"{words}: {said.status or 'no answer'}{why}{scrubbed}.",
        address=said.upstream,
        up=said.up,
        down=said.down,
        duration_ms=int(said.seconds * 1000),
        note="broker",
    )
