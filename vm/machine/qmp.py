"""QMP with a bound on every wait, on top of `qemu.qmp` (never its legacy module)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from qemu.qmp import EventListener, ExecuteError, QMPClient, QMPError, Runstate

from vm.errors import LinkLost, VMError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from qemu.qmp.message import Message

MAX_ANSWER = 1 << 20
"""Longest line from QEMU in bytes; the longest one that we ask for has about 10 KiB."""

MAX_EVENTS = 256
"""Events kept for a reader that does not come; later ones are dropped."""

# Failures reach the caller as exceptions; without a handler Python would print them as well.
logging.getLogger("qemu.qmp").addHandler(logging.NullHandler())

Event = tuple[str, "dict[str, object]"]


class QmpRefused(VMError):
    """QEMU understood a command and refused it."""

    code = "qmp-refused"
    way_out = "Read: cloche logs ID"


class _Tap(EventListener):
    """Hands events to a bounded queue and keeps no history of its own."""

    def __init__(self, names: tuple[str, ...], queue: asyncio.Queue[Event | None]) -> None:
        super().__init__(names)
        self._events = queue

    def accept(self, event: Message) -> bool:
        """Take the event for our queue, or drop it when that is full; the base class gets none."""
        if super().accept(event) and not self._events.full():
            data = cast("dict[str, object]", event.get("data", {}))
            self._events.put_nowait((str(event["event"]), data))
        return False


class Qmp:
    """A connection to one QEMU's monitor."""

    def __init__(self, client: QMPClient) -> None:
        self._client = client
        self._taps: list[asyncio.Queue[Event | None]] = []
        self._watcher = asyncio.create_task(self._watch())

    @classmethod
    async def connect(cls, path: Path, deadline_s: float) -> Qmp:
        """Connect and negotiate. Raises LinkLost."""
        client = QMPClient("cloche", MAX_ANSWER)
        try:
            async with asyncio.timeout(deadline_s):
                await client.connect(str(path))
        except TimeoutError as error:
            raise LinkLost(f"QEMU did not answer QMP within {deadline_s:g} s.") from error
        except (QMPError, OSError) as error:
            raise LinkLost(f"QMP could not be reached: {error}.") from error
        return cls(client)

    @property
    def connected(self) -> bool:
        """Whether QEMU still listens to us."""
        return self._client.runstate is Runstate.RUNNING

    async def execute(
        self, command: str, arguments: Mapping[str, object] | None = None, timeout_s: float = 10.0
    ) -> object:
        """Run one command and return its answer. Raises LinkLost or QmpRefused."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._client.execute(command, arguments)
        except ExecuteError as error:
            raise QmpRefused(f"QEMU refused {command}: {error}") from error
        except TimeoutError as error:
            raise LinkLost(f"QEMU did not answer {command} within {timeout_s:g} s.") from error
        except (QMPError, OSError) as error:
            raise LinkLost(f"QMP broke during {command}: {error}") from error

    async def give_file(self, name: str, descriptor: int) -> None:
        """Hand QEMU an open descriptor under a name that `fd:NAME` refers to."""
        try:
            self._client.send_fd_scm(descriptor)
        except (QMPError, OSError) as error:
            raise LinkLost(f"QEMU could not be given a file: {error}") from error
        await self.execute("getfd", {"fdname": name})

    def events(self, *names: str) -> AsyncIterator[Event]:
        """Yield events (name, data) of these names until the connection ends; keeps MAX_EVENTS.

        Listening begins with the call, not with the first step of the iteration.
        """
        queue: asyncio.Queue[Event | None] = asyncio.Queue(MAX_EVENTS + 1)
        tap = _Tap(names, queue)
        self._client.register_listener(tap)
        self._taps.append(queue)
        if not self.connected:
            self._end(queue)
        return self._drain(tap, queue)

    async def _drain(self, tap: _Tap, queue: asyncio.Queue[Event | None]) -> AsyncIterator[Event]:
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._client.remove_listener(tap)
            self._taps.remove(queue)

    async def _watch(self) -> None:
        """Tell every reader of events when the connection has ended."""
        while self.connected:
            await self._client.runstate_changed()
        for queue in self._taps:
            self._end(queue)

    @staticmethod
    def _end(queue: asyncio.Queue[Event | None]) -> None:
        if queue.full():
            queue.get_nowait()
        queue.put_nowait(None)

    async def close(self) -> None:
        """Disconnect; never raises."""
        try:
            async with asyncio.timeout(5.0):
                await self._client.disconnect()
        except (QMPError, OSError, EOFError, TimeoutError):
            pass  # it is over either way, and QEMU's own end is seen by its process
        self._watcher.cancel()
        await asyncio.gather(self._watcher, return_exceptions=True)
