"""What happens when the host's disk fails under a running machine, most often because it is full.

QEMU stops the machine at the write that the host refused and keeps that write; once the host takes
it the machine goes on as if nothing had been. So nothing is lost, and all that is left to do is to
say so, to look for room from time to time, and to let the machine try again.
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

LONGEST_LOOK_S: Final = 60.0
"""What a pause may grow to when the host refuses the write though there is room: over a quota, or
on a broken disk."""

SETTLE_S: Final = 0.5
"""Seconds after which a machine that went on and is not stopped has got its write through."""

STOPPED_BY_DISK: Final = "io-error"
"""QEMU's run state of a machine that a failed write has stopped."""

FULL: Final = "nospace"
"""What `query-block` calls a disk for which there was no room; any other failure is `failed`."""


class Room:
    """Watches one machine for writes that the host refuses."""

    def __init__(self, ledger: Ledger, machine: Machine) -> None:
        self._ledger = ledger
        self._machine = machine
        self._reason = ""
        self._resumed = asyncio.Event()
        self._resumed.set()

    @property
    def lacking(self) -> bool:
        """Whether the machine stands still now because the host refused a write."""
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
                elif name == "BLOCK_IO_ERROR":
                    self._hear(data)
        except VMError as error:
            log.info("the machine's monitor went away: %s", error.message)

    async def _stopped(self) -> bool:
        answer = await self._machine.qmp.execute("query-status")
        status = cast("dict[str, object]", answer).get("status")
        return status == STOPPED_BY_DISK

    async def _full(self) -> bool:
        """Ask QEMU whether there was no room; an earlier keeper may have had the event."""
        answer = await self._machine.qmp.execute("query-block")
        blocks = cast("list[dict[str, object]]", answer)
        return FULL in [block.get("io-status") for block in blocks]

    def _hear(self, data: dict[str, object]) -> None:
        self._reason = str(data.get("reason", ""))
        if data.get("action") != "stop":
            self._tell_error()

    async def _hold(self) -> None:
        self._resumed.clear()
        pause_s = LOOK_S
        try:
            self._tell(full=await self._full())
            while self.lacking:
                await asyncio.sleep(pause_s)
                if self.lacking and self._free() >= ENOUGH and not await self._try():
                    pause_s = min(2 * pause_s, LONGEST_LOOK_S)
        finally:
            self._resumed.set()

    async def _try(self) -> bool:
        """Let the machine go on; whether it does, for the write may fail again at once."""
        await self._machine.resume()
        await asyncio.sleep(SETTLE_S)
        if await self._stopped():
            return False
        self._resumed.set()
        self._ledger.change(state="running", message="")
        return True

    async def go_on(self) -> None:
        """Let the machine go on now.

        Raises AppError `disk-full` while there is too little room, `disk-failed` when the host
        refuses the write again.
        """
        free = self._free()
        if free < ENOUGH:
            raise AppError(
                "disk-full",
                f"Only {free >> 20} MiB are free, the machine goes on with {ENOUGH >> 20}.",
                f"Free some space: {self._where()}",
            )
        if self.lacking and not await self._try():
            raise AppError("disk-failed", self._refused(), self._mend())

    def _tell(self, *, full: bool) -> None:
        """Say that the machine stands still: why, and what lets it go on."""
        if full:
            what = f"The host's disk is full ({self._free() >> 20} MiB free)"
            hint = f"Free {ENOUGH >> 20} MiB and it goes on by itself: {self._where()}"
        else:
            what, hint = self._refused().rstrip("."), self._mend()
        self._ledger.change(
            state="paused",
            message=f"{what}: the machine stands still, and nothing is lost.",
            hint=hint,
        )

    def _refused(self) -> str:
        reason = f" ({self._reason})" if self._reason else ""
        return f"The host cannot write the session's disk{reason}."

    def _mend(self) -> str:
        return (
            "It is tried again by itself, or at once by: "
            f"cloche resume {self._ledger.record.id}; look why: sudo dmesg | tail; quota -s; "
            f"{self._where()}"
        )

    def _free(self) -> int:
        return disk_usage(self._ledger.folder).free

    def _where(self) -> str:
        return f"df -h '{self._ledger.folder}'"

    def _tell_error(self) -> None:
        """Tell about an error that QEMU passed on to the guest instead of stopping."""
        log.warning("the host failed to read or write the session's disk: %s", self._reason)
        self._ledger.change(
            message=f"The host could not read or write the session's disk ({self._reason}).",
            hint=f"Look at the host's disk: sudo dmesg | tail; {self._where()}",
        )
