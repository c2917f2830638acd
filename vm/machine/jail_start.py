"""Starting a machine in its jail: files handed over, the jail closed, QEMU's own pid found."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vm.errors import HostLacks
from vm.machine import argv, jail, jail_check, rlimits
from vm.machine.process import Process, parent, spawn
from vm.machine.signals import end_strays
from vm.steps import reached

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.machine.spec import MachineSpec

PID_S: Final = 10.0
"""Seconds until bubblewrap must have said QEMU's pid; it takes some milliseconds."""

_PID: Final = re.compile(rb'"child-pid":\s*(\d{1,10})\D')
_LONGEST: Final = 4096
_GROUP: Final = stat.S_IRGRP | stat.S_IWGRP
_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH


async def start(spec: MachineSpec, program: str, place: jail.Jail) -> Process:
    """Start QEMU in its jail and return its process, with bubblewrap's as its guard.

    Raises OSError when bubblewrap cannot be started, ProcessLookupError when it or QEMU has ended
    already (the spec's log says why), HostLacks when a file cannot be handed over.
    """
    held, links = jail_check.surroundings(program)
    own, tenant = jail.files(spec), None
    if place.setpriv:
        tenant = jail.lodger(spec, _device_groups(own))
        own = hand_over(own, tenant, spec.console.parent)
    limiter = jail.File(Path(rlimits.find()), Path(rlimits.find()))
    bounds = rlimits.words(str(limiter.target), spec.resources, alone=True)
    inside = [*bounds, held[0].target.as_posix(), *argv.build(jail.inside(spec))[1:]]
    words = jail.command(place, inside, [*held, limiter, *own], links=links, tenant=tenant)
    listening, saying = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        guard = Process(spawn(words, spec.log, {jail.INFO: saying}))
    except BaseException:
        os.close(listening)
        raise
    finally:
        os.close(saying)
    reached("boot.jailed")
    return await inmate(guard, listening, spec.log)


async def inmate(guard: Process, listening: int, log: Path) -> Process:
    """Return the process that `guard`, bubblewrap, says on the pipe `listening` that it started.

    Raises ProcessLookupError when there is none; then nothing that writes to `log` is left either.
    """
    try:
        pid = await _child(listening)
        process = Process(pid, guard)
        if parent(pid) != guard.pid:
            raise ProcessLookupError(f"{pid} has ended")
    except BaseException:
        # until QEMU has a session of its own, it is in its guard's process group
        if guard.running:
            os.killpg(guard.pid, signal.SIGKILL)
        await guard.ends_within(1.0)
        guard.close()
        await end_strays(log)
        raise
    finally:
        os.close(listening)
    return process


async def _child(listening: int) -> int:
    """Read QEMU's pid off the pipe. Raises ProcessLookupError when it does not come.

    It is read to its end: bubblewrap writes in several pieces, and a pipe that is closed under it
    would kill it half-way.
    """
    loop = asyncio.get_running_loop()
    said, ready = b"", asyncio.Event()
    loop.add_reader(listening, ready.set)
    try:
        async with asyncio.timeout(PID_S):
            while len(said) < _LONGEST:
                await ready.wait()
                ready.clear()
                chunk = _read(listening)
                if chunk == b"":
                    break
                said += chunk or b""
    except TimeoutError:
        said = b""  # it hangs: the caller ends it
    finally:
        loop.remove_reader(listening)
    found = _PID.search(said)
    if found is None:
        raise ProcessLookupError("bubblewrap started nothing")
    return int(found[1])


def _read(descriptor: int) -> bytes | None:
    try:
        return os.read(descriptor, _LONGEST)
    except BlockingIOError:
        return None


def _device_groups(own: Iterable[jail.File]) -> tuple[int, ...]:
    """Return the groups that may use the machine's devices where not everybody may.

    Root's own group is never given: it may use more than one device.
    """
    found = [os.stat(file.source) for file in own if file.access == "device"]
    return tuple(
        {
            device.st_gid
            for device in found
            if not _allows(device, _OTHERS) and _allows(device, _GROUP) and device.st_gid != 0
        }
    )


def _allows(found: os.stat_result, rights: int) -> bool:
    return found.st_mode & rights == rights


def hand_over(own: Iterable[jail.File], tenant: jail.Lodger, folder: Path) -> tuple[jail.File, ...]:
    """Let root's QEMU use its files under the user that it will be; only root can do this.

    What it writes becomes its own. What it only reads stays whose it is, and is opened to the group
    of all such QEMUs where others could not read it. A device that neither its group nor others may
    use is made again in `folder`, for that user alone. No folder on the way to a file is opened.
    Returns the files to use. Raises HostLacks.
    """
    return tuple(_handed_over(file, tenant, folder) for file in own)


def _handed_over(file: jail.File, tenant: jail.Lodger, folder: Path) -> jail.File:
    try:
        if file.access == "device":
            return _device(file, tenant, folder)
        _hand_over(file, tenant)
    except OSError as error:
        raise HostLacks(
            f"{file.source} cannot be given to QEMU's own user: {error.strerror}.",
            "Run Cloche as an ordinary user; what else is amiss: cloche doctor",
        ) from error
    return file


def _device(file: jail.File, tenant: jail.Lodger, folder: Path) -> jail.File:
    found = os.stat(file.source)
    if _allows(found, _OTHERS) or found.st_gid in tenant.groups:
        return file
    own = folder / file.target.name
    own.unlink(missing_ok=True)
    os.mknod(own, stat.S_IFCHR | 0o600, found.st_rdev)
    os.chown(own, tenant.uid, tenant.gid)
    return replace(file, source=own)


def withheld(place: jail.Jail | None, device: Path, folder: Path) -> str:
    """Say why QEMU in this jail could not use a device that we can; empty when it could.

    `folder` is where a device that is root's alone is made again for a try.
    """
    if place is None or not place.setpriv:
        return ""
    own = folder / f"{device.name}.try-{os.getpid()}"
    try:
        found = os.stat(device)
        shared = found.st_gid != 0 and _allows(found, _GROUP)
        if shared or _allows(found, _OTHERS):
            return ""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.mknod(own, stat.S_IFCHR | 0o600, found.st_rdev)
        os.close(os.open(own, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        reason = (error.strerror or "it failed").lower()
        return f"{device} is root's alone and cannot be passed on to QEMU's own user ({reason})"
    finally:
        own.unlink(missing_ok=True)
    return ""


def _hand_over(file: jail.File, tenant: jail.Lodger) -> None:
    handle = os.open(file.source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if file.access == "write":
            os.fchown(handle, tenant.uid, tenant.gid)
        elif not found.st_mode & stat.S_IROTH:
            os.fchown(handle, -1, tenant.gid)
            os.fchmod(handle, stat.S_IMODE(found.st_mode) | stat.S_IRGRP)
    finally:
        os.close(handle)
