"""RAM checkpoints: save a machine's memory to a file, start another machine from it.

The state moves through a descriptor that QEMU is handed over QMP, so QEMU opens no path and runs no
program for it. Connections to the guest are closed before a save: a restored guest would otherwise
wait for hosts that it never met.
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, cast

from vm.errors import LinkLost, VMError
from vm.machine.machine import Machine, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from vm.machine.spec import MachineSpec

POLL_S = 0.01
MAX_BANDWIDTH = 8 << 30
"""Bytes a second; QEMU's own default is 128 MiB and would be the slowest part."""

_NAME = "state"


class CheckpointFailed(VMError):
    """A memory could not be saved or loaded."""

    code = "checkpoint-failed"
    way_out = "Start without the checkpoint: cloche resume ID"


async def save(machine: Machine, ram: Path, deadline_s: float = 30.0) -> None:
    """Stop the guest and write its memory to the new file `ram`; the machine stays stopped.

    Its disks are complete on the host's side when this returns. Raises CheckpointFailed, LinkLost.
    """
    await machine.pause()
    await machine.qmp.execute("migrate-set-parameters", {"max-bandwidth": MAX_BANDWIDTH})
    handle = os.open(ram, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        await machine.qmp.give_file(_NAME, handle)
    finally:
        os.close(handle)
    try:
        await machine.qmp.execute("migrate", {"uri": f"fd:{_NAME}"})
        await _finish(machine, deadline_s)
    except BaseException:
        os.unlink(ram)
        raise


async def restore(spec: MachineSpec, ram: Path, deadline_s: float = 30.0) -> Machine:
    """Start a machine from a saved memory and let it run. `spec.disks` must match the save.

    Raises CheckpointFailed when the memory does not load, and what `Machine.start` raises.
    """
    machine = await Machine.start(waiting(spec), deadline_s)
    try:
        await _load(machine, ram, deadline_s)
        await machine.resume()
    except BaseException:
        await machine.stop(1.0)
        raise
    return machine


async def _load(machine: Machine, ram: Path, deadline_s: float) -> None:
    try:
        handle = os.open(ram, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise CheckpointFailed(f"{ram} cannot be read: {error.strerror}.") from error
    try:
        await machine.qmp.give_file(_NAME, handle)
    finally:
        os.close(handle)
    await machine.qmp.execute("migrate-incoming", {"uri": f"fd:{_NAME}"})
    await _finish(machine, deadline_s)


async def _finish(machine: Machine, deadline_s: float) -> None:
    """Wait until the move of memory is complete."""
    until = time.monotonic() + deadline_s
    while (status := await _status(machine)) != "completed":
        if status in ("failed", "cancelled"):
            raise CheckpointFailed(
                f"QEMU could not move the memory of {machine.spec.name}.",
                f"Read {machine.spec.log}; then start without the checkpoint.",
            )
        if time.monotonic() >= until:
            raise CheckpointFailed(f"The memory took longer than {deadline_s:g} s.")
        await asyncio.sleep(POLL_S)


async def _status(machine: Machine) -> str:
    try:
        answer = cast("dict[str, object]", await machine.qmp.execute("query-migrate"))
    except LinkLost:
        return "failed"  # QEMU ends itself over a memory that it cannot load
    return str(answer.get("status", "none"))
