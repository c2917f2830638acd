"""What happens when the host's disk is full under a running machine.

QEMU stops the machine at the write that found no room and keeps that write; once there is room the
machine goes on as if nothing had been. So nothing is lost, and all that is left to do is to say so
and to look from time to time.
"""

from __future__ import annotations

import asyncio
import logging
from shutil import disk_usage
from typing import TYPE_CHECKING, Final, cast

from app.errors import AppError
from vm.errors import VMError

if TYPE_CHECKING:
    from app.keeper.ledger import Ledger
    from vm.machine.machine import Machine

log = logging.getLogger(__name__)

ENOUGH: Final = 128 << 20
"""Free bytes with which a machine goes on; fewer would be full again in a moment."""

LOOK_S: Final = 2.0
"""Seconds between two looks for room."""

STOPPED_BY_DISK: Final = "io-error"
"""QEMU's run state of a machine that a failed write has stopped."""


class Room:
    """Watches one machine for writes that find no room on the host."""

    def __init__(self, ledger: Ledger, machine: Machine) -> None:
        self._ledger = ledger
        self._machine = machine
        self._resumed = asyncio.Event()
        self._resumed.set()

    @property
    def lacking(self) -> bool:
        """Whether the machine stands still now because there is no room."""
        return not self._resumed.is_set()

    async def there(self) -> None:
        """Return once the machine does not stand still for want of room."""
        await self._resumed.wait()

    async def watch(self) -> None:
        """Hold the session as paused whenever a write finds no room; ends with the machine."""
        news = self._machine.qmp.events("STOP", "BLOCK_IO_ERROR")
        try:
            if await self._stopped():
                await self._hold()
            async for name, data in news:
                # QEMU tells of the error first and stops a moment later
                if name == "STOP" and await self._stopped():
                    await self._hold()
                elif name == "BLOCK_IO_ERROR" and data.get("action") != "stop":
                    self._tell_error(str(data.get("reason", "")))
        except VMError as error:
            log.info("the machine's monitor went away: %s", error.message)

    async def _stopped(self) -> bool:
        answer = await self._machine.qmp.execute("query-status")
        status = cast("dict[str, object]", answer).get("status")
        return status == STOPPED_BY_DISK

    async def _hold(self) -> None:
        self._resumed.clear()
        self._ledger.change(
            state="paused",
            message="The host's disk is full: the machine stands still, and nothing is lost.",
            hint=f"Free {ENOUGH >> 20} MiB and it goes on by itself: {self._where()}",
        )
        try:
            while not self._resumed.is_set():
                await asyncio.sleep(LOOK_S)
                if self._free() >= ENOUGH:
                    await self.go_on()
        finally:
            self._resumed.set()

    async def go_on(self) -> None:
        """Let the machine go on now. Raises AppError `disk-full` while there is too little room."""
        free = self._free()
        if free < ENOUGH:
            raise AppError(
                "disk-full",
                f"Only {free >> 20} MiB are free, the machine goes on with {ENOUGH >> 20}.",
                f"Free some space: {self._where()}",
            )
        if self.lacking:
            await self._machine.resume()
            self._resumed.set()
            self._ledger.change(state="running", message="")

    def _free(self) -> int:
        return disk_usage(self._ledger.folder).free

    def _where(self) -> str:
        return f"df -h '{self._ledger.folder}'"

    def _tell_error(self, reason: str) -> None:
        """Tell about an error that QEMU passed on to the guest instead of stopping."""
        log.warning("the host failed to read or write the session's disk: %s", reason)
        self._ledger.change(
            message=f"The host could not read or write the session's disk ({reason}).",
            hint=f"Look at the host's disk: sudo dmesg | tail; {self._where()}",
        )
