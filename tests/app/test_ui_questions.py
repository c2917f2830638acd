"""Held connections over every screen: who has the keys, what an answer does, what goes away."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest
from textual import events

from app.errors import AppError
from app.protocol import EgressInfo
from app.ui.egress_dialog import RuleDialog
from app.ui.help_screen import HelpScreen
from app.ui.review_screen import ReviewScreen
from tests.doubles.pilots import (
    PATIENCE_S,
    fleet_of,
    press,
    press_early,
    press_later,
    screen_text,
    settle,
    until,
)
from tests.doubles.scenes import sessions, workstation
from vm.egress.questions import Question
from widgets.question_strip import QuestionStrip
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from app.ui.app import ClocheApp
    from tests.doubles.keeper import FakeFleet

SIZE = (120, 36)
SIZES = [(80, 24), (120, 40), (200, 60)]
OPENED = {"fleet": (), "review": ("r",), "log": ("E",), "help": ("question_mark",), "new": ("n",)}


def question(host: str = "pkgs.dev.example", *ports: int, age: float = 7.0) -> Question:
    """Return a question that waits for a minute in all."""
    first = time.time() - age
    return Question(host, ports or (443,), first, first + 60, 1, "No rule allows it.")


def asked(*questions: Question) -> tuple[ClocheApp, FakeFleet]:
    """Return the workstation with questions of the second session."""
    made = sessions()
    second = made[1]
    network = EgressInfo("on", 4, 3)
    second.info_value = msgspec.structs.replace(
        second.info_value, asks=questions or (question(),), egress=network
    )
    app, fleet, _ = workstation(made)
    return app, fleet


def strip_of(app: ClocheApp) -> QuestionStrip:
    """Return the strip of the screen that is in front."""
    return app.screen.query_one(QuestionStrip)


async def ask_for(pilot: Pilot[None], fleet: FakeFleet, *questions: Question) -> None:
    """Let the second session ask for something else."""
    fleet.update("s2", asks=questions)
    await settle(pilot)


@pytest.mark.parametrize("opened", OPENED)
@pytest.mark.parametrize("size", SIZES)
async def test_it_is_seen_on_every_screen_and_answered_from_there(
    opened: str, size: tuple[int, int]
) -> None:
    app, fleet = asked()
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, *OPENED[opened])
        screen, before = app.screen, app.focused
        text = screen_text(pilot)
        assert "codex (add-tests) wants pkgs.dev.example:443" in text
        assert re.search(r"1 held \d:\d\d of 1:00", text)
        assert not strip_of(app).has_focus
        await press(pilot, "ctrl+g", "e")
        assert strip_of(app).has_focus
        await press_later(pilot, "s")
        assert app.screen is screen
        assert app.focused is before
        assert fleet.keepers["s2"].answered == [("pkgs.dev.example", "session", False)]


async def test_it_takes_no_key_of_an_agent_and_gives_the_keys_back() -> None:
    app, fleet = asked(question("later.example"))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "a")
        await ask_for(pilot, fleet, question())
        view = app.focused
        assert isinstance(view, TerminalView)
        await press(pilot, "s", "o", "escape")
        assert fleet.keepers["s2"].answered == []
        await press(pilot, "ctrl+g", "e")
        assert strip_of(app).has_focus
        assert "keys answer the question" in screen_text(pilot)
        await press_early(pilot, "escape")
        assert strip_of(app).has_focus  # too early: nobody can have seen it
        await press_later(pilot, "escape")
        assert app.focused is view


async def test_a_click_gives_it_the_keys_and_escape_gives_them_back() -> None:
    app, _ = asked()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        view = app.focused
        await pilot.click(QuestionStrip)
        await settle(pilot)
        assert strip_of(app).has_focus
        await press_later(pilot, "escape")
        assert app.focused is view


async def test_a_wide_answer_shows_its_rule_and_wants_enter() -> None:
    app, fleet = asked(question("pkgs.dev.example", 443, 8443))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        await press_later(pilot, "a")
        assert fleet.keepers["s2"].answered == []
        assert "allow pkgs.dev.example:443,8443 in every session" in screen_text(pilot)
        await press_later(pilot, "enter")
        assert fleet.keepers["s2"].answered == [("pkgs.dev.example", "always", False)]
        assert "allow pkgs.dev.example:443,8443 in every session" in screen_text(pilot)


async def test_every_answer_is_one_more_enter_away() -> None:
    app, fleet = asked()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        await press_later(pilot, "enter")
        assert isinstance(app.screen, RuleDialog)
        text = screen_text(pilot)
        assert "deny pkgs.dev.example in every session on this workspace" in text
        assert "deny *.dev.example in every session" in text
        await press(pilot, "j", "j", "j", "j", "j")
        await press_later(pilot, "enter")
        assert fleet.keepers["s2"].answered == [("pkgs.dev.example", "deny-project", False)]


async def test_what_is_gone_goes_from_the_screen_and_the_next_keys_do_nothing() -> None:
    app, fleet = asked()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        await ask_for(pilot, fleet)
        assert not strip_of(app).display
        assert not strip_of(app).has_focus
        await press_early(pilot, "s")  # meant for the question; here it would ask whether to stop
        assert not fleet_of(app).asking
        await press_later(pilot, "z")
        assert fleet_of(app).zoomed


async def test_an_answer_that_does_not_arrive_is_said_and_the_question_is_back() -> None:
    app, fleet = asked()
    fleet.keepers["s2"].refuse = AppError("keeper-lost", "The session's keeper is gone.", "Again")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        await press_later(pilot, "o")
        await until(pilot, lambda: fleet_of(app).notice is not None)
        assert "The session's keeper is gone." in screen_text(pilot)
        assert strip_of(app).display


async def test_what_was_answered_is_not_asked_again_but_another_port_is() -> None:
    first = question()
    app, fleet = asked(first)
    fleet.keepers["s2"].answered = []
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        await press_later(pilot, "o")
        await ask_for(pilot, fleet, first)  # the record is a moment behind
        assert not app.asks.questions
        await ask_for(pilot, fleet, replace(first, ports=(443, 22)))
        assert [held.target for held in app.asks.questions] == ["pkgs.dev.example:443,22"]


async def test_one_agent_that_asks_for_much_hides_nobody() -> None:
    flood = [question(f"n{number}.example", age=30 - number / 10) for number in range(50)]
    app, fleet = asked(*flood)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        fleet.update("s1", asks=(question("mine.example", age=1),))
        await settle(pilot)
        assert [one.target for one in app.asks.questions[:2]] == [
            "n0.example:443",
            "mine.example:443",
        ]
        text = screen_text(pilot)
        assert "add-tests → n0.example:443 +49" in text
        assert "fix-parser → mine.example:443" in text


async def test_counts_needs_and_rail_say_it_and_one_key_goes_there() -> None:
    app, _ = asked(question(), question("other.example"))
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        text = screen_text(pilot)
        assert "egress 2 asks · 3 denied" in text
        assert re.search(r"⇡ add-tests → …?[a-z.]*dev.example:443 ", text)
        assert "wants pkgs.dev.example:443" in text
        assert not strip_of(app).has_focus
        for _ in range(2):
            await press(pilot, "exclamation_mark")
        assert fleet_of(app).rail.current_key == "s2"
        needs = fleet_of(app).query_one("#needs")
        needs.focus()
        await press(pilot, "j", "enter")
        assert strip_of(app).has_focus


async def test_the_counts_fit_on_a_small_screen() -> None:
    app, _ = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        first = screen_text(pilot).splitlines()[0]
        assert "egress 1 ask · 3 denied" in first
        assert "add-tests ⇡" in screen_text(pilot)


async def test_a_hostile_host_is_shown_escaped_and_its_end_is_seen() -> None:
    host = "x" * 90 + "\x1b]0;EVIL\x07[bold]\u202e.evil.example"
    app, _ = asked(question(host))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "e")
        text = screen_text(pilot)
        assert ".evil.example:443" in text
        assert not set(text) & {"\x1b", "\x07", "\u202e"}


async def test_the_countdown_goes_on_and_a_question_that_ended_is_not_shown() -> None:
    app, fleet = asked()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        before = strip_of(app)._now  # pyright: ignore[reportPrivateUsage]
        app.asks.show()
        assert strip_of(app)._now > before  # pyright: ignore[reportPrivateUsage]
        await ask_for(pilot, fleet, question(age=90))
        assert not strip_of(app).display


async def test_the_prefix_in_a_dialog_is_the_dialogs_while_nothing_is_asked() -> None:
    app, fleet = asked()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await ask_for(pilot, fleet)
        await press(pilot, "question_mark", "ctrl+g", "e")
        assert isinstance(app.screen, HelpScreen)
        await press(pilot, "escape", "r")
        assert isinstance(app.screen, ReviewScreen)
        await press(pilot, "ctrl+g", "e")
        assert "Only lines can be edited" in screen_text(pilot)  # the review's own e


async def test_the_keys_go_back_even_if_the_strip_is_hidden_before_anybody_hears_of_it() -> None:
    made = sessions()
    made[1].info_value = msgspec.structs.replace(made[1].info_value, asks=(question(),))
    app, fleet, terminals = workstation(made)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        view = app.focused
        assert isinstance(view, TerminalView)
        await press(pilot, "ctrl+g", "e")
        strip, busy = strip_of(app), asyncio.Event()
        answer = events.Key("s", "s")
        answer.time = time.monotonic() + 1.0
        app.post_message(answer)
        app.call_later(busy.wait)  # the application does something else, as at a first screen
        async with asyncio.timeout(PATIENCE_S):
            while strip.size.height:
                app.screen._on_timer_update()  # pyright: ignore[reportPrivateUsage]
                await asyncio.sleep(0)
        enter = events.Key("enter", None)
        enter.time = answer.time
        app.post_message(enter)
        busy.set()
        await settle(pilot)
        assert fleet.keepers["s2"].answered == [("pkgs.dev.example", "session", False)]
        assert app.focused is view
        assert terminals.keys("s1") == ["enter"]  # the agent's, not Cloche's
