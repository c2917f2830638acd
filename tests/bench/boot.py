"""A cold machine's first answer, beside what bare QEMU needs for the same kernel and initramfs.

`cold_s` runs from the start of QEMU to the first answer of `true` in the agent's world. `bare_s`
is QEMU without disks and ports, to the first line that PID 1 prints; `reconnect_s` is one more
login to the same cold machine. `jailed_s` and `open_s` run to QEMU's first answer on its monitor
only, with its jail and without. The runs alternate, so that all meet the same load. Goal: the ratio
cold / (bare + reconnect) is at most 1.5.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.bench.report import publish, summary
from tests.e2e import vmlab
from vm.image.cmdline import Q35
from vm.machine import argv, ssh
from vm.machine.disks import create_overlay
from vm.machine.guest_exec import Command, run
from vm.machine.identity import Identity
from vm.machine.machine import Machine, boot
from vm.machine.spec import Resources

if TYPE_CHECKING:
    from pathlib import Path

    from vm.image.store import ImageSet
    from vm.machine.spec import MachineSpec

FIRST_LINE = b"CLOCHE"
"""PID 1 begins every line of its own with this; without a session its first line says so."""

DEADLINE_S = 120.0


async def bare(image: ImageSet, resources: Resources) -> float:
    """Seconds from the start of QEMU to the first line of PID 1."""
    words = ("-nodefaults", "-no-user-config", "-nographic", "-no-reboot")
    board = ("-machine", argv.BOARDS["q35"].split(",")[0], "-accel", "tcg,thread=multi")
    size = ("-cpu", "max", "-smp", str(resources.vcpus), "-m", str(resources.memory_mib))
    kernel = ("-kernel", str(image.vmlinux), "-initrd", str(image.initramfs))
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *("qemu-system-x86_64", *words, *board, *size, *kernel),
        *("-append", Q35, "-chardev", "stdio,id=c", "-serial", "chardev:c"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    said = b""
    async with asyncio.timeout(DEADLINE_S):
        while FIRST_LINE not in said:
            chunk = await process.stdout.read(4096)
            assert chunk, said
            said += chunk
    taken = time.perf_counter() - started
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.communicate()
    return taken


async def cold(spec: MachineSpec, identity: Identity) -> dict[str, float]:
    """Seconds from the start of QEMU to each step up to the first answer, and of a second login."""
    marks: dict[str, float] = {}
    started = time.perf_counter()
    machine = await Machine.start(spec)
    try:
        marks["qmp_s"] = time.perf_counter() - started
        connection = await boot(machine, identity, DEADLINE_S)
        marks["login_s"] = time.perf_counter() - started
        answer = await run(connection, Command(("true",)))
        marks["cold_s"] = time.perf_counter() - started
        assert answer.exit_code == 0, answer
        connection.abort()
        await connection.wait_closed()
        again = time.perf_counter()
        connection = await ssh.connect(spec.control_socket, identity, DEADLINE_S)
        marks["reconnect_s"] = time.perf_counter() - again
        connection.abort()
        await connection.wait_closed()
    finally:
        await machine.stop(1.0)
    return marks


async def to_monitor(spec: MachineSpec) -> float:
    """Seconds from the start of QEMU to its first answer on the monitor."""
    started = time.perf_counter()
    machine = await Machine.start(spec)
    taken = time.perf_counter() - started
    await machine.stop(1.0)
    return taken


async def one(image: ImageSet, resources: Resources, folder: Path) -> dict[str, float]:
    """One cold run and one bare run."""
    identity = Identity.new()
    spec = vmlab.lab_spec(image, folder, vmlab.make_workspace(folder), vmlab.template())
    spec = replace(spec, resources=resources)
    await create_overlay(folder / "scratch.qcow2", vmlab.template())
    vmlab.put_secrets(image, spec, identity)
    figures = await cold(spec, identity)
    figures["bare_s"] = await bare(image, resources)
    figures["jailed_s"] = await to_monitor(spec)
    figures["open_s"] = await to_monitor(replace(spec, jail=None))
    figures["ratio"] = figures["cold_s"] / (figures["bare_s"] + figures["reconnect_s"])
    return figures


async def measure(runs: int, resources: Resources) -> dict[str, object]:
    """Warm up once, then run `runs` times."""
    image, all_figures = vmlab.lab_image(), list[dict[str, float]]()
    for _ in range(runs + 1):
        async with vmlab.short_folder() as folder:
            all_figures.append(await one(image, resources, folder))
    kept = all_figures[1:]
    medians = {name: statistics.median(run[name] for run in kept) for name in kept[0]}
    return {
        "runs": runs,
        "vcpus": resources.vcpus,
        **{name: summary([run[name] for run in kept]) for name in kept[0]},
        "ratio_of_medians": round(
            medians["cold_s"] / (medians["bare_s"] + medians["reconnect_s"]), 3
        ),
        "jail_s": round(medians["jailed_s"] - medians["open_s"], 4),
    }


def main() -> None:
    """Read the options, measure, publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the output is JSON in any case")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--vcpus", type=int, default=Resources().vcpus)
    options = parser.parse_args()
    resources = Resources(options.vcpus, Resources().memory_mib)
    publish(asyncio.run(measure(max(1, options.runs), resources)))


if __name__ == "__main__":
    main()
