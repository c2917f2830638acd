"""What agents ask for: a strip that takes no key by itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual import events

from tests.doubles.pilots import fleet_of, press, press_at, press_later, screen_text, settle
from tests.doubles.scenes import workstation
from widgets.ask_strip import COUNT_AFTER, Ask

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from app.ui.app import ClocheApp
    from tests.doubles.terminals import StillTerminals

SIZE = (120, 36)


async def copies(pilot: Pilot[None], terminals: StillTerminals, session: str, text: str) -> None:
    """Let an agent ask for the clipboard."""
    listener = terminals.feeds[session].listener
    assert listener is not None
    listener.feed_clipboard(text)
    await settle(pilot)


async def enter(pilot: Pilot[None], app: ClocheApp, session: str) -> None:
    """Give the keys to an agent."""
    slot = fleet_of(app).slot_of(session)
    assert slot is not None
    fleet_of(app).set_focus(slot.view)
    await settle(pilot)


async def test_a_question_takes_neither_focus_nor_keys() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "a")
        await copies(pilot, terminals, "s1", "secret")
        strip = fleet_of(app).ask_strip
        assert strip.display
        assert not strip.has_focus
        await press(pilot, "y", "escape", "n")
        assert terminals.keys("s1") == ["a", "y", "escape", "n"]
        assert app.clipboard == ""
        assert strip.shown is not None
        assert "fix-parser wants to put 6 characters" in strip.shown.text


async def test_the_prefix_and_e_answer_and_the_keys_go_back() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await copies(pilot, terminals, "s1", "wanted")
        await press(pilot, "ctrl+g", "e")
        assert fleet_of(app).ask_strip.has_focus
        await press_later(pilot, "y")
        assert app.clipboard == "wanted"
        await press(pilot, "b")
        assert terminals.keys("s1") == ["b"]


async def test_keys_count_a_moment_later_only() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await enter(pilot, app, "s2")
        await copies(pilot, terminals, "s2", "too early")
        app.post_message(events.Key("ctrl+g", None))
        app.post_message(events.Key("e", "e"))
        app.post_message(events.Key("y", "y"))
        await settle(pilot)
        assert fleet_of(app).ask_strip.has_focus
        assert app.clipboard == ""
        assert fleet_of(app).ask_strip.shown is not None
        await press_later(pilot, "n")
        assert app.clipboard == ""
        assert fleet_of(app).focus_owner() == "add-tests"


async def test_questions_queue_and_none_slips_under_the_finger() -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        strip = fleet_of(app).ask_strip
        for session, text in (("s1", "1"), ("s2", "2"), ("s2", "3"), ("s1", "4")):
            await enter(pilot, app, session)
            await copies(pilot, terminals, session, text)
        assert [ask.payload for ask in strip.asks] == ["4", "3"]
        await pilot.click("#ask")
        await settle(pilot)
        assert strip.has_focus
        strip.put(Ask("s1", "newer", payload="5"))
        assert [ask.payload for ask in strip.asks] == ["4", "3", "5"]
        strip.put(Ask("s1", "newest", payload="6"))
        assert [ask.payload for ask in strip.asks] == ["4", "3", "6"]
        early = time.monotonic() + COUNT_AFTER  # late enough for the question before
        await fleet.remove("s1")
        await settle(pilot)
        assert strip.shown is not None
        assert strip.shown.payload == "3"
        await press_at(pilot, "y", early)
        assert app.clipboard == ""
        await press_at(pilot, "escape", early)
        assert strip.shown is not None
        await press_later(pilot, "y")
        assert app.clipboard == "3"


async def test_an_agent_that_asks_without_end_is_bounded() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await enter(pilot, app, "s1")
        for number in range(50):
            await copies(pilot, terminals, "s1", f"\x1b[2J{number}\u202e[bold]")
        (ask,) = fleet_of(app).ask_strip.asks
        assert ask.detail == "\u201c\u241b[2J49\u21c4[bold]\u201d"
        assert "\u201c\u241b[2J49\u21c4[bold]\u201d" in screen_text(pilot)


async def test_an_agent_without_the_keys_is_not_asked_for_but_named_once_a_minute() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        screen = fleet_of(app)
        await enter(pilot, app, "s1")
        for _ in range(20):
            await copies(pilot, terminals, "s2", "mine")
        assert screen.ask_strip.shown is None
        assert screen.news_of("s2").unasked == 20
        assert screen.notice is not None
        assert "add-tests wanted to write your clipboard once" in screen.notice.text
        screen.pace.told.clear()
        await copies(pilot, terminals, "s2", "mine")
        assert "21 times" in screen.notice.text
        await enter(pilot, app, "s2")
        assert screen.news_of("s2").unasked == 0
        assert app.clipboard == ""


async def test_nobody_is_asked_for_while_another_screen_has_the_keys() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await enter(pilot, app, "s1")
        await press(pilot, "ctrl+g", "r")
        await copies(pilot, terminals, "s1", "mine")
        assert fleet_of(app).ask_strip.shown is None
        assert fleet_of(app).news_of("s1").unasked == 1


async def test_too_much_for_the_clipboard_is_refused_in_a_sentence() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await enter(pilot, app, "s1")
        await copies(pilot, terminals, "s1", "\u00e9" * (51 << 10))
        screen = fleet_of(app)
        assert screen.ask_strip.shown is None
        assert screen.notice is not None
        assert "102 KiB" in screen.notice.text
        assert "more than 100 KiB is refused" in screen.notice.text
        await copies(pilot, terminals, "s1", "\u00e9" * (50 << 10))
        assert screen.ask_strip.shown is not None


async def test_e_without_a_question_says_so() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "ctrl+g", "e")
        notice = fleet_of(app).notice
        assert notice is not None
        assert "No agent asks" in notice.text


async def test_a_text_that_is_longer_than_what_is_shown_of_it_looks_cut() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=(400, 40)) as pilot:
        await settle(pilot)
        await enter(pilot, app, "s1")
        await copies(pilot, terminals, "s1", "a" * 200)
        assert f"\u201c{'a' * 200}\u201d" in screen_text(pilot)
        await copies(pilot, terminals, "s1", "a" * 200 + "; rm -r ~")
        assert f"\u201c{'a' * 200}\u2026 " in screen_text(pilot)
