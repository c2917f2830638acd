"""Keys typed in one breath go where a person means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import events

from app.ui.dialogs import NewSessionDialog
from tests.doubles.pilots import fleet_of, settle
from tests.doubles.scenes import workstation

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


SIZE = (120, 36)


async def burst(pilot: Pilot[None], *keys: str) -> None:
    """Put keys into the application's queue at once, as a driver does that read them at once."""
    for key in keys:
        pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
    await settle(pilot)


async def test_f12_and_q_leave_the_pane_and_then_cloche() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await burst(pilot, "enter")
        await burst(pilot, "a", "f12", "q")
    assert terminals.keys("s1") == ["a"]
    assert app.return_code == 0


async def test_the_prefix_and_its_key_and_what_follows_it() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await burst(pilot, "enter", "a", "ctrl+g", "z", "b", "ctrl+g", "ctrl+g", "c")
        assert terminals.keys("s1") == ["a", "b", "ctrl+g", "c"]
        assert fleet_of(app).zoomed


async def test_a_number_and_text_go_into_that_session() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await burst(pilot, "alt+2", *"ls", "enter", "alt+1", *"sd", "f12", "j", "j", "slash", *"do")
        assert terminals.keys("s2") == ["l", "s", "enter"]
        assert terminals.keys("s1") == ["s", "d"]
        assert fleet_of(app).rail.current_key == "s3"
        assert not fleet_of(app).asking


async def test_enter_and_text_go_into_the_session_under_the_cursor() -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await burst(pilot, "j", "enter", *"s y", "q")
        assert terminals.keys("s2") == ["s", " ", "y", "q"]
        assert fleet.stopped == []
        assert app.is_running


async def test_a_paste_waits_for_the_keys_before_it() -> None:
    app, _, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        feed = terminals.feeds["s2"]
        app.post_message(events.Key("alt+2", None))
        app.post_message(events.Paste("make test\n"))
        app.post_message(events.Key("f12", None))
        app.post_message(events.Key("z", "z"))
        await settle(pilot)
        assert feed.told("paste") == ["make test\n"]
        assert fleet_of(app).zoomed


async def test_a_dialog_gets_the_keys_that_follow_the_one_that_opened_it(tmp_path: Path) -> None:
    app, fleet, _ = workstation()
    app.workspace = tmp_path
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await burst(pilot, "n", "down", "enter")
        assert [started[0] for started in fleet.started] == ["shell"]
        await burst(pilot, "n", "escape", "n")
        assert isinstance(app.screen, NewSessionDialog)


async def test_keys_for_an_agent_whose_machine_ends_do_nothing_here() -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await burst(pilot, "enter", "a")
        fleet.update("s1", state="stopped")
        await settle(pilot)
        await burst(pilot, "s", "d", "y", "q", "n")
        assert terminals.keys("s1") == ["a"]
        assert app.screen is fleet_of(app)
        assert not fleet_of(app).asking
        assert fleet.removed == []
        notice = fleet_of(app).notice
        assert notice is not None
        assert "fix-parser" in notice.text
