"""How the egress log looks: pictures, compared as text and looked at by people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.app.test_ui_egress import opened
from tests.doubles.egress import typical
from tests.doubles.pilots import press
from tests.doubles.scenes import workstation
from tests.doubles.still import SIZES, Compare, hold_still

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot

KEYS = {"rows": (), "hosts": ("b", "j"), "details": ("j", "j", "j", "enter"), "rule": ("a",)}


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_still(monkeypatch)


def keys(*names: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Return what opens the log and presses keys."""

    async def before(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await press(pilot, *names)

    return before


@pytest.mark.parametrize("what", KEYS)
@pytest.mark.parametrize("size", SIZES)
def test_the_log(snap_compare: Compare, size: str, what: str) -> None:
    app, _, _ = workstation()
    app.egress = typical()
    assert snap_compare(app, terminal_size=SIZES[size], run_before=keys(*KEYS[what]))


@pytest.mark.parametrize("look", ["ascii", "plain", "cloche-ansi", "cloche-light"])
def test_the_log_without_colours_or_signs(
    snap_compare: Compare, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if look == "plain":
        monkeypatch.setenv("NO_COLOR", "1")
    theme = look if look.startswith("cloche") else "cloche-dark"
    app, _, _ = workstation(theme=theme, ascii_only=look == "ascii")
    app.egress = typical()
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=keys(*KEYS["details"]))
