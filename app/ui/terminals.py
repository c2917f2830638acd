"""Where the fleet screen gets its live terminals from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from textual.widget import Widget

    from app.ui.pane_news import NewsEar
    from themes.palette import Palette


class Terminals(Protocol):
    """Live terminals by session; `app.ui.live_terminals` makes them with the pane workers."""

    async def start(self) -> None:
        """Get ready; raises an error with a hint when this host cannot show terminals."""
        ...

    def view(self, session_id: str) -> Widget:
        """Return a new widget that shows the session's terminal and takes its keys."""
        ...

    def forget(self, session_id: str) -> None:
        """End this program's link to a terminal that nobody looks at any more."""
        ...

    def recolour(self, palette: Palette) -> None:
        """Draw terminals in the colours of another theme."""
        ...

    def report_to(self, ear: NewsEar) -> None:
        """Tell `ear` what terminals report that no view shows."""
        ...

    async def close(self) -> None:
        """End all links; the sessions go on."""
        ...
