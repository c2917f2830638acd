"""A program in the guest as its client sees it: three streams that are carried, and an end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import asyncssh

from app.client.connection import keeper_lost
from app.errors import EXIT_OURS, AppError
from app.programs import check_words, fault_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from app.client.session import SessionClient
    from app.programs import Program

    Write = Callable[[bytes], Awaitable[object]]
    Running = asyncssh.SSHClientProcess[bytes]

CHUNK: Final = 1 << 16
READ_AHEAD: Final = 8
"""Chunks of stdin that wait for the guest."""

KILL_S: Final = 5.0
"""Seconds that a program which ran out of time may take to be dead and to have said its last."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its status (128+N for a signal), or that it ran out of time."""

    status: int
    timed_out: bool = False


async def start(
    client: SessionClient, program: Program, options: Mapping[str, Any] | None = None
) -> Running:
    """Start a program; `options` are asyncssh's, for a terminal.

    Raises AppError `keeper-lost`, and `usage` for what cannot be passed on.
    """
    check_words((*program.argv, program.cwd), program.env)
    try:
        return await client.ssh.create_process(
            program.command, encoding=None, env=program.environment, **(options or {})
        )
    except asyncssh.Error as error:
        raise keeper_lost() from error


async def carry(
    running: Running, *, stdin: int | None, out: Write, err: Write, timeout_s: float | None = None
) -> Ended:
    """Carry a program's streams to its end; at the deadline its process group is killed first.

    What it had printed until then still arrives. `stdin` is a descriptor of ours, None an empty
    input. Raises what `out` and `err` raise, and AppError where the program came to no end of its
    own.
    """
    carrying = asyncio.create_task(_pump(running, stdin, out, err))
    try:
        return await _until(running, carrying, timeout_s)
    except asyncssh.Error as error:
        raise keeper_lost() from error
    finally:
        carrying.cancel()
        await asyncio.gather(carrying, return_exceptions=True)


async def _until(running: Running, carrying: asyncio.Task[int], timeout_s: float | None) -> Ended:
    if (await asyncio.wait({carrying}, timeout=timeout_s))[0]:
        return Ended(carrying.result())
    running.kill()
    if (await asyncio.wait({carrying}, timeout=KILL_S))[0]:
        with contextlib.suppress(AppError):  # of a guest that is gone, too, the time has run out
            carrying.result()
    return Ended(EXIT_OURS, timed_out=True)


async def _pump(running: Running, stdin: int | None, out: Write, err: Write) -> int:
    feeding = asyncio.create_task(_feed(running, stdin))
    drains = [
        asyncio.create_task(_drain(running.stdout, out)),
        asyncio.create_task(_drain(running.stderr, err)),
    ]
    try:
        await asyncio.gather(*drains)
        await running.wait_closed()
    finally:
        for task in (feeding, *drains):
            task.cancel()
        await asyncio.gather(feeding, *drains, return_exceptions=True)
    if running.exit_signal is not None:
        raise fault_in(running.exit_signal[2])
    if running.exit_status is None:
        raise keeper_lost()
    return running.exit_status & 0xFF


async def _drain(stream: asyncssh.SSHReader[bytes], write: Write) -> None:
    while data := await stream.read(CHUNK):
        await write(data)


async def _feed(running: Running, stdin: int | None) -> None:
    chunks: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(READ_AHEAD)
    if stdin is None:
        chunks.put_nowait(b"")
    else:
        loop = asyncio.get_running_loop()
        words = (loop, chunks, room, stdin)
        threading.Thread(target=_read_input, args=words, daemon=True).start()
    try:
        while data := await chunks.get():
            running.stdin.write(data)
            await running.stdin.drain()
            room.release()
        running.stdin.write_eof()
    except (BrokenPipeError, asyncssh.Error):
        return  # the program ended without reading all of its input


def _read_input(
    loop: asyncio.AbstractEventLoop,
    chunks: asyncio.Queue[bytes],
    room: threading.Semaphore,
    descriptor: int,
) -> None:
    # in a thread of its own: stdin may be a plain file, which no event loop can wait for, and a
    # read that nobody needs any more must not keep the command from ending
    data = b"-"
    while data:
        room.acquire()
        try:
            data = os.read(descriptor, CHUNK)
        except OSError:
            data = b""  # it was closed, or cannot be read on: the program sees its end
        try:
            loop.call_soon_threadsafe(chunks.put_nowait, data)
        except RuntimeError:
            return  # the command has ended


def writer(descriptor: int) -> Write:
    """Return what writes all that it gets to a descriptor."""
    return partial(write_all, descriptor)


async def write_all(descriptor: int, data: bytes) -> None:
    """Write everything to a descriptor; a reader that is slow holds only the caller."""
    view = memoryview(data)
    while view:
        view = view[await asyncio.to_thread(os.write, descriptor, view) :]
