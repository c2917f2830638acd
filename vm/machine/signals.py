"""QEMU's process from outside: named by pid and start time, let go on, and ended by signals."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from vm.errors import NotStopped, VMError
from vm.machine.process import Process, start_time
from vm.machine.strays import machine_processes

if TYPE_CHECKING:
    from pathlib import Path

TERM_PATIENCE_S = 3.0
KILL_PATIENCE_S = 5.0
STRAY_ROUNDS = 5
"""How often strays are looked for: one that is just starting another is seen in the next round."""


class MachineGone(VMError):
    """The process to be adopted has ended, or its pid belongs to another program now."""

    code = "machine-gone"
    way_out = "Boot its disk again: cloche resume ID"


def hold(pid: int, started: int) -> Process:
    """Take hold of a process, then check that it is the right one: this order leaves no gap."""
    try:
        process = Process(pid)
    except OSError as error:
        raise MachineGone(f"The machine (process {pid}) has ended.") from error
    if start_time(pid) != started or not process.running:
        process.close()
        raise MachineGone(f"The machine (process {pid}) has ended.")
    return process


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
        process = hold(pid, started)
    except MachineGone:
        return
    try:
        await end(process)
    finally:
        process.close()


async def end_strays(log: Path) -> None:
    """End what is left of a start that came to nothing, by SIGKILL.

    Of its processes one may have died before it could end the other: bubblewrap's second one waits
    for ever for a first one that was killed, and as process 1 of its namespace it obeys no less.
    """
    for _ in range(STRAY_ROUNDS):
        found = machine_processes(log)
        if not found:
            return
        for stray in found:
            with contextlib.suppress(MachineGone):
                await _kill(hold(stray.pid, stray.start_time))


async def _kill(process: Process) -> None:
    try:
        process.signal(signal.SIGKILL)
        await process.ends_within(KILL_PATIENCE_S)
    finally:
        process.close()


async def end(process: Process) -> None:
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
