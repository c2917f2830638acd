"""The channel of one copy to the session's keeper."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, cast

import asyncssh
import msgspec

from app.client.connection import keeper_lost
from app.copy_stream import COPY_SUBSYSTEM, REQUEST_LENGTH, CopyFault, CopyRequest
from app.errors import AppError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from app.client.session import SessionClient

    Channel = asyncssh.SSHClientProcess[bytes]

MAX_PACKET: Final = 256 << 10
"""Bytes of a packet from the keeper: each costs the same, whatever its size."""

MAX_FAULT: Final = 64 << 10
FAULT_S: Final = 10.0


@contextlib.asynccontextmanager
async def copy_channel(client: SessionClient, request: CopyRequest) -> AsyncGenerator[Channel]:
    """Ask the keeper for a copy; a stream that ends too early becomes the keeper's own error."""
    data = msgspec.json.encode(request)
    if len(data) > 0xFFFF:
        raise AppError("usage", "The path in the guest is too long.", "cloche cp --help")
    try:
        channel = cast(
            "Channel",
            await client.ssh.create_process(  # pyright: ignore[reportUnknownMemberType]
                subsystem=COPY_SUBSYSTEM, encoding=None, max_pktsize=MAX_PACKET
            ),
        )
        try:
            channel.stdin.write(REQUEST_LENGTH.pack(len(data)) + data)
            yield channel
        except asyncio.IncompleteReadError as error:
            raise await _fault(channel) from error
        finally:
            channel.close()
    except asyncssh.Error as error:
        raise keeper_lost() from error


async def _fault(channel: Channel) -> AppError:
    """Return why the keeper ended a copy."""
    said = b""
    with contextlib.suppress(TimeoutError, asyncssh.Error, OSError):
        async with asyncio.timeout(FAULT_S):
            while len(said) < MAX_FAULT and (data := await channel.stderr.read(MAX_FAULT)):
                said += data
    try:
        fault = msgspec.json.decode(said, type=CopyFault)
    except msgspec.MsgspecError:
        if said:
            return AppError("keeper", said.decode(errors="replace").strip()[:500], "")
        return AppError("copy-broken", "The copy broke off in the guest.", "Try again.")
    return AppError(fault.code, fault.message, fault.hint)
