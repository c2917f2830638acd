"""Slow work in threads and loops in tasks, and how both come to a certain end.

A thread cannot be cancelled. If its waiter went on, a snapshot or a write could still be under way
while the next one begins; so a cancelled waiter stays until the thread is done.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)

T = TypeVar("T")

AGAIN_S: Final = 2.0
"""Seconds after which a task that did not end is cancelled once more."""


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread and return what it returns."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # looked at, so that nobody reports it as forgotten
        raise


async def end_tasks(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks until every one has ended.

    Once is not enough: a cancellation that arrives in the same moment as the result that a task
    waits for can be swallowed by a library on the way (Python 3.11's own `wait_for` does it).
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)


def looked_at(ended: asyncio.Task[None]) -> None:
    """Take a task's error, so that nobody reports it as forgotten when no client waits for it."""
    if not ended.cancelled() and (error := ended.exception()) is not None:
        log.warning("nobody waited for what failed: %s", error)
