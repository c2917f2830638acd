"""Waiting for an application under test: for its workers and messages, never for time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from textual.worker import WorkerCancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App
    from textual.pilot import Pilot
    from textual.worker import Worker

BOUNDED = ("connect", "load", "start", "tasks", "merge", "decide", "colours", "terminals")
"""Groups of workers that end by themselves."""

ROUNDS = 200


def running(pilot: Pilot[None]) -> list[Worker[object]]:
    """Return the workers that will end by themselves and have not yet."""
    app: App[None] = pilot.app
    return [worker for worker in app.workers if worker.group in BOUNDED and not worker.is_finished]


async def settle(pilot: Pilot[None]) -> None:
    """Wait until no bounded worker runs and every message was handled, workers' own included."""
    await pilot.pause()
    while workers := running(pilot):
        with suppress(WorkerCancelled):
            await asyncio.gather(*(worker.wait() for worker in workers))
        await pilot.pause()
    await pilot.pause()


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until something is so; fails when it does not become so."""
    for _ in range(ROUNDS):
        if condition():
            return
        await settle(pilot)
    assert condition()


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one after the other and wait for what each does."""
    for key in keys:
        await pilot.press(key)
        if running(pilot):
            await settle(pilot)
    await settle(pilot)


def screen_text(pilot: Pilot[None]) -> str:
    """Return everything that the screen shows, line by line."""
    compositor = pilot.app.screen._compositor  # pyright: ignore[reportPrivateUsage]
    strips = compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)
