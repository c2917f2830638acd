"""Carries one client's streams to a program in the guest and back, until the program is over.

The three streams stay apart, each waits for whoever reads it, and nothing is kept in between. A
child that the program left behind with open streams does not hold up the client.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final

import asyncssh

from app.keeper.threads import end_tasks
from vm.errors import LinkLost
from vm.machine.commands import exit_code
from vm.machine.ending import Flow, ended, output_over

if TYPE_CHECKING:
    from app.keeper.guest_program import GuestProgram

CHUNK: Final = 1 << 16
NO_STATUS: Final = 125
"""Exit status where there is none of the program's."""

MAX_SIGNALS: Final = 16
"""Signals of one client that may wait to be passed on; more are dropped."""


class ClientSession(asyncssh.SSHServerProcess[bytes]):
    """A client's session; its signals come beside its input, which may have ended or be stuck."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)  # pyright: ignore[reportUnknownMemberType]
        self.signals: asyncio.Queue[str] = asyncio.Queue(MAX_SIGNALS)

    def signal_received(self, signal: str) -> None:
        """Keep a signal for the program."""
        with contextlib.suppress(asyncio.QueueFull):
            self.signals.put_nowait(signal)


async def carry(client: ClientSession, guest: GuestProgram) -> int:
    """Carry until the program is over or the client is gone; the program's exit status.

    Raises asyncssh.Error or OSError when a stream breaks, LinkLost when nobody knows how a program
    ended because its machine or the link to it has.
    """
    flow, running = Flow(), guest.process
    loop = asyncio.get_running_loop()
    outputs = [
        loop.create_task(_pass(running.stdout, client.stdout, flow)),
        loop.create_task(_pass(running.stderr, client.stderr, flow)),
    ]
    streams = asyncio.gather(*outputs)
    over = loop.create_task(_over(guest, streams, flow))
    gone = loop.create_task(client.wait_closed())
    aside = [loop.create_task(_feed(client, guest)), loop.create_task(_signal(client, guest))]
    try:
        await asyncio.wait({over, gone}, return_when=asyncio.FIRST_COMPLETED)
        if over.done():
            over.result()
            return exit_code(guest.process)
    finally:
        await end_tasks([over, gone, *aside, *outputs])
        await asyncio.gather(streams, return_exceptions=True)
    return NO_STATUS  # the client is gone


async def _over(guest: GuestProgram, streams: asyncio.Future[list[None]], flow: Flow) -> None:
    if await output_over(guest.process, streams, flow):
        try:
            await streams
        except LinkLost:
            if not ended(guest.process):  # else it broke under a child that held the streams
                raise
        await guest.process.wait_closed()


async def _pass(
    source: asyncssh.SSHReader[bytes], target: asyncssh.SSHWriter[bytes], flow: Flow
) -> None:
    while data := await _read(source):
        with flow.handing_on():
            target.write(data)
            await target.drain()


async def _read(source: asyncssh.SSHReader[bytes]) -> bytes:
    """Return the guest's next piece; a link that breaks is no fault of the client's channel."""
    try:
        return await source.read(CHUNK)
    except (asyncssh.Error, OSError) as error:
        raise LinkLost("The connection to the guest broke before the program ended.") from error


async def _signal(client: ClientSession, guest: GuestProgram) -> None:
    with contextlib.suppress(LinkLost):
        while True:
            await guest.signal(await client.signals.get())


async def _feed(client: ClientSession, guest: GuestProgram) -> None:
    stdin = guest.process.stdin
    # a program may end without reading its input
    with contextlib.suppress(OSError, asyncssh.Error):
        while True:
            try:
                data = await client.stdin.read(CHUNK)
            except asyncssh.TerminalSizeChanged as change:
                guest.process.change_terminal_size(change.width, change.height)
                continue
            except asyncssh.BreakReceived:
                continue
            if not data:
                break
            if guest.typed is not None:
                guest.typed()
            stdin.write(data)
            await stdin.drain()
        stdin.write_eof()
