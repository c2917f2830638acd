"""The page of a real engine: what is marked on it, and a search that is through."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.doubles.engines import engine

if TYPE_CHECKING:
    from vm.terminal.ghostty_engine import GhosttyEngine
    from vm.terminal.screen import Mark, ViewState


def marks(terminal: GhosttyEngine) -> dict[int, list[Mark]]:
    """What is marked in each row; a mark equals the tuple of its fields."""
    return {y: list(row) for y, row in terminal.frame().marks.items()}


def found(terminal: GhosttyEngine, needle: str, *, backwards: bool = False) -> ViewState:
    """Search, and return how that ended."""
    terminal.search(needle, backwards=backwards)
    while terminal.work(1):
        pass
    return terminal.view


def filled(rows: int = 100) -> GhosttyEngine:
    """A terminal of 40x10 with numbered rows in its scrollback and a prompt at the end."""
    terminal = engine(40, 10)
    terminal.feed(b"".join(b"\x1b[3%dmrow %d\x1b[m of it\r\n" % (i % 8, i) for i in range(rows)))
    terminal.feed(b"$ prompt")
    return terminal
