"""The terminals of the screen: pane workers, their sandboxes, and the feeds that the views show.

    hub = PaneHub(cache=paths.cache)
    await hub.start()                       # a worker is made ready; raises if no sandbox works
    pane = hub.open(session_id, paths.sockets(session_id) / "pane.sock", columns=80, rows=24)
    TerminalView(pane)                      # a Pane is a widgets.terminal_feed.PaneFeed
    pane.close(); await hub.close()

`open` returns at once; the pane connects, retries and replays by itself and says so through its
state. Each pane has a worker of its own unless `share` says otherwise, so a guest that takes over
or ends its engine reaches no other guest's terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vm.terminal.palette import TerminalPalette


class Pane:
    """One terminal of one session; implements `widgets.terminal_feed.PaneFeed`, and this besides."""

    name: str
    """The name given to `PaneHub.open`."""

    def set_active(self, active: bool) -> None:
        """Say whether this pane's size is the guest's size (an active client sends resizes)."""
        raise NotImplementedError

    async def text(self, *, scrollback: bool = False) -> str:
        """Return the visible page (or all rows) as plain text; TimeoutError after 2 s."""
        raise NotImplementedError

    def close(self) -> None:
        """End this client of the terminal; the session goes on."""
        raise NotImplementedError


class PaneHub:
    """All panes of one app. Lives on the app's event loop; uses no threads."""

    def __init__(
        self,
        *,
        cache: Path | None = None,
        palette: TerminalPalette | None = None,
        share: int = 1,
        launcher: Sequence[str] | None = None,
    ) -> None:
        """Take settings, start nothing.

        `cache`: where the generated binding is kept. `palette`: colours that guests are told.
        `share`: panes a worker. `launcher`: the command that the worker's arguments follow.
        """
        raise NotImplementedError

    async def start(self) -> None:
        """Make the first worker ready.

        Raises vm.errors.HostLacks when the engine or its sandbox does not work on this host.
        """
        raise NotImplementedError

    def open(
        self, name: str, socket: Path, *, columns: int = 80, rows: int = 24, active: bool = True
    ) -> Pane:
        """Show the terminal behind `socket`; an inactive pane never resizes the guest."""
        raise NotImplementedError

    def set_palette(self, palette: TerminalPalette) -> None:
        """Use other colours from now on (the theme changed)."""
        raise NotImplementedError

    async def close(self) -> None:
        """End all panes and workers."""
        raise NotImplementedError
