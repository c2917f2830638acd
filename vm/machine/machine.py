"""One QEMU process: start, adopt, pause, stop; and the first connection to its guest."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from vm.errors import BootFailed, CutOff, HostLacks, ImageMissing, LinkLost, NotStopped, VMError
from vm.machine import argv, console, disks, jail_start, rlimits, ssh
from vm.machine.process import Process, age_s, spawn, stands_still, start_time
from vm.machine.qmp import Qmp, QmpRefused
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import asyncssh

    from vm.machine.identity import Identity
    from vm.machine.spec import MachineSpec

POLL_S = 0.01
"""How often QEMU's monitor is looked for while QEMU starts (it takes about 0.1 s)."""

ENDING_S = 1.0
"""For how long a QEMU without its socket may be one that is just ending: it removes that first."""

HOUSEKEEPING_S = 5.0

MIN_FREE = 64 << 20
"""Bytes that must be free beside the console before a machine is started."""

TERM_PATIENCE_S = 3.0
KILL_PATIENCE_S = 5.0


class MachineGone(VMError):
    """The process to be adopted has ended, or its pid belongs to another program now."""

    code = "machine-gone"
    way_out = "Boot its disk again: cloche resume ID"


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
        process = await _launch(spec)
        started = start_time(process.pid)
        reached("boot.spawned")
        try:
            qmp = await _first_answer(process, spec, deadline_s)
        except BaseException:
            try:
                await _end(process)
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
        process = _hold(pid, start_time)
        try:
            if stands_still(pid):
                raise LinkLost(f"QEMU (process {pid}) was stopped from outside.")
            old = age_s(pid) > deadline_s and not spec.qmp_socket.exists()
            qmp = await _answer(process, spec, min(deadline_s, ENDING_S) if old else deadline_s)
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
        await _end(self._process)
        await self.close()

    async def kill(self) -> None:
        """End a machine that answers nothing, by signals alone. Raises NotStopped."""
        await _end(self._process)
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


async def _launch(spec: MachineSpec) -> Process:
    arguments = argv.build(spec)
    program = shutil.which(spec.binary)
    if program is None:
        raise HostLacks(f"{spec.binary} is not installed.", "Run: sudo apt install qemu-system-x86")
    _check_files(spec)
    _make_room(spec)
    try:
        if spec.jail is not None:
            return await jail_start.start(spec, program, spec.jail)
        bounds = rlimits.words(rlimits.find(), spec.resources, alone=False)
        return Process(spawn([*bounds, program, *arguments[1:]], spec.log))
    except ProcessLookupError as error:
        raise _ended_early(spec) from error
    except OSError as error:
        raise HostLacks(f"{program} could not be started: {error.strerror}.") from error


def _make_room(spec: MachineSpec) -> None:
    """Remove what an earlier machine left and make the console, so that it is ours alone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        sockets = (spec.qmp_socket, spec.control_socket, spec.bulk_socket)
        for stale in (*sockets, console.older(spec.console)):
            stale.unlink(missing_ok=True)
        os.close(os.open(spec.console, flags, 0o600))  # QEMU appends to it
    except OSError as error:
        raise VMError(
            f"{error.filename} cannot be used: {error.strerror}.",
            f"Look at it: ls -ld '{error.filename}'",
        ) from error


def _check_files(spec: MachineSpec) -> None:
    for needed in (spec.kernel, spec.initrd):
        if not needed.is_file():
            raise ImageMissing(f"{needed} does not exist.", "Run: cloche image build base")
    for disk in spec.disks:
        disks.verify(disk)
    for path in (spec.console, spec.log, spec.qmp_socket):
        if not path.parent.is_dir():
            raise VMError(f"The folder {path.parent} does not exist.")
    room = os.statvfs(spec.console.parent)
    if room.f_bavail * room.f_frsize < MIN_FREE:
        raise disks.disk_full(spec.console)


def _hold(pid: int, started: int) -> Process:
    """Take hold of a process, then check that it is the right one: this order leaves no gap."""
    try:
        process = Process(pid)
    except OSError as error:
        raise MachineGone(f"The machine (process {pid}) has ended.") from error
    if start_time(pid) != started or not process.running:
        process.close()
        raise MachineGone(f"The machine (process {pid}) has ended.")
    return process


async def _first_answer(process: Process, spec: MachineSpec, deadline_s: float) -> Qmp:
    qmp = await _answer(process, spec, deadline_s)
    if qmp is not None:
        return qmp
    if not process.running:
        raise _ended_early(spec)
    raise BootFailed(f"QEMU did not answer within {deadline_s:g} s.", _where(spec))


async def _answer(process: Process, spec: MachineSpec, deadline_s: float) -> Qmp | None:
    """Return the monitor of a QEMU that may only just have begun; None when it says nothing."""
    until = time.monotonic() + deadline_s
    while process.running and time.monotonic() < until:
        if spec.qmp_socket.exists():
            # between bind and listen QEMU refuses for a moment
            with contextlib.suppress(LinkLost):
                return await Qmp.connect(spec.qmp_socket, max(0.1, until - time.monotonic()))
        await process.ends_within(POLL_S)
    return None


def _ended_early(spec: MachineSpec) -> VMError:
    said = console.tail(spec.log, 5)
    if "No space left" in said:
        return disks.disk_full(spec.console)
    last = said.splitlines()[-1] if said else "it said nothing"
    return BootFailed(f"QEMU ended at once: {last}", _where(spec), said)


def _where(spec: MachineSpec) -> str:
    return f"Run: cloche doctor; the logs are {spec.log} and {spec.console}."


def wake_process(pid: int, started: int) -> None:
    """Let a machine go on whose process a signal has stopped, if it still is that process."""
    with contextlib.suppress(OSError):  # it has ended
        handle = os.pidfd_open(pid)
        try:
            if start_time(pid) == started:
                signal.pidfd_send_signal(handle, signal.SIGCONT)
        finally:
            os.close(handle)


async def end_process(pid: int, started: int) -> None:
    """End a machine that nobody has taken over, by signals alone. Raises NotStopped.

    Nothing happens when the process has ended, or when its pid is another program's by now.
    """
    try:
        process = _hold(pid, started)
    except MachineGone:
        return
    try:
        await _end(process)
    finally:
        process.close()


async def _end(process: Process) -> None:
    """SIGTERM, then SIGKILL. Raises NotStopped."""
    for number, patience in ((signal.SIGTERM, TERM_PATIENCE_S), (signal.SIGKILL, KILL_PATIENCE_S)):
        if not process.running:
            break
        process.signal(number)
        process.signal(signal.SIGCONT)  # one that was stopped would obey nothing but SIGKILL
        await process.ends_within(patience)
    if process.running:
        raise NotStopped(
            f"The machine (process {process.pid}) does not end.",
            f"Look at it: cat /proc/{process.pid}/stack; then: kill -9 {process.pid}",
        )
    await process.ends_within(1.0)


async def boot(
    machine: Machine, identity: Identity, deadline_s: float = 60.0
) -> asyncssh.SSHClientConnection:
    """Wait for the guest and return the first SSH connection to it.

    Raises BootFailed (last lines of the console, a hint) when the guest does not answer in time or
    QEMU ends; the machine, if it still runs, is the caller's to stop.
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
        message = "The guest ended while it started." if ended.done() else error.message
        raise _boot_failure(machine, message) from error
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


def _boot_failure(machine: Machine, message: str) -> BootFailed:
    return BootFailed(message, _where(machine.spec), machine.console_tail())


def waiting(spec: MachineSpec) -> MachineSpec:
    """Return the same machine, waiting for a saved memory instead of booting."""
    return replace(spec, incoming=True)
