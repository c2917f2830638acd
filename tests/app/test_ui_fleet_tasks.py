from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
import pytest
from textual.widgets import Input, Static

from app.errors import AppError
from app.ui.dialogs import NewSessionDialog
from app.ui.fleet_screen import FleetScreen
from tests.doubles.keeper import FakeSession, session_info
from tests.doubles.pilots import fleet_of, press, press_early, press_later, settle, until
from tests.doubles.scenes import workstation
from widgets.agent_list import AgentList, AgentRow
from widgets.placard import Placard

if TYPE_CHECKING:
    from pathlib import Path


SIZE = (120, 36)


async def test_stop_asks_in_numbers_and_only_y_stops() -> None:
    app, fleet, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "s")
        notice = fleet_of(app).notice
        assert notice is not None
        assert "+42 −7 in 3 files" in notice.text
        await press(pilot, "s")
        assert fleet.stopped == []
        assert not fleet_of(app).asking
        await press(pilot, "s", "y")
        assert fleet.stopped == ["s1"]
        await until(pilot, lambda: fleet_of(app).slots[0].view is None)
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.level == "done"


async def test_stop_from_inside_a_pane_takes_the_answer_before_the_agent() -> None:
    app, fleet, terminals = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "ctrl+g", "s", "y")
        assert fleet.stopped == ["s1"]
        assert terminals.keys("s1") == []


async def test_delete_needs_a_stopped_session_and_says_what_is_lost() -> None:
    app, fleet, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "ctrl+g", "d")
        assert fleet.removed == []
        await press(pilot, "j", "j", "d")
        notice = fleet_of(app).notice
        assert notice is not None
        assert "+210 −34 in 12 files" in notice.text
        await press_early(pilot, "y")
        assert fleet.removed == [], "typed before the question can have been read"
        assert fleet_of(app).asking
        await press_later(pilot, "d")
        assert fleet.removed == []
        await press(pilot, "d")
        await press_later(pilot, "y")
        assert fleet.removed == ["s3"]
        await until(pilot, lambda: fleet_of(app).current is not None)
        assert "s3" not in [info.id for info in app.sessions]


async def test_resume_boots_a_stopped_session() -> None:
    app, fleet, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "R")
        assert fleet.resumed == []
        await press(pilot, "j", "j", "R")
        assert fleet.resumed == ["s3"]


async def test_resume_starts_an_agent_again_that_ended_in_a_machine_that_runs() -> None:
    ended = msgspec.structs.replace(
        session_info("s1", "n", "demo", agent_state="done"), exit_code=0
    )
    app, fleet, _ = workstation([FakeSession(ended)])
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "R")
        assert fleet.resumed == ["s1"]


async def test_a_new_session_is_started_and_gets_the_cursor(tmp_path: Path) -> None:
    app, fleet, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "n")
        assert isinstance(app.screen, NewSessionDialog)
        app.screen.query_one("#workspace", Input).value = str(tmp_path)
        await press(pilot, "j", "tab", "tab", "m", "e", "enter")
        assert fleet.started == [("shell", tmp_path, "me")]
        await until(pilot, lambda: fleet_of(app).rail.current_key == "new1")


async def test_a_folder_that_is_not_there_is_refused_in_the_dialog() -> None:
    app, fleet, _ = workstation()
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "n", "tab", "x", "enter")
        assert isinstance(app.screen, NewSessionDialog)
        assert fleet.started == []
        await press(pilot, "escape")
        assert isinstance(app.screen, FleetScreen)


async def test_a_start_that_fails_says_why_in_the_dialog_and_keeps_what_was_written(
    tmp_path: Path,
) -> None:
    app, fleet, _ = workstation()
    app.workspace = tmp_path
    fleet.refuse = AppError("image-missing", "There is no base image.", "cloche image build base")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "n", "j", "tab", "tab", "m", "e", "enter")
        dialog = app.screen
        assert isinstance(dialog, NewSessionDialog)
        said = [dialog.query_one(f"#dialog-{part}", Static).content for part in ("error", "hint")]
        assert said == ["There is no base image.", "cloche image build base"]
        assert fleet_of(app).notice is None
        await press(pilot, "s")  # goes into the name, not to the fleet below
        fleet.refuse = None
        await press(pilot, "enter")
        assert fleet.started == [("shell", tmp_path, "mes")]
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))


async def test_a_dialog_that_was_left_while_it_starts_is_followed_by_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, fleet, _ = workstation()
    app.workspace = tmp_path
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def start(*_: object) -> str:
        begun.set()
        await go_on.wait()
        raise AppError("image-missing", "There is no base image.", "cloche image build base")

    monkeypatch.setattr(fleet, "start", start)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewSessionDialog))
        await pilot.press("enter")
        await begun.wait()
        assert isinstance(app.screen, NewSessionDialog), "keys go nowhere else meanwhile"
        begun.clear()
        await pilot.press("enter", "escape")
        assert not begun.is_set(), "a second enter starts no second session"
        await until(pilot, lambda: isinstance(app.screen, FleetScreen))
        go_on.set()
        await until(pilot, lambda: getattr(fleet_of(app).notice, "level", "") == "error")
        notice = fleet_of(app).notice
        assert notice is not None
        assert (notice.text, notice.hint) == ("There is no base image.", "cloche image build base")


@pytest.mark.parametrize("size", [(80, 24), SIZE, (200, 60)])
async def test_an_agent_without_an_image_is_marked_on_every_screen(size: tuple[int, int]) -> None:
    app, _, _ = workstation()
    row = AgentRow("opencode", "a coding agent of which much is to be told " * 3, "no image yet")
    async with app.run_test(size=size) as pilot:
        await settle(pilot)
        await press(pilot, "n")
        listed = app.screen.query_one(AgentList)
        drawn = listed.draw_item(row, 0, listed.size.width, selected=False).text
        assert drawn.rstrip().endswith("no image yet")


async def test_the_empty_fleet_says_what_to_do_next() -> None:
    app, _, _ = workstation([])
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert app.screen.query_one("#empty", Placard).display
        assert not app.screen.query_one("#side").display
        await press(pilot, "n")
        assert isinstance(app.screen, NewSessionDialog)


@pytest.mark.parametrize(
    "key", ["enter", "r", "s", "R", "d", "z", "slash", "exclamation_mark", "alt+1", "f12", "j", "G"]
)
async def test_no_key_breaks_the_empty_fleet(key: str) -> None:
    app, _, _ = workstation([])
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, key)
        assert isinstance(app.screen, FleetScreen)


async def test_a_bug_is_a_sentence_and_the_screen_stays(tmp_path: Path) -> None:
    app, fleet, _ = workstation()
    app.workspace = tmp_path
    app.strict = False
    fleet.refuse = RuntimeError("no such thing")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "n", "enter")
        await until(pilot, lambda: fleet_of(app).notice is not None)
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text == "Cloche failed: RuntimeError: no such thing"
        assert "CLOCHE_DEBUG=1" in notice.hint
