"""What the fleet screen leads to, and what it says when something is out of order."""

from __future__ import annotations

from textual import events
from textual.widgets import Static

from app.errors import AppError
from app.ui.error_dialog import ErrorDialog
from app.ui.fleet_screen import FleetScreen
from app.ui.help_screen import HelpScreen
from app.ui.review_screen import ReviewScreen
from tests.doubles.pilots import fleet_of, press, screen_text, settle
from tests.doubles.scenes import sessions, workstation
from widgets.pane_header import PaneHeader
from widgets.terminal_feed import Scroll

SIZE = (120, 36)


async def test_a_lost_terminal_is_said_in_its_header_and_its_keeper_started() -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        feed = terminals.feeds["s1"]
        listener = feed.listener
        assert listener is not None
        feed.state = "lost"
        listener.feed_state("lost", None, "the keeper went away")
        await settle(pilot)
        assert app.screen.query(PaneHeader).first().facts.trouble == "reconnects"
        assert fleet.opened == ["s1"]
        listener.feed_state("lost", None, "the keeper went away")
        await settle(pilot)
        assert fleet.opened == ["s1"]
        feed.state = "broken"
        listener.feed_state("broken", None, "Its output ends the engine each time.")
        await settle(pilot)
        assert app.screen.query(PaneHeader).first().facts.trouble == "cannot be shown"
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text == "Its output ends the engine each time."
        feed.state = "live"
        listener.feed_state("live", None, "")
        await settle(pilot)
        assert app.screen.query(PaneHeader).first().facts.trouble == ""


async def test_a_page_that_is_scrolled_back_says_so() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        feed = terminals.feeds["s1"]
        feed.scroll = Scroll(offset=130 - feed.rows, total=142, at_end=False)
        feed.put("old")
        await settle(pilot)
        assert "↑ 12 lines back" in screen_text(pilot)
        feed.scroll = Scroll(offset=142 - feed.rows, total=142, at_end=True)
        feed.put("new")
        await settle(pilot)
        assert "lines back" not in screen_text(pilot)


async def test_terminals_that_cannot_be_shown_are_an_error_with_a_fix() -> None:
    app, _, terminals = workstation()
    terminals.refuse = AppError("host-lacks", "No sandbox works here.", "Run: cloche doctor")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.hint == "Run: cloche doctor"


async def test_leaving_ends_the_program_and_no_session() -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("q")
        await pilot.pause()
    assert terminals.closed
    assert fleet.stopped == []
    assert len(fleet.keepers) == len(sessions())


async def test_r_opens_the_review_and_q_comes_back() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "r")
        assert isinstance(app.screen, ReviewScreen)
        await press(pilot, "q")
        assert isinstance(app.screen, FleetScreen)


async def test_help_lists_every_key_and_closes() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        await press(pilot, "j", "k", "escape")
        assert isinstance(app.screen, FleetScreen)


async def test_the_palette_is_under_a_key_and_changes_the_theme() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "colon")
        assert app.screen.id == "--command-palette"
        await press(pilot, "escape")
        app.action_theme("cloche-light")
        await settle(pilot)
        assert terminals.palettes == ["cloche-light"]
        app.action_theme("no-such-theme")
        assert app.theme == "cloche-light"


async def test_commands_of_the_palette_are_the_keys_by_name() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert {"New", "Review", "Zoom", "Theme: Cloche light", "Keys"} <= set(titles)


async def test_enter_on_an_error_line_opens_all_of_it() -> None:
    app, _, terminals = workstation()
    long = "The machine says " + "very " * 300 + "much."
    terminals.refuse = AppError("host-lacks", long, "Look at the host: cloche doctor --fix")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert "details" in screen_text(pilot)
        await press(pilot, "j")
        early = events.Key("enter", "\r")
        early.time = 0.0
        app.post_message(early)
        await settle(pilot)
        assert not isinstance(app.screen, ErrorDialog)
        await press(pilot, "f12")
        late = events.Key("enter", "\r")
        late.time += 1
        app.post_message(late)
        await settle(pilot)
        dialog = app.screen
        assert isinstance(dialog, ErrorDialog)
        assert long in str(dialog.query(Static).last().render()) or dialog.value.text == long
        await press(pilot, "c")
        assert app.clipboard == "cloche doctor --fix"
        assert "copied" in screen_text(pilot)
        await press(pilot, "escape", "escape")
        assert fleet_of(app).notice is None
