"""RAM checkpoints: save a machine's memory to a file, start another machine from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from vm.machine.machine import Machine
    from vm.machine.spec import MachineSpec


async def save(machine: Machine, ram: Path, deadline_s: float = 30.0) -> None:
    """Stop the guest and write its memory to the new file `ram`; the machine stays stopped."""
    raise NotImplementedError


async def restore(spec: MachineSpec, ram: Path, deadline_s: float = 30.0) -> Machine:
    """Start a machine from a saved memory and let it run. `spec.disks` must match the saved ones."""
    raise NotImplementedError
