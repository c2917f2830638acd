"""What tests of the application get besides: notices that stay however slow the machine is."""

from __future__ import annotations

import sys

import pytest

NEVER_S = 3600.0
"""Longer than any test takes."""


@pytest.fixture(autouse=True)
def _notices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a screen said until it is read; only those who have Textual by now have screens."""
    speaking = sys.modules.get("app.ui.speaking")
    if speaking is not None:
        monkeypatch.setattr(speaking, "NOTICE_SECONDS", NEVER_S)
