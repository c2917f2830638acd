"""What is said, asked and typed lies over the panes: no guest is resized by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.ui.app import ClocheApp
from app.ui.fleet_screen import FleetScreen
from app.ui.speaking import Choice
from tests.doubles.pilots import press, screen_text, settle
from tests.doubles.scenes import crowd, workstation
from widgets.ask_strip import Ask

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from tests.doubles.terminals import StillTerminals

SIZES = ((80, 24), (120, 40), (200, 60))
ASK = Ask("s1", "fix-parser wants something", choices=(("y", "yes"),))


def fleet(pilot: Pilot[None]) -> FleetScreen:
    """Return the screen under test."""
    screen = pilot.app.screen
    assert isinstance(screen, FleetScreen)
    return screen


def sizes(terminals: StillTerminals) -> dict[str, list[object]]:
    """Return every size that each guest was told."""
    return {session: feed.told("resize") for session, feed in terminals.feeds.items()}


def last_line(pilot: Pilot[None]) -> str:
    """Return what the last line of the screen shows."""
    return screen_text(pilot).splitlines()[-1]


async def say_and_ask(pilot: Pilot[None]) -> None:
    """Let everything come and go that lies over the panes."""
    screen = fleet(pilot)
    for level in ("info", "done", "warning", "error"):
        screen.say("Something " * 40, "a fix", level)
        await settle(pilot)
        screen.action_dismiss_notice()
        await settle(pilot)
    screen.ask("Sure?", {"y": Choice("yes")})
    await settle(pilot)
    screen.close_question()
    screen.ask_strip.put(ASK)
    await settle(pilot)
    screen.ask_strip.keep_only(set())
    await press(pilot, "slash", "f", "escape")


@pytest.mark.parametrize("size", SIZES)
async def test_nothing_that_is_said_asked_or_typed_resizes_a_guest(size: tuple[int, int]) -> None:
    app, _, terminals = workstation(crowd(4))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        before = {session: list(told) for session, told in sizes(terminals).items()}
        views = {slot.session_id: slot.region for slot in fleet(pilot).slots}
        assert any(before.values())
        screen = fleet(pilot)
        screen.say("A sentence.")
        screen.ask_strip.put(ASK)
        await settle(pilot)
        assert {slot.session_id: slot.region for slot in screen.slots} == views
        assert "A sentence." in screen_text(pilot)
        assert "fix-parser wants something" in screen_text(pilot)
        await say_and_ask(pilot)
        assert sizes(terminals) == before


async def test_a_notice_lies_over_the_keys_unless_they_have_to_be_read() -> None:
    app, _, _ = workstation(crowd(2))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "review" in last_line(pilot)
        fleet(pilot).say("A sentence.", level="warning")
        await settle(pilot)
        assert "A sentence." in last_line(pilot)
        await press(pilot, "ctrl+g")
        assert "review" in last_line(pilot)
        assert "A sentence." in screen_text(pilot)
        await press(pilot, "f12")  # into the agent's screen
        assert "A sentence." in last_line(pilot)
        assert "ctrl+g esc close" in last_line(pilot)
        await press(pilot, "f12", "slash", "f")
        assert last_line(pilot).startswith(" filter f")
        assert "A sentence." in screen_text(pilot)


async def test_a_notice_is_closed_from_inside_an_agents_screen() -> None:
    app, _, terminals = workstation(crowd(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "1")
        fleet(pilot).say("It failed.", "a fix", "error")
        await press(pilot, "escape")
        assert "It failed." in screen_text(pilot)
        await press(pilot, "ctrl+g", "escape")
        assert "It failed." not in screen_text(pilot)
        assert terminals.keys("s1") == ["escape"]
        assert "keys go to" in last_line(pilot)


async def test_the_answers_to_a_question_stand_below_it() -> None:
    app, _, _ = workstation(crowd(2))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        fleet(pilot).ask("Sure?", {"y": Choice("do it"), "n": Choice("leave it")})
        await settle(pilot)
        assert "Sure?" in screen_text(pilot).splitlines()[-2]
        assert "y do it" in last_line(pilot)
        await press(pilot, "n")
        assert "Sure?" not in screen_text(pilot)
        assert isinstance(pilot.app, ClocheApp)
