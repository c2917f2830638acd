"""What a real machine may take of its host, and what it gives back."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.bench.idle import resident_mb
from tests.e2e import vmlab
from tests.vm.test_machine_rlimits import limits_of
from vm.machine import console, rlimits
from vm.machine.commands import run_toolkit
from vm.machine.disks import create_overlay
from vm.machine.identity import Identity
from vm.machine.machine import Machine

if TYPE_CHECKING:
    from tests.e2e.vmlab import LabVM
    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm

SMALL = 64 << 10
GROWN_MB = 150
USE = f"held = bytearray(b'x') * {GROWN_MB * 1_000_000}"


async def test_a_jailed_qemu_is_bounded(forked_vm: LabVM) -> None:
    found = limits_of(forked_vm.machine.pid)
    space = (vmlab.RESOURCES.memory_mib + rlimits.OVERHEAD_MIB) << 20
    assert found["Max core file size"] == ("0", "0")
    assert found["Max open files"] == (str(rlimits.FILES),) * 2
    assert found["Max address space"] == (str(space),) * 2
    if forked_vm.spec.jail is not None:
        assert found["Max processes"] == (str(rlimits.TASKS),) * 2


async def test_a_qemu_without_a_jail_is_bounded(guest_image: ImageSet) -> None:
    async with vmlab.short_folder() as folder:
        below = vmlab.template()
        spec = vmlab.lab_spec(guest_image, folder, vmlab.make_workspace(folder), below)
        await create_overlay(folder / "scratch.qcow2", below)
        vmlab.put_secrets(guest_image, spec, Identity.new())
        machine = await Machine.start(replace(spec, jail=None))
        found = limits_of(machine.pid)
        await machine.stop(1.0)
    assert found["Max core file size"] == ("0", "0")
    assert found["Max open files"] == (str(rlimits.FILES),) * 2


async def test_freed_memory_comes_back(forked_vm: LabVM) -> None:
    pid = forked_vm.machine.pid
    before = resident_mb(pid)
    await forked_vm.run("python3", "-c", USE)
    held = resident_mb(pid)
    until = time.monotonic() + 60
    while held - resident_mb(pid) < (held - before) / 2:
        held = max(held, resident_mb(pid))
        assert time.monotonic() < until, (before, held, resident_mb(pid))
        await asyncio.sleep(0.2)


async def test_a_flooded_console_stays_bounded(
    forked_vm: LabVM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent has no console; a guest that it took over writes without a pause."""
    path = forked_vm.spec.console
    monkeypatch.setattr(console, "MAX_FILE", SMALL)
    monkeypatch.setattr(console, "KEPT", SMALL // 4)
    before = path.stat().st_size
    task = asyncio.create_task(run_toolkit(forked_vm.ssh, "yes flood > /dev/ttyS0"))
    until = time.monotonic() + 120
    while not console.older(path).exists():
        assert time.monotonic() < until, (before, path.stat().st_size)
        await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert console.older(path).stat().st_size == SMALL // 4
    # What came while the file was cut is lost, so a word may have lost its end.
    assert set("".join(console.tail(path, 1000).split()[1:-1])) <= set("flood")
    assert (await forked_vm.run("true")).exit_code == 0
