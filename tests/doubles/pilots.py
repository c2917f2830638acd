"""Waiting for an application under test: for its workers and messages, never for time."""

# Textual does not tell otherwise whether it is through with its work.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from textual import events
from textual.worker import WorkerCancelled

from app.ui.app import ClocheApp
from app.ui.fleet_screen import FleetScreen

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App
    from textual.pilot import Pilot
    from textual.worker import Worker

BOUNDED = (
    "answer",
    "connect",
    "load",
    "look",
    "folders",
    "start",
    "tasks",
    "merge",
    "decide",
    "colours",
    "terminals",
    "wake",
)
"""Groups of workers that end by themselves."""

PATIENCE_S = 60
"""Seconds after which something that did not become so never will, also on a busy machine."""

CALM_ROUNDS = 3
"""Rounds in which nothing happened after which nothing will: a message may set off another one."""


def running(pilot: Pilot[None]) -> list[Worker[object]]:
    """Return the workers that will end by themselves and have not yet."""
    app: App[None] = pilot.app
    return [worker for worker in app.workers if worker.group in BOUNDED and not worker.is_finished]


async def settle(pilot: Pilot[None]) -> None:
    """Wait until no bounded worker runs and every message was handled, workers' own included.

    Textual's own `pause` takes a process that gets no CPU for an idle one, so pictures made on a
    busy machine would show what is half done.
    """
    calm = 0
    while calm < CALM_ROUNDS and pilot.app.is_running:
        await pilot._wait_for_screen()
        app: App[None] = pilot.app
        if isinstance(app, ClocheApp):
            await app.turns.settled()
        workers = running(pilot)
        for worker in workers:
            with suppress(WorkerCancelled):
                await worker.wait()
        calm = 0 if workers or unfinished(app) else calm + 1


def unfinished(app: App[None]) -> bool:
    """Draw what is due; tell whether anything still waits to be handled, laid out or drawn."""
    if not app.is_running or not app.screen_stack:
        return False
    busy = is_busy(app)
    app.screen._on_timer_update()
    return busy


def is_busy(app: App[None]) -> bool:
    """Tell whether anything still waits to be handled, laid out or drawn."""
    screen = app.screen
    pumps = [app, *screen.walk_children(with_self=True)]
    due = any(pump.is_running and pump.message_queue_size for pump in pumps)
    due = due or bool(screen._callbacks or screen._dirty_widgets)
    return due or screen._layout_required or screen._repaint_required or screen._scroll_required


async def until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    """Wait until something is so; fails when it does not become so."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        await settle(pilot)
        await asyncio.sleep(0.002)  # what is waited for comes from a timer or another process
    assert condition()


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys one after the other and wait for what each does."""
    for key in keys:
        await pilot.press(key)
        if running(pilot):
            await settle(pilot)
    await settle(pilot)


async def press_at(pilot: Pilot[None], key: str, moment: float) -> None:
    """Press a key as if it were `moment` now (seconds of the monotonic clock)."""
    event = events.Key(key, key if len(key) == 1 else None)
    event.time = moment
    pilot.app.post_message(event)
    await settle(pilot)


async def press_later(pilot: Pilot[None], key: str) -> None:
    """Press a key as if a second had passed, for what does not count at once."""
    await press_at(pilot, key, time.monotonic() + 1.0)


async def press_early(pilot: Pilot[None], key: str) -> None:
    """Press a key as if what it meets had just appeared, however long that was ago."""
    await press_at(pilot, key, time.monotonic() - PATIENCE_S)


def fleet_of(app: ClocheApp) -> FleetScreen:
    """Return the first screen, whatever lies over it."""
    screen = app.screen_stack[0]
    assert isinstance(screen, FleetScreen)
    return screen


def screen_text(pilot: Pilot[None]) -> str:
    """Return everything that the screen shows, line by line."""
    compositor = pilot.app.screen._compositor
    strips = compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)
