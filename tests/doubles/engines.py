"""The real engine for tests, loaded once a process."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from vm.terminal.ghostty import Ghostty
from vm.terminal.ghostty_engine import GhosttyEngine

if TYPE_CHECKING:
    from vm.terminal.palette import TerminalPalette


@functools.cache
def cache_folder() -> Path:
    """A private folder for the generated binding, shared by the tests of one user."""
    folder = Path(tempfile.gettempdir()) / f"cloche-test-abi-{Path('/proc/self').stat().st_uid}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@functools.cache
def ghostty() -> Ghostty:
    return Ghostty(cache_folder())


def engine(
    columns: int = 80, rows: int = 24, palette: TerminalPalette | None = None
) -> GhosttyEngine:
    return GhosttyEngine(ghostty(), columns, rows, palette)


def answer(terminal: GhosttyEngine, query: bytes) -> bytes:
    """What the terminal answers to a query."""
    terminal.take_replies()
    terminal.feed(query)
    return terminal.take_replies()


def lines(terminal: GhosttyEngine) -> list[str]:
    """The visible page, without blanks at the ends of lines."""
    frame = terminal.frame(full=True)
    return [frame.rows[y].text.rstrip() for y in range(frame.height)]
