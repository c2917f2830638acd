"""The keeper's helper processes: begun with nothing but descriptors, and seen to their end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

PAUSE_S: Final = 0.2
"""Before a helper that died is started again; doubled while it does not stay for a while."""
STEADY_S: Final = 10.0
"""A helper that ran this long was well."""
END_S: Final = 5.0
"""How long one that was let go may take to end."""


async def start_child(
    argv: Sequence[str], descriptors: Sequence[int]
) -> asyncio.subprocess.Process:
    """Start a helper; it hears the numbers of its descriptors first. Raises OSError.

    It has no environment and no folder of ours: what it may know goes over a descriptor.
    """
    return await asyncio.create_subprocess_exec(
        *argv,
        *map(str, descriptors),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=descriptors,
        cwd="/",
        env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
    )


async def end_child(process: asyncio.subprocess.Process) -> None:
    """Wait for a helper that was let go; end it where it stays, or where nobody may wait."""
    try:
        async with asyncio.timeout(END_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise


def next_pause(pause: float, ran_s: float, most: float) -> float:
    """Return how long to wait before a helper that ran for `ran_s` is started again."""
    return PAUSE_S if ran_s > STEADY_S else min(pause * 2, most)
