"""Panes in the grid: how many, which, by every key and click; what a pane says and remembers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from textual.geometry import Size

from app.services.layouts import Layout, Layouts, read_layout
from app.ui.app import ClocheApp
from app.ui.fleet_screen import FleetScreen
from tests.doubles.pilots import press, screen_text, settle, until
from tests.doubles.scenes import WORKSPACE, crowd, sessions, workstation
from widgets.key_bar import KeyBar
from widgets.pane_header import PaneHeader
from widgets.terminal_feed import View

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot
    from textual.widget import Widget

    from app.ui.pane_slot import PaneSlot
    from tests.doubles.feed import FakeFeed

WIDE = (200, 60)
USUAL = (120, 40)
SMALL = (80, 24)


def fleet_of(app: ClocheApp) -> FleetScreen:
    screen = app.screen_stack[0]
    assert isinstance(screen, FleetScreen)
    return screen


def shown(app: ClocheApp) -> list[str]:
    """The sessions whose panes are to be seen, in their order."""
    return [slot.session_id for slot in fleet_of(app).slots if slot.display]


def pane(app: ClocheApp, session_id: str) -> PaneSlot:
    slot = fleet_of(app).slot_of(session_id)
    assert slot is not None
    return slot


def owner(app: ClocheApp) -> str:
    """The session that has the keys."""
    slot = fleet_of(app).slot_with_keys()
    return "" if slot is None else slot.session_id


async def with_panes(pilot: Pilot[None], count: int) -> None:
    """Wish for so many panes."""
    await settle(pilot)
    while len(fleet_of(app_of(pilot)).tiling.shown) < count:
        await press(pilot, "plus")


def app_of(pilot: Pilot[None]) -> ClocheApp:
    assert isinstance(pilot.app, ClocheApp)
    return pilot.app


# How many

ALL = [f"s{number}" for number in range(1, 10)]


@pytest.mark.parametrize("size", [USUAL, WIDE])
async def test_plus_and_minus_step_through_the_counts(size: tuple[int, int]) -> None:
    app, _, _ = workstation(crowd(9))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        seen = [len(shown(app))]
        for key in ("plus", "plus", "plus", "plus", *["minus"] * 5):
            await press(pilot, key)
            seen.append(len(shown(app)))
        assert seen == [2, 4, 6, 9, 9, 6, 4, 2, 1, 1]


async def test_on_a_small_screen_more_panes_are_a_wish_of_its_own() -> None:
    app, _, _ = workstation(crowd(9))
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        assert shown(app) == ["s1"]
        await press(pilot, "plus")
        assert shown(app) == ["s1", "s2"]
        await pilot.resize_terminal(*WIDE)
        await settle(pilot)
        assert shown(app) == ["s1", "s2"]
        await press(pilot, "plus", "plus")
        assert shown(app) == ALL[:6]
        await pilot.resize_terminal(*SMALL)
        await settle(pilot)
        assert len(shown(app)) == 2


@pytest.mark.parametrize("size", [SMALL, USUAL, WIDE, (100, 30), (99, 30), (159, 29)])
async def test_the_room_is_known_without_looking(size: tuple[int, int]) -> None:
    """The number of panes is decided by the screen's size alone, so a notice changes nothing."""
    app, _, _ = workstation(crowd(4))
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        assert Size(*fleet_of(app).room()) == fleet_of(app).stage.size


@pytest.mark.parametrize("count", [1, 2, 4, 6, 9])
@pytest.mark.parametrize("size", [SMALL, USUAL, WIDE])
async def test_panes_share_the_stage(count: int, size: tuple[int, int]) -> None:
    app, _, _ = workstation(crowd(9))
    async with app.run_test(size=size) as pilot:
        await with_panes(pilot, count)
        while len(shown(app)) > count:
            await press(pilot, "minus")
        slots = [slot for slot in fleet_of(app).slots if slot.display]
        assert [slot.session_id for slot in slots] == ALL[:count]
        stage = fleet_of(app).stage.region
        assert sum(slot.region.area for slot in slots) == stage.area
        assert all(stage.contains_region(slot.region) for slot in slots)
        for slot in slots:
            assert slot.view is not None
            assert slot.view.size.width >= 20
            assert slot.view.size.height >= 5


async def test_two_panes_stand_beside_each_other_where_each_gets_80_columns() -> None:
    app, _, _ = workstation(crowd(2))
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        assert pane(app, "s1").region.x == pane(app, "s2").region.x
        await pilot.resize_terminal(206, 60)
        await settle(pilot)
        assert pane(app, "s1").region.y == pane(app, "s2").region.y
        assert [slot.view.size.width for slot in fleet_of(app).slots if slot.view] == [80, 80]


async def test_what_does_not_fit_is_said_once_and_comes_back_with_the_room() -> None:
    app, _, _ = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 9)
        await pilot.resize_terminal(100, 60)
        await settle(pilot)
        assert len(shown(app)) == 9
        await pilot.resize_terminal(120, 31)
        await settle(pilot)
        fleet_of(app).action_dismiss_notice()
        assert len(shown(app)) == 9
        fleet_of(app).low_wish = 9
        await pilot.resize_terminal(60, 24)
        await settle(pilot)
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text == "Room for 6 panes of 9 here."
        fleet_of(app).action_dismiss_notice()
        fleet_of(app).show_panes()
        assert fleet_of(app).notice is None
        await pilot.resize_terminal(*WIDE)
        await settle(pilot)
        assert shown(app) == ALL


async def test_a_wish_for_which_there_is_no_room_is_refused_with_the_reason() -> None:
    app, _, _ = workstation(crowd(9))
    async with app.run_test(size=(50, 13)) as pilot:
        await settle(pilot)
        await press(pilot, "plus", "plus", "plus")
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text == "No room for 4 panes: each would have less than 20x5 cells."
        assert len(shown(app)) == 1 or all(
            slot.view is not None and slot.view.size.height >= 5
            for slot in fleet_of(app).slots
            if slot.display
        )


async def test_places_for_sessions_to_come() -> None:
    app, fleet, _ = workstation(crowd(2))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "plus")
        assert shown(app) == ["s1", "s2"]
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text.startswith("Up to 4 panes from now on")
        for keeper in crowd(5)[2:]:
            fleet.keepers[keeper.info_value.id] = keeper
        fleet.changed.set()
        await until(pilot, lambda: len(shown(app)) == 4)
        assert shown(app) == ALL[:4]


# Who stands where


async def test_sessions_keep_their_places_while_others_come_and_go() -> None:
    app, fleet, _ = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        before = {name: pane(app, name).region for name in ("s1", "s3", "s4")}
        await fleet.remove("s2")
        await until(pilot, lambda: shown(app) == ["s1", "s5", "s3", "s4"])
        assert {name: pane(app, name).region for name in before} == before


async def test_a_new_choice_replaces_the_one_used_least_recently() -> None:
    app, _, _ = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, "2", "f12", "1", "f12", "4", "f12", "7")
        assert shown(app) == ["s1", "s2", "s7", "s4"]
        assert owner(app) == "s7"
        await press(pilot, "f12", "9")
        assert shown(app) == ["s1", "s9", "s7", "s4"]


async def test_looking_through_the_rail_changes_one_pane() -> None:
    app, _, _ = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, *"jjjjjjj")
        assert fleet_of(app).rail.current_key == "s8"
        assert shown(app) == ["s8", "s2", "s3", "s4"]


async def test_a_session_is_never_connected_to_twice_and_a_hidden_one_is_not_drawn() -> None:
    app, _, terminals = workstation(crowd(4))
    opened: list[str] = []
    make = terminals.view

    def view(session_id: str) -> object:
        opened.append(session_id)
        return make(session_id)

    terminals.view = view  # type: ignore[method-assign, assignment]
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        feeds = dict(terminals.feeds)
        assert [terminals.feeds[name].told("rate")[-1] for name in ALL[:4]] == ["visible"] * 4
        await press(pilot, "minus", "minus", "2")
        assert shown(app) == ["s2"]
        rates = {name: terminals.feeds[name].told("rate")[-1] for name in ALL[:4]}
        assert rates == {"s1": "hidden", "s2": "focused", "s3": "hidden", "s4": "hidden"}
        assert terminals.feeds["s1"].listener is None
        assert terminals.feeds == feeds
        assert terminals.forgotten == []


# Zoom


async def test_zoom_keeps_the_grid_below_and_draws_one_pane() -> None:
    app, _, terminals = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        before = shown(app)
        regions = [pane(app, name).region for name in before]
        views = {slot.session_id: slot.view for slot in fleet_of(app).slots}
        await press(pilot, "3", "ctrl+g", "z")
        assert shown(app) == ["s3"]
        assert owner(app) == "s3"
        assert pane(app, "s3").region.width == 200
        assert [terminals.feeds[name].told("rate")[-1] for name in ("s1", "s2", "s4")] == [
            "hidden"
        ] * 3
        await press(pilot, "ctrl+g", "z")
        assert shown(app) == before
        assert [pane(app, name).region for name in before] == regions
        assert {slot.session_id: slot.view for slot in fleet_of(app).slots} == views
        assert terminals.feeds["s1"].told("rate")[-1] == "visible"


async def test_in_zoom_numbers_and_tab_go_to_other_sessions_and_the_grid_stays() -> None:
    app, _, _ = workstation(crowd(4))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, "z", "alt+2")
        assert (shown(app), owner(app)) == (["s2"], "s2")
        await press(pilot, "ctrl+g", "tab")
        assert (shown(app), owner(app)) == (["s3"], "s3")
        await press(pilot, "ctrl+g", "minus")
        assert shown(app) == ALL[:4]
        assert owner(app) == "s3"


# Into panes and from one to the next


@pytest.mark.parametrize("form", ["f12 {}", "alt+{}", "ctrl+g {}"])
async def test_every_number_goes_into_its_session(form: str) -> None:
    app, _, terminals = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        for number in (*range(2, 10), 1):
            await press(pilot, *form.format(number).split(), "x")
            assert owner(app) == f"s{number}"
            assert terminals.keys(f"s{number}") == ["x"]
            assert fleet_of(app).rail.current_key == f"s{number}"


async def test_a_number_that_no_session_has_says_so() -> None:
    app, _, _ = workstation(crowd(2))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "7")
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text == "There is no session 7."
        assert owner(app) == ""


async def test_tab_goes_round_the_panes_without_giving_keys_away() -> None:
    app, _, terminals = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        seen: list[str | None] = []
        for key in ("tab", "tab", "tab", "tab", "shift+tab", "shift+tab"):
            await press(pilot, key)
            seen.append(fleet_of(app).rail.current_key)
        assert seen == ["s2", "s3", "s4", "s1", "s4", "s3"]
        assert owner(app) == ""
        assert [header.row.key for header in headers(app) if header.facts.current] == ["s3"]  # type: ignore[union-attr]
        assert terminals.keys("s3") == []


def headers(app: ClocheApp) -> list[PaneHeader]:
    return [slot.query_one(PaneHeader) for slot in fleet_of(app).slots if slot.display]


async def test_after_the_prefix_tab_takes_the_keys_along() -> None:
    app, _, terminals = workstation(crowd(9))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, "enter", "tab", "ctrl+g", "tab", "x", "ctrl+g", "shift+tab", "y")
        assert terminals.keys("s1") == ["tab", "y"]
        assert terminals.keys("s2") == ["x"]
        assert [header.facts.active for header in headers(app)] == [True, False, False, False]


async def test_with_one_pane_tab_goes_through_all_sessions() -> None:
    app, _, _ = workstation(crowd(3))
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        seen = [shown(app)]
        for _ in range(3):
            await press(pilot, "tab")
            seen.append(shown(app))
        assert seen == [["s1"], ["s2"], ["s3"], ["s1"]]


async def test_clicks_on_a_pane_its_header_and_its_edge_give_it_the_keys() -> None:
    app, _, _ = workstation(crowd(4))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        view = pane(app, "s3").view
        assert view is not None
        await pilot.click(view, offset=(5, 5))
        await settle(pilot)
        assert owner(app) == "s3"
        await pilot.click(pane(app, "s2").query_one(PaneHeader), offset=(4, 0))
        await settle(pilot)
        assert owner(app) == "s2"
        assert fleet_of(app).rail.current_key == "s2"
        edge = pane(app, "s4").region
        await pilot.click(offset=(edge.x, edge.y + 6))
        await settle(pilot)
        assert owner(app) == "s4"


async def test_a_click_on_a_stopped_session_shows_that_it_has_no_screen() -> None:
    app, _, _ = workstation(sessions())
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "ctrl+g", "3")
        assert owner(app) == ""
        assert fleet_of(app).home.has_focus
        notice = fleet_of(app).notice
        assert notice is not None
        assert "no machine" in notice.text
        await press(pilot, "1")
        assert owner(app) == "s1"
        await pilot.click(pane(app, "s3"), offset=(10, 10))
        await settle(pilot)
        assert fleet_of(app).rail.current_key == "s3"
        assert owner(app) == ""


# What a pane says


async def test_a_terminal_attached_elsewhere_is_watched_until_it_is_taken() -> None:
    app, _, terminals = workstation(crowd(2))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        feed = terminals.feeds["s2"]
        feed.mirrored = True
        assert feed.listener is not None
        feed.listener.feed_mirrored(True)
        await settle(pilot)
        assert "⇄ attached elsewhere" in screen_text(pilot)
        await press(pilot, "2")
        bar = app.screen.query_one(KeyBar)
        assert bar.lead == ("⇄ add-tests is attached elsewhere", "warning")
        assert [hint.key for hint in bar.hints][:1] == ["ctrl+g enter"]
        assert owner(app) == "s2"
        assert feed.told("take_over") == []
        await press(pilot, "enter")
        assert not taken(feed)
        await press(pilot, "ctrl+g", "enter")
        assert taken(feed)
        feed.mirrored = False
        feed.listener.feed_mirrored(False)
        await settle(pilot)
        assert "attached elsewhere" not in screen_text(pilot)
        assert bar.lead == ("⌨ keys go to add-tests", "accent")


def taken(feed: FakeFeed) -> bool:
    return ("take_over",) in feed.calls


async def test_taking_by_a_click_on_the_hint() -> None:
    app, _, terminals = workstation(crowd(1))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        terminals.feeds["s1"].mirrored = True
        await press(pilot, "1")
        bar = app.screen.query_one(KeyBar)
        assert bar.lead is not None
        await pilot.click(bar, offset=(len(bar.lead[0]) + 5, 0))
        await settle(pilot)
        assert taken(terminals.feeds["s1"])


async def test_the_header_shows_what_the_terminal_reports() -> None:
    app, _, terminals = workstation(crowd(2))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        feed = terminals.feeds["s2"]
        assert feed.listener is not None
        feed.progress = (1, 50)
        feed.listener.feed_progress((1, 50))
        feed.title = "vim [bold]x"
        feed.listener.feed_title(feed.title)
        feed.listener.feed_bell()
        await until(pilot, lambda: "50%" in screen_text(pilot))
        assert "vim [bold]x" in screen_text(pilot)
        assert "♪" in screen_text(pilot)
        assert pane(app, "s2").query_one(PaneHeader).facts.marked
        await press(pilot, "2")
        await until(pilot, lambda: not pane(app, "s2").query_one(PaneHeader).facts.marked)


async def test_copy_mode_is_said_in_the_header_and_its_keys_below() -> None:
    app, _, terminals = workstation(crowd(1))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        feed = terminals.feeds["s1"]
        feed.view = View(copying=True)
        feed.put("frozen")
        fleet_of(app).show_panes()
        fleet_of(app).refresh_keys()
        await settle(pilot)
        assert "copy mode" in screen_text(pilot)
        assert [hint.label for hint in app.screen.query_one(KeyBar).hints][:2] == ["move", "select"]


async def test_trouble_is_known_when_a_pane_is_shown_again() -> None:
    app, _, terminals = workstation(crowd(4))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        terminals.feeds["s1"].state = "broken"
        await press(pilot, "minus", "2", "f12", "1")
        assert pane(app, "s1").query_one(PaneHeader).facts.trouble == "cannot be shown"


@pytest.mark.parametrize("ascii_only", [False, True])
async def test_where_the_keys_go_does_not_hang_on_colour(ascii_only: bool) -> None:
    app, _, _ = workstation(crowd(4), ascii_only=ascii_only)
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, "2")
        lines = screen_text(pilot).splitlines()
        sign = "@" if ascii_only else "⌨"
        at = pane(app, "s2").region
        assert sign in lines[at.y][at.x : at.right]
        assert [line for line in lines[1:-1] if sign in line] == [lines[at.y]]
        assert lines[at.y][at.x].isascii() is ascii_only


# What is remembered


class Remembering:
    """Remembers one layout and notes what it is to remember."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.written: list[Layout] = []

    async def load(self, workspace: str) -> Layout:
        assert workspace == str(WORKSPACE)
        return self.layout

    def remember(self, workspace: str, layout: Layout) -> None:
        assert workspace == str(WORKSPACE)
        self.written.append(layout)

    async def close(self) -> None:
        """Nothing to write."""


async def test_how_the_screen_was_left_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "layouts"
    app, _, _ = workstation(crowd(9), layouts=Layouts(folder))
    async with app.run_test(size=WIDE) as pilot:
        await with_panes(pilot, 4)
        await press(pilot, "7", "f12", "o", "z")
    left = read_layout(folder, str(WORKSPACE))
    assert (left.panes, left.zoomed, left.order, left.current) == (4, True, "who needs me", "s7")
    assert set(left.places) >= {"s7"}
    app, _, _ = workstation(crowd(9), layouts=Layouts(folder))
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert shown(app) == ["s7"]
        assert fleet_of(app).order == "who needs me"
        await press(pilot, "z")
        assert tuple(shown(app)) == left.places


@pytest.mark.parametrize(
    "layout",
    [
        Layout(panes=3),
        Layout(panes=7, panes_low=8),
        Layout(order="no such order"),
        Layout(places=("gone",) * 9, current="gone"),
        Layout(zoomed=True, current="gone"),
        Layout(places=("s1", "s1", "\x1b[2J", "")),
    ],
)
async def test_a_layout_that_makes_no_sense_is_used_as_far_as_it_does(layout: Layout) -> None:
    layouts = Remembering(layout)
    app, _, _ = workstation(crowd(4), layouts=layouts)
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        found = shown(app)
        assert "s1" in found
        assert len(found) == len(set(found)) == (1 if layout.zoomed else 2)
        await press(pilot, "plus", "j", "2", "x")
        assert app.is_running
        assert all(left.panes in (1, 2, 4, 6, 9) for left in layouts.written)


async def test_nothing_is_written_while_nothing_changes() -> None:
    layouts = Remembering(Layout(places=("s1", "s2"), current="s1"))
    app, _, _ = workstation(crowd(4), layouts=layouts)
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)
        fleet_of(app).show_panes()
        assert layouts.written == []
        await press(pilot, "plus")
        assert [layout.panes for layout in layouts.written] == [4]


# How long it takes


async def test_one_terminal_is_opened_in_a_turn_the_current_one_first() -> None:
    """Opening one takes some milliseconds; nine at once would be seen and felt."""
    app, _, terminals = workstation(crowd(9), layouts=Remembering(Layout(panes=9, current="s5")))
    make, opened = terminals.view, list[tuple[int, str]]()
    turn, done = 0, False

    def view(session_id: str) -> Widget:
        opened.append((turn, session_id))
        return make(session_id)

    def count() -> None:
        nonlocal turn
        turn += 1
        if not done:
            loop.call_soon(count)

    loop = asyncio.get_running_loop()
    loop.call_soon(count)
    terminals.view = view  # type: ignore[method-assign]
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: len(opened) == 9)
        done = True
        turns = [at for at, _ in opened]
        assert len(turns) == len(set(turns))
        assert opened[0][1] == "s5"
        assert shown(app) == ALL
