"""One key after the other: the next one goes where the last one led.

Textual gives a key to the widget that has the focus now, also when an earlier key that moves the
focus still waits in a queue. Keys typed in one breath would then go to the wrong place: Cloche's
into an agent's screen, an agent's into Cloche. So a key that may mean something to Cloche has the
word until everything that it set off was handled; what comes meanwhile is held back, in order.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

from textual import events

from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.app import App
    from textual.dom import DOMNode
    from textual.message_pump import MessagePump

    Typed = events.Key | events.Paste

MAX_HELD = 4096
"""Keys that may wait; what is typed beyond them is dropped."""

TURN_SECONDS = 0.5
"""A key has the word this long at most; it never waits for a keeper or a machine anyway."""

CALM_ROUNDS = 2
"""Rounds without anything new after which a key is done: a message may set off another one."""


LOOK_AGAIN = 0.02
"""Seconds after which is looked whether somebody who does not answer has ended."""


class Turns:
    """Lets typed keys through one by one. `deliver` gives one to the application."""

    def __init__(
        self,
        app: App[None],
        deliver: Callable[[Typed], Awaitable[None]],
        failed: Callable[[Exception], None],
    ) -> None:
        self._app = app
        self._deliver = deliver
        self._failed = failed
        self._held: deque[Typed] = deque()
        self._turn: asyncio.Task[None] | None = None

    async def take(self, event: Typed) -> None:
        """Deliver what was typed, now or when its turn comes."""
        if self._turn is not None:
            if len(self._held) < MAX_HELD:
                self._held.append(event)
            return
        await self._one(event)

    async def _one(self, event: Typed) -> None:
        plain, before = self._is_plain(event), path_of(self._app)
        await self._deliver(event)
        if not plain and self._turn is None:
            self._turn = asyncio.create_task(self._finish(before), name="turn of a key")

    def _is_plain(self, event: Typed) -> bool:
        """Tell whether an agent gets it and nothing else can come of it."""
        focused = self._app.focused
        if not isinstance(focused, TerminalView):
            return False
        return isinstance(event, events.Paste) or focused.is_guests(event.key)

    async def _finish(self, before: list[MessagePump]) -> None:
        """Wait for a key's end, then let those through that came meanwhile."""
        try:
            await calm(self._app, before)
            while self._held:
                event = self._held.popleft()
                plain, before = self._is_plain(event), path_of(self._app)
                await self._deliver(event)
                if not plain:
                    await calm(self._app, before)
        except Exception as error:  # a bug in what a key does, which the screen tells about
            self._held.clear()
            self._failed(error)
        finally:
            self._turn = None  # nothing is awaited since the last look at what is held

    async def settled(self) -> None:
        """Wait until everything that was typed had its turn."""
        while self._turn is not None:
            await asyncio.wait([self._turn])

    async def close(self) -> None:
        """Drop what waits."""
        self._held.clear()
        if self._turn is not None:
            self._turn.cancel()
            await asyncio.gather(self._turn, return_exceptions=True)


def path_of(app: App[None]) -> list[MessagePump]:
    """Return whom a key passes now: from the widget with the focus up to the application."""
    begin = cast("DOMNode", app.focused or app.screen)  # pyright: ignore[reportUnknownMemberType]
    return [*begin.ancestors_with_self]


async def calm(app: App[None], before: list[MessagePump]) -> None:
    """Wait until those on a key's way, and on the next key's, have nothing left to handle."""
    try:
        async with asyncio.timeout(TURN_SECONDS):
            quiet = 0
            while quiet < CALM_ROUNDS:
                way = list(dict.fromkeys([*before, *path_of(app)]))
                for pump in way:
                    await passed(pump)
                busy = any(pump.is_running and pump.message_queue_size for pump in way)
                quiet = 0 if busy else quiet + 1
    except TimeoutError:
        return  # something handles a message for long; keys must not wait for it


class Reached:
    """Is called when a message had its turn.

    A message with it costs a third of what `call_later` does, and no task is made for the wait:
    every key sends a score of them.
    """

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(self) -> None:
        """Say so, once."""
        if not self.future.done():
            self.future.set_result(None)


async def passed(pump: MessagePump) -> None:
    """Wait until somebody has handled everything that was sent to it up to now."""
    reached = Reached()
    if not pump.post_message(events.Callback(reached.tell)):
        return
    while pump.is_running and not reached.future.done():  # one that ends never says so
        await asyncio.wait((reached.future,), timeout=LOOK_AGAIN)
