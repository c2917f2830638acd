"""Live terminals of this machine's sessions: panes of the hub, each in a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.panes import PaneHub
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from textual.widget import Widget

    from app.paths import Paths
    from app.ui.panes import Pane


class LiveTerminals:
    """Opens a pane for a session when it is first looked at and keeps it."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._hub = PaneHub(cache=paths.cache)
        self._panes: dict[str, Pane] = {}

    async def start(self) -> None:
        """Make the first worker ready."""
        await self._hub.start()

    def view(self, session_id: str) -> Widget:
        """Return a new view of the session's terminal."""
        pane = self._panes.get(session_id)
        if pane is None:
            socket = self._paths.sockets(session_id) / "pane.sock"
            pane = self._panes[session_id] = self._hub.open(session_id, socket)
        return TerminalView(pane)

    def forget(self, session_id: str) -> None:
        """End this client of the session's terminal."""
        pane = self._panes.pop(session_id, None)
        if pane is not None:
            pane.close()

    async def close(self) -> None:
        """End all panes and workers."""
        self._panes.clear()
        await self._hub.close()
