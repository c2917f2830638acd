"""The list of sessions on the first screen: what it shows, filters and orders."""

from __future__ import annotations

from textual.widgets import Input

from app.ui.dialogs import NewSessionDialog
from tests.doubles.pilots import fleet_of, press, screen_text, settle, until
from tests.doubles.scenes import WORKSPACE, sessions, workstation
from widgets.session_rail import NeedsList, SessionStrip
from widgets.terminal import TerminalView
from widgets.top_bar import TopBar

SIZE = (120, 36)


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


async def test_the_next_session_that_needs_me_and_nobody() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        found: list[str | None] = []
        for _ in range(4):
            await press(pilot, "exclamation_mark")
            found.append(fleet_of(app).rail.current_key)
        assert found == ["s2", "s4", "s3", "s2"]


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
