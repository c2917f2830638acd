"""Slow work in a thread, finished even when whoever waits for it is cancelled.

A thread cannot be cancelled. If its waiter went on, a snapshot or a write could still be under way
while the next one begins; so a cancelled waiter stays until the thread is done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


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
