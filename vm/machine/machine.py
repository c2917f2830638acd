"""One QEMU process: start, adopt, pause, stop; and the first connection to its guest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncssh

    from vm.machine.identity import Identity
    from vm.machine.qmp import Qmp
    from vm.machine.spec import MachineSpec


class Machine:
    """A running QEMU. It is in a session of its own and survives the process that started it."""

    spec: MachineSpec
    pid: int
    start_time: int
    """Field 22 of /proc/PID/stat: with the pid it names a process for good."""
    qmp: Qmp

    @classmethod
    async def start(cls, spec: MachineSpec, deadline_s: float = 20.0) -> Machine:
        """Start QEMU and return when it answers QMP.

        Raises BadSpec, BadDisk or ImageMissing before anything is started, HostLacks without QEMU,
        DiskFull, and BootFailed (with QEMU's log) when it ends or does not answer in time.
        """
        raise NotImplementedError

    @classmethod
    async def adopt(
        cls, spec: MachineSpec, pid: int, start_time: int, deadline_s: float = 10.0
    ) -> Machine:
        """Take over a machine that another process started. Raises MachineGone if it has ended."""
        raise NotImplementedError

    @property
    def running(self) -> bool:
        """Whether the process still exists (not: whether the guest is well)."""
        raise NotImplementedError

    async def wait_exit(self) -> int | None:
        """Wait until the process has ended; its exit status (negative = signal), None if adopted."""
        raise NotImplementedError

    async def pause(self) -> None:
        """Stop the guest's vCPUs. Raises LinkLost when QMP does not answer."""
        raise NotImplementedError

    async def resume(self) -> None:
        """Let the guest's vCPUs run again."""
        raise NotImplementedError

    async def stop(self, deadline_s: float = 10.0) -> None:
        """End the machine: ask the guest, then QMP quit, then SIGTERM, then SIGKILL.

        Returns when the process is gone. Raises NotStopped when it is not gone after all that.
        """
        raise NotImplementedError

    def console_tail(self, lines: int = 20) -> str:
        """Return the last lines of the guest's console, printable characters only."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of the machine (QMP and descriptors) without ending it."""
        raise NotImplementedError


async def boot(
    machine: Machine, identity: Identity, deadline_s: float = 60.0
) -> asyncssh.SSHClientConnection:
    """Wait for the guest and return the first SSH connection to it.

    Raises BootFailed (last lines of the console, a hint) when the guest does not answer in time or
    QEMU ends.
    """
    raise NotImplementedError
