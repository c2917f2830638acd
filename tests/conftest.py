"""What every test gets: a home of its own, a fixed locale, no colour switches, SVG snapshots.

Thousands of tests make what costs each of them a little cost much, so some of it is done once.
"""

# Textual remembers rules for each app alone.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, settings
from pytest_textual_snapshot import SVGImageExtension
from textual.css.stylesheet import Stylesheet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from textual.cache import LRUCache
    from textual.css.model import RuleSet

# The plugin's own extension saves `.raw` with a newer syrupy, and then nobody can look at it.
SVGImageExtension.file_extension = "svg"

# On a busy machine a slow example is no failure, a wrong one is.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

UNWANTED = ("NO_COLOR", "COLORTERM", "CLOCHE_ASCII", "CLOCHE_THEME", "TEXTUAL", "COLUMNS", "LINES")


def _parse_once() -> None:
    """Let all apps share the rules that were read from one style sheet with the same variables.

    An app reads some thirty sheets, and every app the same ones; nothing changes rules once read.
    """
    parse = Stylesheet._parse_rules
    known: dict[tuple[object, ...], list[RuleSet]] = {}

    def parse_rules(
        sheet: Stylesheet,
        css: str,
        read_from: tuple[str, str],
        is_default_rules: bool = False,
        tie_breaker: int = 0,
        scope: str = "",
    ) -> list[RuleSet]:
        asked = (css, read_from, is_default_rules, tie_breaker, scope)
        own = cast("LRUCache[object, list[RuleSet]]", sheet._parse_cache)  # pyright: ignore[reportUnknownMemberType]  # bare there
        if asked not in own:
            key = (asked, *sorted(sheet._variables.items()))
            if key not in known:
                known[key] = parse(sheet, *asked)
            own[asked] = known[key]
        return own[asked]

    Stylesheet._parse_rules = parse_rules  # type: ignore[assignment,method-assign]  # the same, remembered


_parse_once()


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return names for homes; `mktemp` would go through all earlier ones for each next one."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_home(_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the user's files, and the user's settings away from tests."""
    home = next(_homes)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in UNWANTED:
        monkeypatch.delenv(name, raising=False)
