"""The machine of one session through its life: boot or adopt, hand out its links, end it."""

from __future__ import annotations

import asyncio
import logging
import socket
import stat
import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.keeper.links import Links
from app.processes import start_time
from app.records import Process
from vm.errors import BootFailed, GuestSilent, LinkLost, VMError
from vm.machine import guest_exec, processors
from vm.machine.machine import Machine, boot
from vm.machine.signals import MachineGone

if TYPE_CHECKING:
    from pathlib import Path

    import asyncssh

    from app.keeper.boot import Machinery, Workshop

log = logging.getLogger(__name__)

STOP_S: Final = 20.0
RETRY_S: Final = 0.5
"""Pause between two attempts to reach a guest."""

_UCRED: Final = struct.Struct("3i")


@dataclass(slots=True)
class Engine:
    """One running machine and the links to it."""

    machine: Machine
    links: Links
    accelerator: str
    boot_ms: int = 0
    notice: str = ""

    @property
    def process(self) -> Process:
        """QEMU's process."""
        return Process.here(self.machine.pid, self.machine.start_time)

    async def answer(self, deadline_s: float) -> None:
        """Return when the guest answers. Raises BootFailed when it does not or the machine ends."""
        try:
            async with asyncio.timeout(deadline_s):
                while self.machine.running:
                    try:
                        await self.links.ssh()
                    except LinkLost:
                        await asyncio.sleep(RETRY_S)
                    else:
                        return
        except TimeoutError:
            raise self._no_answer(f"The guest did not answer within {deadline_s:g} s.") from None
        raise self._no_answer("The machine ended before its guest answered.")

    def _no_answer(self, message: str) -> BootFailed:
        name = self.machine.spec.name
        hint = f"Read: cloche logs {name}; start it again: cloche resume {name}"
        return BootFailed(message, hint, self.machine.console_tail())

    async def stop(self, *, asked: bool = True) -> None:
        """End the machine, its disks written if it still listens. Raises NotStopped.

        Without `asked` neither guest nor QEMU are asked to end: a machine that answers nothing
        would only make us wait.
        """
        if not asked:
            await self.links.close()
            await self.machine.kill()
            return

        async def ask() -> None:
            await guest_exec.power_off(await self.links.ssh())

        try:
            await self.machine.stop(STOP_S, ask)
        finally:
            if not self.machine.running:
                await self.links.close()

    async def let_go(self) -> None:
        """Leave the machine running for the next keeper."""
        await self.links.close()
        await self.machine.close()


async def start_machine(machinery: Machinery) -> Machine:
    """Start QEMU; the guest still has to boot."""
    return await Machine.start(machinery.spec)


async def boot_guest(machine: Machine, machinery: Machinery, patience_s: float) -> Engine:
    """Wait for the guest; a machine whose guest does not answer is ended before this raises.

    Raises GuestSilent when `patience_s` seconds were not enough, and other VMErrors.
    """
    began = time.monotonic()
    try:
        ssh = await _first_answer(machine, machinery, patience_s)
        if (await guest_exec.run_toolkit(ssh, "true")).exit_code != 0:
            raise VMError("The guest answers, but its toolkit does not work.", "cloche doctor")
    except BaseException:
        await machine.stop(STOP_S)
        raise
    links = Links(machinery.spec, machinery.identity, ssh)
    took = round((time.monotonic() - began) * 1000)
    return Engine(machine, links, machinery.spec.accelerator, took, machinery.notice)


async def _first_answer(
    machine: Machine, machinery: Machinery, patience_s: float
) -> asyncssh.SSHClientConnection:
    """Return the first connection to the guest; of a silent one, note what it does."""
    try:
        return await boot(machine, machinery.identity, patience_s)
    except GuestSilent:
        log.warning("what the silent machine does: %s", await processors.doing(machine.qmp))
        raise


async def adopt(workshop: Workshop, process: Process, accelerator: str) -> Engine | None:
    """Take over a machine that an earlier keeper started; None when it has ended."""
    machinery = await workshop.adopted(accelerator)
    try:
        machine = await Machine.adopt(machinery.spec, process.pid, process.start_time)
    except MachineGone:
        return None
    return Engine(machine, Links(machinery.spec, machinery.identity, None), accelerator)


def _is_socket(path: Path) -> bool:
    """Tell whether a socket is there; a link is none, for a QEMU may have made it to mislead us."""
    try:
        return stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return False


async def orphan(qmp_socket: Path) -> Process | None:
    """Return the QEMU that listens on `qmp_socket`, if one does.

    A keeper that is killed in the moment between starting QEMU and writing down its pid leaves one.
    """
    if not _is_socket(qmp_socket):
        return None
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    probe.setblocking(False)
    try:
        async with asyncio.timeout(2.0):
            await asyncio.get_running_loop().sock_connect(probe, str(qmp_socket))
        raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    except (OSError, TimeoutError):
        return None
    finally:
        probe.close()
    pid = int(_UCRED.unpack(raw)[0])
    started = start_time(pid)
    return Process(pid, started) if started else None
