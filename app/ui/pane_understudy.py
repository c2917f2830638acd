"""Hears a terminal while no view shows it: what it reports is passed on, what it draws is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from app.ui.pane_news import NewsEar
    from widgets.terminal_feed import FeedState


class Understudy:
    """Implements `widgets.terminal_feed.FeedListener` for one session."""

    def __init__(self, session_id: str, ear: Callable[[], NewsEar | None]) -> None:
        """Take whose terminal it is, and who is told (None: nobody yet)."""
        self._session_id = session_id
        self._ear = ear

    def feed_changed(self, rows: Collection[int]) -> None:
        """Draw nothing."""

    def feed_resized(self) -> None:
        """Draw nothing."""

    def feed_state(self, state: FeedState, status: int | None, message: str) -> None:
        """Say nothing: the session's own state tells it."""

    def feed_mirrored(self, mirrored: bool) -> None:
        """Say nothing: nobody types here."""

    def feed_refused(self, message: str) -> None:
        """Say nothing: nobody types here."""

    def feed_title(self, title: str) -> None:
        """Pass a title on."""
        if (ear := self._ear()) is not None:
            ear.titled(self._session_id, title)

    def feed_progress(self, progress: tuple[int, int] | None) -> None:
        """Pass a progress on."""
        if (ear := self._ear()) is not None:
            ear.progressed(self._session_id, progress)

    def feed_bell(self) -> None:
        """Pass a bell on."""
        if (ear := self._ear()) is not None:
            ear.belled(self._session_id)

    def feed_notified(self, title: str, body: str) -> None:
        """Pass a notification on."""
        if (ear := self._ear()) is not None:
            ear.notified(self._session_id, title, body)

    def feed_clipboard(self, text: str) -> None:
        """Pass a wish on; a session that nobody looks at is not asked for."""
        if (ear := self._ear()) is not None:
            ear.clipboard_wanted(self._session_id, text)
