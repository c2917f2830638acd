"""The keys that go into an agent's screen and out of it."""

from __future__ import annotations

import pytest

from app.ui.pane_stage import AT_ONCE
from tests.doubles.pilots import fleet_of, press, screen_text, settle
from tests.doubles.scenes import crowd, workstation
from widgets.key_bar import KeyBar

SIZE = (120, 36)


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


async def test_of_many_panes_that_come_back_a_few_appear_in_a_turn() -> None:
    app, _, _ = workstation(crowd(9))
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        await press(pilot, "plus", "plus", "plus", "z")
        screen = fleet_of(app)

        def seen() -> int:
            return sum(slot.display for slot in screen.slots)

        assert seen() == 1
        screen.set_zoom(on=False)
        screen.show_panes()
        assert seen() == 1 + AT_ONCE
        await settle(pilot)
        assert seen() == 9


async def test_on_80_columns_copy_mode_and_search_say_how_to_end_them() -> None:
    app, _, _ = workstation()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "ctrl+g", "left_square_bracket")
        shown = screen_text(pilot).splitlines()[-1]
        for hint in ("v select", "y copy", "/ search", "q leave", "R block"):
            assert hint in shown
        await press(pilot, "slash")
        shown = screen_text(pilot).splitlines()[-1]
        for hint in ("enter keep", "esc end", "up match above", "down match below"):
            assert hint in shown
        assert "q leave" not in shown
        await press(pilot, "escape", "q")
        assert "keys go to" in screen_text(pilot).splitlines()[-1]
