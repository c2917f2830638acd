"""Telling every subscriber what happened, without ever waiting for one of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.protocol import Event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from app.protocol import EventKind, SessionInfo


class Events:
    """Fans events out. An event bears the whole state, so of each kind only the newest waits."""

    def __init__(self, info: Callable[[], SessionInfo]) -> None:
        self._info = info
        self._waiting: set[_Mailbox] = set()

    def tell(self, *kinds: EventKind) -> None:
        """Say that something of each kind happened."""
        info = self._info()
        for mailbox in self._waiting:
            for kind in kinds:
                mailbox.put(Event(kind, info))

    async def subscribe(self) -> AsyncIterator[Event]:
        """Yield events from now on, the present state first."""
        mailbox = _Mailbox()
        self._waiting.add(mailbox)
        try:
            yield Event("session", self._info())
            while True:
                yield await mailbox.get()
        finally:
            self._waiting.discard(mailbox)


class _Mailbox:
    def __init__(self) -> None:
        self._events: dict[str, Event] = {}
        self._news = asyncio.Event()

    def put(self, event: Event) -> None:
        self._events.pop(event.kind, None)
        self._events[event.kind] = event
        self._news.set()

    async def get(self) -> Event:
        await self._news.wait()
        event = self._events.pop(next(iter(self._events)))
        if not self._events:
            self._news.clear()
        return event
