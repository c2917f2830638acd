"""Live terminals of this machine's sessions: panes of the hub, each in a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.color import Color

from app.ui.pane_understudy import Understudy
from app.ui.panes import PaneHub
from vm.terminal.palette import RGB, TerminalPalette
from widgets.terminal import DEFAULT_PASSTHROUGH, DEFAULT_PREFIX, TerminalView

if TYPE_CHECKING:
    from textual.widget import Widget

    from app.paths import Paths
    from app.ui.pane_news import NewsEar
    from app.ui.panes import Pane
    from themes.palette import Palette


class LiveTerminals:
    """Opens a pane for a session when it is first looked at and keeps it."""

    def __init__(
        self,
        paths: Paths,
        palette: Palette,
        *,
        prefix: str = DEFAULT_PREFIX,
        direct_keys: bool = True,
    ) -> None:
        self._paths = paths
        self._prefix = prefix
        self._passthrough = DEFAULT_PASSTHROUGH if direct_keys else frozenset[str]()
        self._hub = PaneHub(
            cache=paths.cache, palette=terminal_palette(palette), native=palette.ansi
        )
        self._panes: dict[str, Pane] = {}
        self._ear: NewsEar | None = None

    async def start(self) -> None:
        """Make the first worker ready."""
        await self._hub.start()

    def view(self, session_id: str) -> Widget:
        """Return a new view of the session's terminal."""
        pane = self._panes.get(session_id)
        if pane is None:
            socket = self._paths.sockets(session_id) / "pane.sock"
            pane = self._panes[session_id] = self._hub.open(session_id, socket)
            pane.understudy = Understudy(session_id, lambda: self._ear)
        return TerminalView(pane, prefix=self._prefix, passthrough=self._passthrough)

    def forget(self, session_id: str) -> None:
        """End this client of the session's terminal."""
        pane = self._panes.pop(session_id, None)
        if pane is not None:
            pane.close()

    def recolour(self, palette: Palette) -> None:
        """Draw terminals in the colours of another theme."""
        self._hub.set_palette(terminal_palette(palette), native=palette.ansi)

    def report_to(self, ear: NewsEar) -> None:
        """Tell `ear` what terminals report that no view shows."""
        self._ear = ear

    async def close(self) -> None:
        """End all panes and workers."""
        self._panes.clear()
        await self._hub.close()


def terminal_palette(palette: Palette) -> TerminalPalette:
    """Return the colours that agents' screens are drawn in under a theme.

    A theme of the terminal's own colours names none; the engine's usual ones stand in where a guest
    asks for a value.
    """
    if palette.ansi:
        return TerminalPalette()
    foreground, background = _rgb(palette.base["foreground"]), _rgb(palette.base["background"])
    ansi = tuple(_rgb(color) for color in palette.terminal)
    return TerminalPalette(foreground, background, _rgb(palette.base["accent"]), ansi)


def _rgb(color: str) -> RGB:
    return Color.parse(color).rgb
