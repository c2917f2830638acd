"""How many panes there are, which sessions they show, and where they stand."""

from __future__ import annotations

import pytest
from textual.geometry import Size

from tests.doubles.fleet import ALL, SMALL, USUAL, WIDE, fleet_of, owner, pane, shown, with_panes
from tests.doubles.pilots import press, settle, until
from tests.doubles.scenes import crowd, workstation

# How many


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

    terminals.view = view  # type: ignore[method-assign, assignment]  # it counts and passes on
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


async def test_behind_the_review_nothing_is_drawn_and_behind_a_dialog_it_is() -> None:
    app, _, terminals = workstation(crowd(3))
    async with app.run_test(size=USUAL) as pilot:
        await settle(pilot)

        def rates() -> list[object]:
            return [terminals.feeds[name].told("rate")[-1] for name in ("s1", "s2")]

        await press(pilot, "2")
        assert rates() == ["visible", "focused"]
        await press(pilot, "ctrl+g", "question_mark")
        assert rates() == ["visible", "focused"]
        await press(pilot, "escape", "ctrl+g", "r")
        assert rates() == ["hidden", "hidden"]
        await press(pilot, "q")
        assert rates() == ["visible", "focused"]


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
