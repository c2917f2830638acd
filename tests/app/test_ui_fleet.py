from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual import events
from textual.widgets import Input, Static

from app.errors import AppError
from app.ui.dialogs import NewSessionDialog
from app.ui.error_dialog import ErrorDialog
from app.ui.fleet_screen import FleetScreen
from app.ui.help_screen import HelpScreen
from app.ui.review_screen import ReviewScreen
from tests.doubles.pilots import press, screen_text, settle, until
from tests.doubles.scenes import WORKSPACE, sessions, workstation
from widgets.key_bar import KeyBar
from widgets.pane_header import PaneHeader
from widgets.session_rail import NeedsList, SessionStrip
from widgets.terminal import TerminalView
from widgets.terminal_feed import Scroll
from widgets.top_bar import TopBar

if TYPE_CHECKING:
    from app.ui.app import ClocheApp

SIZE = (120, 36)


def fleet_of(app: ClocheApp) -> FleetScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, FleetScreen)
    return screen


async def test_the_rail_lists_sessions_by_workspace_with_numbers() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        names = [
            getattr(item, "name", f"[{getattr(item, 'text', '')}]")
            for item in fleet_of(app).rail.items
        ]
        assert names == ["[parser]", "fix-parser", "add-tests", "docs", "[web]", "try-it"]
        assert fleet_of(app).rail.current_key == "s1"


async def test_the_first_line_says_who_needs_me() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        value = app.screen.query_one(TopBar).value
        assert (value.workspace, value.working, value.waiting, value.review, value.failed) == (
            "parser",
            1,
            1,
            1,
            1,
        )
        assert len(value.clock) == 5
        needs = [need.text for need in app.screen.query_one(NeedsList).items]
        assert needs == [
            "add-tests waits for an answer",
            "try-it failed",
            "docs: 24 hunks to review",
        ]


async def test_two_panes_are_live_and_the_cursor_chooses_them() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert [slot.session_id for slot in fleet_of(app).slots if slot.display] == ["s1", "s2"]
        await press(pilot, "j", "j")
        assert [slot.session_id for slot in fleet_of(app).slots if slot.display] == ["s3", "s2"]
        assert set(terminals.feeds) == {"s1", "s2"}
        await press(pilot, "g")
        assert fleet_of(app).rail.current_key == "s1"
        await press(pilot, "G")
        assert fleet_of(app).rail.current_key == "s4"


@pytest.mark.parametrize("key", ["enter", "1", "alt+1"])
async def test_a_key_goes_into_the_pane_and_then_all_keys_are_the_agents(key: str) -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, key, "q", "s", "n", "escape", "tab", "ctrl+c", "ctrl+q", "ctrl+p", "j")
        assert terminals.keys("s1") == [
            "q",
            "s",
            "n",
            "escape",
            "tab",
            "ctrl+c",
            "ctrl+q",
            "ctrl+p",
            "j",
        ]
        assert app.is_running
        assert fleet.stopped == []
        lead = app.screen.query_one(KeyBar).lead
        assert lead is not None
        assert "keys go to fix-parser" in lead[0]
        assert fleet_of(app).slots[0].has_pseudo_class("focus-within")


async def test_f12_takes_the_keys_back_and_gives_them_again() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "f12")
        assert fleet_of(app).rail.has_focus
        await press(pilot, "f12", "a")
        assert terminals.keys("s1") == ["a"]


async def test_alt_and_a_number_goes_into_that_session_from_anywhere() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "alt+2", "x", "alt+1", "y")
        assert terminals.keys("s2") == ["x"]
        assert terminals.keys("s1") == ["y"]
        assert fleet_of(app).rail.current_key == "s1"
        await press(pilot, "alt+3")
        assert fleet_of(app).rail.current_key == "s3"
        assert fleet_of(app).rail.has_focus


async def test_the_prefix_gives_one_key_to_cloche_and_twice_it_goes_to_the_agent() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "ctrl+g")
        bar = app.screen.query_one(KeyBar)
        assert bar.lead == ("ctrl+g", "warning")
        assert "review" in [hint.label for hint in bar.hints]
        await press(pilot, "z")
        assert fleet_of(app).zoomed
        assert terminals.keys("s1") == []
        await press(pilot, "ctrl+g", "ctrl+g")
        assert terminals.keys("s1") == ["ctrl+g"]
        await press(pilot, "ctrl+g", "escape", "a")
        assert terminals.keys("s1") == ["ctrl+g", "a"]


async def test_a_prefix_with_a_key_that_means_nothing_says_so() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "ctrl+g", "X")
        notice = fleet_of(app).notice
        assert notice is not None
        assert "ctrl+g X does nothing here" in notice.text
        assert terminals.keys("s1") == []


async def test_the_prefix_also_works_outside_of_a_pane() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "ctrl+g", "z")
        assert fleet_of(app).zoomed


async def test_the_next_session_that_needs_me_and_nobody() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        found: list[str | None] = []
        for _ in range(4):
            await press(pilot, "exclamation_mark")
            found.append(fleet_of(app).rail.current_key)
        assert found == ["s2", "s4", "s3", "s2"]


async def test_zoom_gives_one_pane_the_whole_screen() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "z")
        assert not app.screen.query_one("#side").display
        assert [slot.display for slot in fleet_of(app).slots] == [True, False]
        await press(pilot, "z")
        assert app.screen.query_one("#side").display
        assert [slot.display for slot in fleet_of(app).slots] == [True, True]


async def test_a_filter_shows_what_matches_and_escape_shows_all() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "slash", *"codex")
        rail = fleet_of(app).rail
        assert [rail.item_key(item) for item in rail.items if rail.item_key(item)] == ["s2"]
        await press(pilot, "escape")
        assert len([item for item in rail.items if rail.item_key(item)]) == 4
        assert rail.current_key == "s2"
        assert rail.has_focus


async def test_80_by_24_has_a_strip_and_one_pane() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert app.screen.query_one(SessionStrip).display
        assert not app.screen.query_one("#side").display
        assert [slot.session_id for slot in fleet_of(app).slots if slot.display] == ["s1"]
        await press(pilot, "j", "enter", "x")
        assert [slot.session_id for slot in fleet_of(app).slots if slot.display] == ["s2"]
        assert terminals.keys("s2") == ["x"]


async def test_a_session_that_starts_shows_its_screen_by_itself() -> None:
    app, fleet, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        fleet.update("s3", state="starting")
        await press(pilot, "j", "j")
        slot = fleet_of(app).slot_of("s3")
        assert slot is not None
        assert slot.view is None
        fleet.update("s3", state="running", agent_state="working")
        await until(pilot, lambda: isinstance(slot.view, TerminalView))


async def test_a_session_that_was_removed_elsewhere_goes_away() -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await fleet.remove("s1")
        await until(pilot, lambda: terminals.forgotten == ["s1"])
        assert fleet_of(app).rail.current_key == "s2"
        await press(pilot, "j")


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


async def test_a_click_on_a_session_selects_it_and_a_click_on_a_hint_presses_it() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.click("#rail", offset=(6, 3))
        await settle(pilot)
        assert fleet_of(app).rail.current_key == "s2"
        await pilot.click("#keys", offset=(2, 0))
        await settle(pilot)
        assert isinstance(app.screen, NewSessionDialog)


async def test_the_workspace_of_the_new_session_is_this_one() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "n")
        assert app.screen.query_one("#workspace", Input).value == str(WORKSPACE)


async def test_hostile_names_are_shown_whole_and_printable() -> None:
    keepers = sessions()
    app, fleet, _ = workstation(keepers)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        fleet.update("s1", name="a\x1b]52;c;x\x07[/bold]\u202e", message="\x9b2J")
        await settle(pilot)
        shown = screen_text(pilot)
        assert "[/bold]" in shown
        assert not any(char in shown for char in "\x1b\x07\x9b\u202e")


async def test_sessions_are_listed_in_four_orders() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)

        def names() -> list[str]:
            return [getattr(item, "name", "") for item in fleet_of(app).rail.items]

        before = names()
        await press(pilot, "o")
        assert names()[0] == "add-tests"
        assert "who needs me" in screen_text(pilot)
        await press(pilot, "o", "o")
        assert names() == sorted(names())
        await press(pilot, "alt+1", "a", "f12", "o")
        assert names() == before
        await press(pilot, "slash", *"nobody")
        assert "no session holds that" in screen_text(pilot)


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
