"""When the output of a program is over, though a child that it left behind may hold it open.

A program's end and the end of its output are two things. What it printed last may still be on its
way when its status is known; a child in the background may hold the streams for ever. So the output
of an ended program is over when its streams end, when nothing comes for SILENCE_S, or when a child
has gone on talking for LINGER_S. Time in which the reader takes nothing does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import asyncssh

if TYPE_CHECKING:
    from collections.abc import Generator

POLL_S: Final = 0.1
"""How often an exit status is looked for while output is still open."""

SILENCE_S: Final = 0.7
"""How long an ended program's streams may be silent; a busy guest pauses for less."""

LINGER_S: Final = 5.0
"""How long output may follow the end of a program at all."""

Process = asyncssh.SSHClientProcess[bytes]


@dataclass(slots=True)
class Flow:
    """What moves in a program's streams."""

    moved: float = field(default_factory=time.monotonic)
    """When bytes last came or were handed on."""
    blocked: int = 0
    """Streams whose bytes wait for the reader right now."""

    @contextlib.contextmanager
    def handing_on(self) -> Generator[None]:
        """Mark the time in which bytes are given to a reader that may be slow."""
        self.blocked += 1
        try:
            yield
        finally:
            self.blocked -= 1
            self.moved = time.monotonic()


def ended(process: Process) -> bool:
    """Tell whether a program's end is known."""
    return process.exit_status is not None or process.exit_signal is not None


async def output_over(process: Process, streams: asyncio.Future[list[None]], flow: Flow) -> bool:
    """Wait until the program's output is over; False when a child still holds it open."""
    while not ended(process) and not streams.done():
        await asyncio.wait((streams,), timeout=POLL_S)
    flow.moved = time.monotonic()
    open_s = 0.0
    while not (await asyncio.wait((streams,), timeout=POLL_S))[0]:
        if not flow.blocked:
            open_s += POLL_S
            if open_s > LINGER_S or time.monotonic() - flow.moved > SILENCE_S:
                return False
    return True
