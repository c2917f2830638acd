"""The guest's wall clock, kept right while nobody in the guest can ask for the time.

A machine's clock stands still with the machine: while the host sleeps, while QEMU is paused, and
in a memory that was saved earlier. So it is set when a machine is taken up, when QEMU says that it
goes on, when the host's own clocks have jumped, and now and then, for slow clocks drift.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from vm.errors import VMError
from vm.machine.bulk import GuestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.keeper.links import Links
    from vm.machine.machine import Machine

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""Pause between two looks at the host's clocks, in seconds; a jump is seen so much later."""

AGAIN_S: Final = 30.0
"""Seconds after which the guest's clock is set without a reason. PID 1 leaves it alone while it is
right to 0.2 s, so a clock that keeps the time is never moved."""

JUMP_S: Final = 0.1
"""A change of the host's clocks against its monotonic one that counts as a jump."""


class HostClocks(NamedTuple):
    """How far the host's clocks are ahead of its monotonic one, which stands still in its sleep."""

    wall: float
    boot: float
    """Differs from the sum before by the time that the host slept."""

    @classmethod
    def now(cls) -> HostClocks:
        """Read them."""
        monotonic = time.monotonic()
        return cls(time.time() - monotonic, time.clock_gettime(time.CLOCK_BOOTTIME) - monotonic)

    def jumped(self, later: HostClocks) -> bool:
        """Whether the host slept, or its wall clock was set, between these and later ones."""
        return max(abs(later.wall - self.wall), abs(later.boot - self.boot)) > JUMP_S


class GuestClock:
    """Keeps the clock of one running machine."""

    def __init__(self, links: Links, machine: Machine, still: Callable[[], bool]) -> None:
        """`still` tells whether the machine stands still, so that nothing can be asked of it."""
        self._links = links
        self._machine = machine
        self._still = still
        self._due = asyncio.Event()
        self._clocks = HostClocks.now()

    async def set(self) -> None:
        """Give the guest the host's time. Raises LinkLost, GuestProtocol, GuestError."""
        self._clocks = HostClocks.now()
        async with self._links.bulk_lock:
            try:
                bulk = await self._links.bulk()
                await bulk.set_clock(time.time_ns())
            except GuestError:
                raise
            except VMError:
                await self._links.drop_bulk()
                raise

    async def try_to_set(self) -> bool:
        """Do the same where it can be done; whether it was."""
        if self._still():
            return False
        try:
            await self.set()
        except VMError as error:
            log.info("the guest's clock could not be set: %s", error.message)
            return False
        return True

    async def watch(self) -> None:
        """Set it whenever there is a reason; ends with the machine."""
        listening = asyncio.create_task(self._listen())
        try:
            while self._machine.running:
                self._due.clear()
                if not await self.try_to_set():
                    await asyncio.sleep(LOOK_S)
                    continue
                await self._reason()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _listen(self) -> None:
        async for _ in self._machine.qmp.events("RESUME", "WAKEUP"):
            self._due.set()

    async def _reason(self) -> None:
        """Return when the clock must be set again."""
        until = time.monotonic() + AGAIN_S
        while time.monotonic() < until and self._machine.running:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._due.wait()
                    return
            if self._clocks.jumped(HostClocks.now()):
                return
