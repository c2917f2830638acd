"""One QEMU process: start, adopt, pause, stop; and the first connection to its guest."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from vm.errors import BootFailed, CutOff, GuestSilent, LinkLost, NoAnswer, VMError
from vm.machine import console, launching, ssh
from vm.machine.process import age_s, stands_still, start_time
from vm.machine.qmp import QmpRefused
from vm.machine.signals import MachineGone, end, hold
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import asyncssh

    from vm.machine.identity import Identity
    from vm.machine.process import Process
    from vm.machine.qmp import Qmp
    from vm.machine.spec import MachineSpec

ENDING_S = 1.0
"""For how long a QEMU without its socket may be one that is just ending: it removes that first."""

HOUSEKEEPING_S = 5.0


class Machine:
    """A running QEMU. It is in a session of its own and survives the process that started it."""

    def __init__(self, spec: MachineSpec, process: Process, started: int, qmp: Qmp) -> None:
        self.spec = spec
        self.pid = process.pid
        self.start_time = started
        """Field 22 of /proc/PID/stat: with the pid it names a process for good."""
        self.qmp = qmp
        self._process = process
        self._housekeeping = asyncio.create_task(self._keep_house())

    @classmethod
    async def start(cls, spec: MachineSpec, deadline_s: float = 20.0) -> Machine:
        """Start QEMU and return when it answers QMP.

        It runs in the jail of the spec, if that has one. Raises BadSpec, BadDisk, DiskFull or
        ImageMissing before anything is started, HostLacks without QEMU, and BootFailed (with QEMU's
        log) when it ends or does not answer in time.
        """
        process = await launching.launch(spec)
        started = start_time(process.pid)
        reached("boot.spawned")
        try:
            qmp = await launching.first_answer(process, spec, deadline_s)
        except BaseException:
            try:
                await end(process)
            finally:
                process.close()
            raise
        return cls(spec, process, started or 0, qmp)

    @classmethod
    async def adopt(
        cls, spec: MachineSpec, pid: int, start_time: int, deadline_s: float = 10.0
    ) -> Machine:
        """Take over a machine that another process started.

        It may have been started a moment ago, so its monitor is waited for. Raises MachineGone if
        it has ended, LinkLost if it runs and does not answer QMP, CutOff if it cannot: its socket
        was removed.
        """
        process = hold(pid, start_time)
        try:
            if stands_still(pid):
                raise LinkLost(f"QEMU (process {pid}) was stopped from outside.")
            old = age_s(pid) > deadline_s and not spec.qmp_socket.exists()
            patience_s = min(deadline_s, ENDING_S) if old else deadline_s
            qmp = await launching.answer(process, spec, patience_s)
            if qmp is None and process.running and not spec.qmp_socket.exists():
                raise CutOff(f"The sockets of the machine (process {pid}) were removed.")
            if qmp is None and process.running:
                raise LinkLost(f"QEMU did not answer QMP within {deadline_s:g} s.")
            if qmp is None:
                raise MachineGone(f"The machine (process {pid}) has ended.")
        except BaseException:
            process.close()
            raise
        return cls(spec, process, start_time, qmp)

    @property
    def running(self) -> bool:
        """Whether the process still exists (not: whether the guest is well)."""
        return self._process.running

    @property
    def stands_still(self) -> bool:
        """Whether a signal or a debugger has stopped the process; it answers nothing then."""
        return self.running and stands_still(self.pid)

    def wake(self) -> None:
        """Let a process go on that a signal has stopped; nothing happens to any other."""
        self._process.signal(signal.SIGCONT)

    async def wait_exit(self) -> int | None:
        """Wait for the end; the exit status (negative = signal), None when adopted."""
        return await self._process.wait()

    async def pause(self) -> None:
        """Stop the guest's vCPUs. Raises LinkLost when QMP does not answer."""
        await self.qmp.execute("stop")

    async def resume(self) -> None:
        """Let the guest's vCPUs run again."""
        await self.qmp.execute("cont")

    async def stop(
        self, deadline_s: float = 10.0, ask: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """End the machine: ask the guest, then QMP quit, then SIGTERM, then SIGKILL.

        `ask` is what makes the guest power off on its own (see `guest_exec.power_off`); it gets
        half of `deadline_s`. Returns when the process is gone, raises NotStopped when it is not
        gone a few seconds after SIGKILL.
        """
        until = time.monotonic() + deadline_s
        if ask is not None and self.running:
            await self._ask(ask, deadline_s / 2)
        if self.running:
            await self._quit(max(0.5, until - time.monotonic()))
        await end(self._process)
        await self.close()

    async def kill(self) -> None:
        """End a machine that answers nothing, by signals alone. Raises NotStopped."""
        await end(self._process)
        await self.close()

    async def _ask(self, ask: Callable[[], Awaitable[object]], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await ask()
                await self._process.wait()
        except (VMError, TimeoutError):
            return  # a guest that does not listen is ended from outside

    async def _quit(self, seconds: float) -> None:
        """Let QEMU end itself: it flushes its disks on the way."""
        try:
            await self.qmp.execute("quit", timeout_s=seconds)
        except (LinkLost, QmpRefused):
            return  # gone already, or hung: signals follow
        await self._process.ends_within(seconds)

    def console_tail(self, lines: int = 20) -> str:
        """Return the last lines of the guest's console, printable characters only."""
        return console.tail(self.spec.console, lines)

    async def close(self) -> None:
        """Let go of the machine (QMP and descriptors) without ending it."""
        self._housekeeping.cancel()
        await asyncio.gather(self._housekeeping, return_exceptions=True)
        await self.qmp.close()
        self._process.close()

    async def _keep_house(self) -> None:
        """Bound what guest and QEMU print, as long as somebody holds the machine."""
        while True:
            await asyncio.sleep(HOUSEKEEPING_S)
            for path in (self.spec.console, self.spec.log):
                with contextlib.suppress(OSError):  # the next round may do; an end would unbound it
                    console.trim(path)


async def boot(
    machine: Machine, identity: Identity, deadline_s: float = 60.0
) -> asyncssh.SSHClientConnection:
    """Wait for the guest and return the first SSH connection to it.

    Raises GuestSilent (last lines of the console, a hint) when the guest does not answer in time,
    BootFailed when it refuses or QEMU ends; the machine, if it still runs, is the caller's to stop.
    """
    login = asyncio.create_task(ssh.connect(machine.spec.control_socket, identity, deadline_s))
    ended = asyncio.create_task(machine.wait_exit())
    try:
        await asyncio.wait((login, ended), return_when=asyncio.FIRST_COMPLETED)
        if not login.done():
            raise _boot_failure(machine, "The guest ended while it started.")
        return login.result()
    except LinkLost as error:
        # QEMU closes its sockets a moment before it is gone
        await asyncio.wait((ended,), timeout=0.5)
        if ended.done():
            raise _boot_failure(machine, "The guest ended while it started.") from error
        kind = GuestSilent if isinstance(error, NoAnswer) else BootFailed
        raise _boot_failure(machine, error.message, kind) from error
    except asyncio.CancelledError:
        login.add_done_callback(_hang_up)
        raise
    finally:
        login.cancel()
        ended.cancel()
        await asyncio.gather(login, ended, return_exceptions=True)


def _hang_up(login: asyncio.Task[asyncssh.SSHClientConnection]) -> None:
    """End a connection that came too late for the caller."""
    if not login.cancelled() and login.exception() is None:
        login.result().abort()


def _boot_failure(
    machine: Machine, message: str, kind: type[BootFailed] = BootFailed
) -> BootFailed:
    return kind(message, launching.where(machine.spec), machine.console_tail())


def waiting(spec: MachineSpec) -> MachineSpec:
    """Return the same machine, waiting for a saved memory instead of booting."""
    return replace(spec, incoming=True)
