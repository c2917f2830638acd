"""What every test gets: a home of its own, a fixed locale, no colour switches, SVG snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from pytest_textual_snapshot import SVGImageExtension

if TYPE_CHECKING:
    from pathlib import Path

# The plugin's own extension saves `.raw` with a newer syrupy, and then nobody can look at it.
SVGImageExtension.file_extension = "svg"

# On a busy machine a slow example is no failure, a wrong one is.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

UNWANTED = ("NO_COLOR", "COLORTERM", "CLOCHE_ASCII", "CLOCHE_THEME", "TEXTUAL", "COLUMNS", "LINES")


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the user's files, and the user's settings away from tests."""
    home: Path = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in UNWANTED:
        monkeypatch.delenv(name, raising=False)
