"""What a pane has to tell the screen besides frames: states, titles, bells and the like."""

from __future__ import annotations

from vm.terminal import wire
from vm.terminal.screen import Happenings
from vm.terminal.wire import PaneState, Up

INTERVAL = 0.1
"""Seconds between reports of titles, bells and the like; what comes meanwhile is merged."""

NEVER = float("inf")


class News:
    """Collects what happens to one pane and tells it at a bounded rate; states at once."""

    def __init__(self, pane: int) -> None:
        self._pane = pane
        self._happened = Happenings()
        self._waiting: list[bytes] = []
        self._last = 0.0

    def add(self, kind: Up, payload: bytes = b"") -> None:
        """Tell a message at the next turn."""
        self._waiting.append(wire.message(kind, self._pane, payload))

    def state(self, state: PaneState, status: int, why: str = "") -> None:
        """Tell a state."""
        self.add(Up.STATE, wire.STATE.pack(state, status) + wire.pack_texts(why))

    def bell(self) -> None:
        """Tell that something deserves a bell."""
        self._happened.bell = True

    def note(self, news: Happenings, *, replaying: bool) -> None:
        """Merge what happened; of a replay only what still holds counts."""
        kept = self._happened
        kept.title = news.title if news.title is not None else kept.title
        kept.folder = news.folder if news.folder is not None else kept.folder
        if replaying:
            return
        kept.bell |= news.bell
        kept.clipboard = news.clipboard if news.clipboard is not None else kept.clipboard
        kept.notification = news.notification or kept.notification
        kept.progress = news.progress or kept.progress

    def due(self, now: float) -> float:
        """Return when there is something to tell."""
        if self._waiting:
            return now
        return self._last + INTERVAL if self._happened else NEVER

    def take(self, now: float) -> list[bytes]:
        """Return the messages that are due."""
        found, self._waiting = self._waiting, []
        if self._happened and now >= self._last + INTERVAL:
            self._last = now
            it, self._happened = self._happened, Happenings()
            found += self._report(it)
        return found

    def _report(self, it: Happenings) -> list[bytes]:
        """Return messages for what happened, one of each kind."""
        texts = [(Up.TITLE, it.title), (Up.FOLDER, it.folder), (Up.CLIPBOARD, it.clipboard)]
        told = [(kind, wire.pack_texts(text)) for kind, text in texts if text is not None]
        if it.bell:
            told.append((Up.BELL, b""))
        if it.notification is not None:
            told.append((Up.NOTIFY, wire.pack_texts(*it.notification)))
        if it.progress is not None:
            state, value = it.progress
            told.append((Up.PROGRESS, wire.PROGRESS.pack(state & 0x7F, max(-1, min(value, 100)))))
        return [wire.message(kind, self._pane, payload) for kind, payload in told]
