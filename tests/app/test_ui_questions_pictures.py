"""How held connections look over the screens: pictures, compared as text, looked at by people."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest

from app.protocol import EgressInfo
from tests.app.test_ui_caps import at_cap, reached
from tests.doubles.egress import typical
from tests.doubles.pilots import press, press_later, settle
from tests.doubles.scenes import sessions, workstation
from tests.doubles.still import SIZES, Compare, hold_still
from vm.egress.questions import Question

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot

    from app.ui.app import ClocheApp

WHAT = {
    "unasked": (),
    "answering": ("e",),
    "rule": ("e", "+a"),
    "all-answers": ("e", "+enter"),
    "review": ("r",),
    "log": ("E", "ctrl+g", "e"),
    "help": ("question_mark",),
}


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    hold_still(monkeypatch)


def asked(*, theme: str = "cloche-dark", ascii_only: bool = False, host: str = "") -> ClocheApp:
    """Return the workstation with questions of two sessions."""
    made = sessions()
    first = time.time() - 7
    pkgs = Question(
        *(host or "pkgs.dev.example", (443,), first, first + 60, 2),
        reason="No rule is about pkgs.dev.example (profile standard).",
    )
    for session, asks in ((made[1], (pkgs,)), (made[0], (replace(pkgs, first_seen=first + 3),))):
        session.info_value = msgspec.structs.replace(
            session.info_value, asks=asks, egress=EgressInfo("on", 14, 3)
        )
    app, _, _ = workstation(made, theme=theme, ascii_only=ascii_only)
    app.egress = typical()
    return app


def keys(*names: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Return what presses keys; those with a plus a moment later."""

    async def before(pilot: Pilot[None]) -> None:
        await settle(pilot)
        for name in names:
            if name.startswith("+"):
                await press_later(pilot, name[1:])
            else:
                await press(pilot, name)

    return before


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("size", SIZES)
def test_held_connections(snap_compare: Compare, size: str, what: str) -> None:
    assert snap_compare(asked(), terminal_size=SIZES[size], run_before=keys(*WHAT[what]))


@pytest.mark.parametrize("what", ["unasked", "answering", "rule"])
@pytest.mark.parametrize("size", SIZES)
def test_a_cap_that_is_reached(snap_compare: Compare, size: str, what: str) -> None:
    app, _ = reached(at_cap())
    pressed = {"unasked": (), "answering": ("e",), "rule": ("e", "+n")}[what]
    assert snap_compare(app, terminal_size=SIZES[size], run_before=keys(*pressed))


@pytest.mark.parametrize("look", ["ascii", "plain", "cloche-ansi", "cloche-light"])
def test_held_connections_without_colours_or_signs(
    snap_compare: Compare, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if look == "plain":
        monkeypatch.setenv("NO_COLOR", "1")
    theme = look if look.startswith("cloche") else "cloche-dark"
    app = asked(theme=theme, ascii_only=look == "ascii")
    assert snap_compare(app, terminal_size=SIZES["120x40"], run_before=keys("e"))


def test_a_host_that_is_longer_than_the_screen(snap_compare: Compare) -> None:
    app = asked(host=f"{'a' * 60}.{'b' * 40}.evil.example")
    assert snap_compare(app, terminal_size=SIZES["80x24"], run_before=keys("e", "+a"))
