"""What all pictures of the screens have in common: their sizes, and a clock that stands still."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pytest
    from textual.app import App

SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
NOW = 1_800_000_000.0


class Compare(Protocol):
    """What the plugin's fixture is called with."""

    def __call__(
        self, app: App[None], *, terminal_size: tuple[int, int], run_before: object
    ) -> bool: ...


def clock(_format: str, _at: object = None) -> str:
    """Return the time of day at which all pictures are made."""
    return "14:02"


def hold_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the clock and everything that moves."""
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setattr(time, "strftime", clock)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr("textual.constants.TEXTUAL_ANIMATIONS", "none")
