"""How QEMU is started: what must be there before, and its monitor's first answer."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from typing import TYPE_CHECKING

from vm.errors import BootFailed, HostLacks, ImageMissing, LinkLost, VMError
from vm.machine import argv, console, disks, jail_start, rlimits
from vm.machine.process import Process, spawn
from vm.machine.qmp import Qmp

if TYPE_CHECKING:
    from vm.machine.spec import MachineSpec

POLL_S = 0.01
"""How often QEMU's monitor is looked for while QEMU starts (it takes about 0.1 s)."""

MIN_FREE = 64 << 20
"""Bytes that must be free beside the console before a machine is started."""


async def launch(spec: MachineSpec) -> Process:
    """Start QEMU, in the jail of the spec if that has one; what it raises: see `Machine.start`."""
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


async def first_answer(process: Process, spec: MachineSpec, deadline_s: float) -> Qmp:
    """Return the monitor of a QEMU that was just started. Raises BootFailed, DiskFull."""
    qmp = await answer(process, spec, deadline_s)
    if qmp is not None:
        return qmp
    if not process.running:
        raise _ended_early(spec)
    raise BootFailed(f"QEMU did not answer within {deadline_s:g} s.", where(spec))


async def answer(process: Process, spec: MachineSpec, deadline_s: float) -> Qmp | None:
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
    return BootFailed(f"QEMU ended at once: {last}", where(spec), said)


def where(spec: MachineSpec) -> str:
    """Return what to look at after a boot that failed."""
    return f"Run: cloche doctor; the logs are {spec.log} and {spec.console}."
