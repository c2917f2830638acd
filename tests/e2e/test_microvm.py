"""The board of the KVM path, booted for real under emulation: all of it but the accelerator."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.e2e import vmlab
from vm.image.cmdline import emulated_clock
from vm.machine import accel, clock
from vm.machine.disks import create_overlay
from vm.machine.guest_exec import power_off
from vm.machine.identity import Identity
from vm.machine.machine import Machine, boot
from vm.machine.spec import Resources

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from vm.image.store import ImageSet
    from vm.machine.verdicts import Verdict

pytestmark = pytest.mark.vm

QEMU = os.environ.get("CLOCHE_TEST_QEMU", "qemu-system-x86_64")
"""Another QEMU than the installed one, such as that of a newer release in a chroot."""

CLOCK_TOLERANCE = 0.25
"""A guest that was told a wrong rate is wrong by a factor; the way of an answer takes 0.2 s."""


@contextlib.asynccontextmanager
async def _microvm(image: ImageSet) -> AsyncGenerator[vmlab.LabVM]:
    async with vmlab.short_folder() as folder, contextlib.AsyncExitStack() as stack:
        identity, below = Identity.new(), vmlab.template()
        lab = vmlab.lab_spec(image, folder, vmlab.make_workspace(folder), below, name="micro")
        spec = replace(
            lab,
            board="microvm",
            tsc_khz=clock.host_tsc_khz(),
            resources=Resources(vcpus=2, memory_mib=512),
            binary=QEMU,
            jail=None if "CLOCHE_TEST_QEMU" in os.environ else lab.jail,
        )
        await create_overlay(folder / "scratch.qcow2", below)
        vmlab.put_secrets(image, spec, identity)
        machine = await Machine.start(spec)
        stack.push_async_callback(machine.stop, 2.0)
        connection = await boot(machine, identity, vmlab.BOOT_DEADLINE_S)
        vm = vmlab.LabVM(machine, identity, folder, connection)
        stack.push_async_callback(vm.close)
        yield vm


async def _clocks(vm: vmlab.LabVM) -> tuple[float, float, float]:
    """Return the guest's time, the host's in the middle of the question, and how far off it is."""
    began = time.time()
    said = await vm.sh("date +%s.%N")
    ended = time.time()
    return float(said), (began + ended) / 2, (ended - began) / 2


async def test_the_board_of_kvm_boots_works_freezes_and_powers_off(guest_image: ImageSet) -> None:
    async with _microvm(guest_image) as vm:
        assert "CLOCHE ready" in vm.machine.console_tail()
        first_guest, first_host, unsure = await _clocks(vm)
        facts = await vm.sh(
            "nproc; cat /sys/devices/system/clocksource/clocksource0/current_clocksource;"
            "ls /sys/bus/virtio/devices | wc -l; ls /sys/bus/pci/devices 2>/dev/null | wc -l"
        )
        # Linux trusts the counter a second or so after it began to use it
        assert facts.replace("tsc-early", "tsc").split() == ["2", "tsc", "6", "0"]
        await vm.sh("echo kept > /workspace/kept.txt")
        bulk = await vm.bulk()
        await bulk.freeze()
        listing = await bulk.list_upper("workspace", 1000, 1 << 20)
        assert b"kept.txt" in [entry.path for entry in listing.entries]
        await bulk.thaw()
        assert (await vm.run("sh", "-c", "exit 42")).exit_code == 42
        await vm.machine.pause()
        await vm.machine.resume()
        await vm.reconnect()
        guest, host, unsure_too = await _clocks(vm)
        passed = host - first_host
        wrong = abs((guest - first_guest) - passed)
        assert wrong < max(0.5, passed * CLOCK_TOLERANCE) + unsure + unsure_too
        await vm.machine.stop(20.0, lambda: power_off(vm.ssh))
        assert await vm.machine.wait_exit() == 0
        assert "CLOCHE down" in vm.machine.console_tail()


async def test_the_probes_kernel_comes_to_its_last_words(
    guest_image: ImageSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The probe itself works: a verdict against KVM is about KVM."""
    monkeypatch.setattr(accel, "PROBE_DEADLINE_S", 60.0)
    words = emulated_clock(clock.host_tsc_khz())
    assert (await accel.probe(guest_image.vmlinux, QEMU, "tcg", words)).works


async def test_a_real_probe_decides_in_time_and_is_remembered(
    guest_image: ImageSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever this host is: it ends with a verdict, a reason, and no second boot."""
    monkeypatch.delenv(accel.VARIABLE, raising=False)
    began = time.monotonic()
    choice = await accel.choose(guest_image.vmlinux, tmp_path, QEMU)
    assert time.monotonic() - began < 120.0  # the deadline is 8 s; the rest is a busy host
    assert bool(choice.notice) == (choice.accelerator == "tcg")

    async def never(*_: object) -> Verdict:
        raise AssertionError("it was asked again")

    monkeypatch.setattr(accel, "probe", never)
    assert await accel.choose(guest_image.vmlinux, tmp_path, QEMU) == choice
