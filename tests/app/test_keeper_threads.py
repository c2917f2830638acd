from __future__ import annotations

import asyncio
import threading

import pytest

from app.keeper import threads
from app.keeper.threads import end_tasks, in_thread


async def test_work_in_a_thread_gives_its_result_or_its_error() -> None:
    assert await in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


async def test_a_cancelled_waiter_stays_until_the_thread_is_done() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait(5)
        done.set()

    waiter = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(begun.wait, 5)
    waiter.cancel()
    done_now, _ = await asyncio.wait({waiter}, timeout=0.05)
    assert not done_now
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert done.is_set()


async def test_a_task_that_swallows_a_cancellation_is_ended_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "AGAIN_S", 0.01)
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed > 2:
                    raise

    async def over() -> None:
        raise ValueError

    tasks = [asyncio.create_task(stubborn()), asyncio.create_task(over())]
    await asyncio.sleep(0)
    await end_tasks(tasks)
    assert all(task.done() for task in tasks)
    assert swallowed == 3
    await end_tasks([])
