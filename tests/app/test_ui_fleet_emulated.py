"""That guests are emulated is said once, when it comes up, and over nothing that is more urgent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.fleet_screen import FleetScreen
from tests.doubles.keeper import FakeSession, session_info
from tests.doubles.pilots import settle, until
from tests.doubles.scenes import workstation

if TYPE_CHECKING:
    from app.ui.app import ClocheApp

SIZE = (160, 36)
WHY = "Guests are emulated and therefore slow, because this host has no /dev/kvm."


def _fleet(app: ClocheApp) -> FleetScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, FleetScreen)
    return screen


def _text(app: ClocheApp) -> str:
    notice = _fleet(app).notice
    return notice.text if notice else ""


async def test_the_first_emulated_session_says_why_and_the_second_does_not() -> None:
    app, fleet, _ = workstation([FakeSession(session_info("s1", "one", "shell", "starting"))])
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        fleet.update("s1", state="running", notices=("A secret stays out.", WHY))
        await until(pilot, lambda: _text(app) == WHY)
        notice = _fleet(app).notice
        assert notice is not None
        assert (notice.hint, notice.level) == ("cloche doctor", "info")
        _fleet(app).say("something else")
        fleet.keepers["s2"] = FakeSession(session_info("s2", "two", "shell"))
        fleet.update("s2", notices=(WHY,))
        await until(pilot, lambda: len(_fleet(app).sessions) == 2)
        await settle(pilot)
        assert _text(app) == "something else"


async def test_what_was_so_before_the_workstation_opened_is_not_news() -> None:
    app, fleet, _ = workstation([FakeSession(session_info("s1", "one", "shell"))])
    fleet.update("s1", notices=(WHY,))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert _text(app) == ""
        fleet.update("s1", notices=(), state="stopped")
        await settle(pilot)
        assert _text(app) == ""


async def test_a_session_on_kvm_says_nothing() -> None:
    app, fleet, _ = workstation([FakeSession(session_info("s1", "one", "shell", "starting"))])
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        fleet.update("s1", state="running", notices=("A secret stays out.",))
        await settle(pilot)
        assert _text(app) == ""
