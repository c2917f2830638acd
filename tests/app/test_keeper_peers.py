"""Accepting connections: none is left open, whenever the listener closes."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from app.keeper import peers
from app.keeper.peers import PeerListener

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    import pytest


async def test_a_connection_that_nobody_serves_any_more_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[socket.socket] = []
    closing: list[asyncio.Task[None]] = []

    async def serve(connection: socket.socket) -> None:
        served.append(connection)

    def close_now(_connection: socket.socket) -> int:
        closing.append(asyncio.create_task(listener.close()))
        return os.getuid()

    monkeypatch.setattr(peers, "peer_uid", close_now)
    listener = PeerListener(tmp_path / "s", serve)
    listener.start()
    reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
    assert await asyncio.wait_for(reader.read(), 30) == b""
    assert len(closing) == 1
    await closing[0]
    assert not served
    assert listener.peers == 0
    writer.close()
