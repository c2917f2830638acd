"""RAM checkpoints: save a machine's memory to a file, start another machine from it.

The state moves through a socket of which QEMU is handed one end over QMP, so QEMU opens no path and
runs no program for it; at the other end a thread of ours moves the bytes. Sockets are what every
QEMU takes as `fd:`; plain files it calls deprecated from 9.1 on. Connections to the guest are
closed before a save: a restored guest would otherwise wait for hosts that it never met.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from functools import partial
from typing import TYPE_CHECKING, cast

from vm.errors import LinkLost, VMError
from vm.machine.machine import Machine, waiting

if TYPE_CHECKING:
    import io
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from vm.machine.spec import MachineSpec

POLL_S = 0.01
MAX_BANDWIDTH = 8 << 30
"""Bytes a second; QEMU's own default is 128 MiB and would be the slowest part."""

PIECE = 1 << 20
"""Bytes that are moved at a time."""

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
        async with _moving(machine, partial(_keep, handle)) as moved:
            await machine.qmp.execute("migrate", {"uri": f"fd:{_NAME}"})
            await _finish(machine, deadline_s)
            async with asyncio.timeout(deadline_s):
                await asyncio.shield(moved)
    except TimeoutError as error:
        os.unlink(ram)
        raise CheckpointFailed(f"The memory took longer than {deadline_s:g} s.") from error
    except BaseException:
        os.unlink(ram)
        raise
    finally:
        os.close(handle)


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
    with os.fdopen(handle, "rb", buffering=0) as file:
        async with _moving(machine, partial(_send, file)):
            await machine.qmp.execute("migrate-incoming", {"uri": f"fd:{_NAME}"})
            await _finish(machine, deadline_s)


@contextlib.asynccontextmanager
async def _moving(
    machine: Machine, move: Callable[[socket.socket], None]
) -> AsyncGenerator[asyncio.Future[None]]:
    """Hand QEMU one end of a socket and `move` bytes at the other in a thread, which ends here.

    Raises CheckpointFailed instead of what QEMU says, where our side is what failed.
    """
    ours, its = socket.socketpair()
    with ours:
        with its:
            await machine.qmp.give_file(_NAME, its.fileno())
        moved = asyncio.ensure_future(asyncio.to_thread(move, ours))
        try:
            yield moved
        except (CheckpointFailed, OSError) as error:
            await _over(ours, moved)
            if (own := moved.exception()) is None:
                raise
            raise CheckpointFailed(f"The memory could not be moved: {own}.") from error
        finally:
            await _over(ours, moved)


async def _over(ours: socket.socket, moved: asyncio.Future[None]) -> None:
    with contextlib.suppress(OSError):  # whichever end hung up first
        ours.shutdown(socket.SHUT_RDWR)
    await asyncio.wait({moved})


def _keep(handle: int, ours: socket.socket) -> None:
    """Write what QEMU sends to a file; a QEMU that is not listened to any more fails by itself."""
    try:
        with memoryview(bytearray(PIECE)) as piece:
            while count := ours.recv_into(piece):
                rest = piece[:count]
                while rest:
                    rest = rest[os.write(handle, rest) :]
    except OSError:
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        raise


def _send(file: io.FileIO, ours: socket.socket) -> None:
    """Send a file to QEMU, which hangs up when it has all that it wants."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        ours.sendfile(file)
        ours.shutdown(socket.SHUT_WR)


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
