"""Helper processes of the keeper: none is left, and nobody's cancellation is lost over one."""

from __future__ import annotations

import asyncio
import signal

import pytest

from app.keeper import children
from app.keeper.children import PAUSE_S, STEADY_S, end_child, next_pause, start_child

LONG = ("/bin/sleep", "1000")


async def test_a_cancellation_ends_the_helper_and_goes_on() -> None:
    process = await start_child(LONG, ())
    waiting = asyncio.create_task(end_child(process))
    await asyncio.sleep(0)  # it waits now
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert process.returncode == -signal.SIGKILL


async def test_one_that_stays_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "END_S", 0.01)
    process = await start_child(LONG, ())
    await end_child(process)
    assert process.returncode == -signal.SIGKILL


def test_one_that_does_not_stay_is_waited_for_longer_each_time() -> None:
    pauses = [PAUSE_S]
    for _ in range(8):
        pauses.append(next_pause(pauses[-1], 0.0, 5.0))
    assert pauses == sorted(pauses)
    assert pauses[1] > PAUSE_S
    assert pauses[-1] == 5.0
    assert next_pause(5.0, STEADY_S + 1, 5.0) == PAUSE_S
