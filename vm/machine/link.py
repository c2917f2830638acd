"""The preamble of both serial ports: it throws away what an earlier connection left in the pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from pathlib import Path


async def open_link(path: Path, token: str, deadline_s: float) -> socket.socket:
    """Connect to a port and return a non-blocking socket whose next byte is the link's first.

    Raises LinkLost when there is no answer in `deadline_s` seconds.
    """
    raise NotImplementedError
