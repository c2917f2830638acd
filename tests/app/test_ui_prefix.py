"""Another prefix, and direct keys that belong to the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from app.paths import Paths
from app.ui.app import ClocheApp
from app.ui.keys import key_groups
from app.ui.live_terminals import LiveTerminals
from tests.doubles.keeper import FakeFleet
from tests.doubles.pilots import fleet_of, press, screen_text, settle
from tests.doubles.scenes import WORKSPACE, sessions
from tests.doubles.terminals import StillTerminals
from themes.palette import builtin_palettes
from widgets.ask_strip import AskStrip
from widgets.key_bar import KeyBar
from widgets.line_bar import LineBar
from widgets.terminal import DEFAULT_PASSTHROUGH, TerminalView

if TYPE_CHECKING:
    from pathlib import Path

SIZE = (120, 36)
DIRECT = sorted(DEFAULT_PASSTHROUGH)


def workstation(prefix: str, *, direct: bool = True) -> tuple[ClocheApp, StillTerminals]:
    terminals = StillTerminals(
        prefix=prefix, passthrough=DEFAULT_PASSTHROUGH if direct else frozenset[str]()
    )
    fleet = FakeFleet(sessions())
    app = ClocheApp(WORKSPACE, fleet, terminals, prefix=prefix, direct_keys=direct)
    app.strict = True
    return app, terminals


@pytest.mark.parametrize(
    ("key", "name"), [("ctrl+a", "ctrl+a"), ("ctrl+right_square_bracket", "ctrl+]")]
)
async def test_the_chosen_prefix_works_and_is_shown(key: str, name: str) -> None:
    app, terminals = workstation(key)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        bar = app.screen.query_one(KeyBar)
        assert [hint.key for hint in bar.hints] == [name, "f12", "alt+1-9"]
        await press(pilot, key)
        assert bar.lead == (name, "warning")
        await press(pilot, "z")
        assert fleet_of(app).zoomed
        await press(pilot, key, key, "ctrl+g")
        assert terminals.keys("s1") == [key, "ctrl+g"]
        await press(pilot, key, "X")
        notice = fleet_of(app).notice
        assert notice is not None
        assert notice.text == f"{name} X does nothing here."
        assert notice.hint == f"{name} ? shows all keys"


async def test_it_works_outside_of_a_pane_and_the_usual_one_does_nothing_there() -> None:
    app, _ = workstation("ctrl+a")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "ctrl+g")
        assert not fleet_of(app).prefix_is_on
        await press(pilot, "ctrl+a")
        assert fleet_of(app).prefix_is_on
        await press(pilot, "z")
        assert fleet_of(app).zoomed


async def test_the_help_and_the_strip_of_questions_show_it() -> None:
    app, _ = workstation("ctrl+a")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        assert vars(app.screen.query_one(AskStrip))["_opener"] == "ctrl+a e"
        await press(pilot, "question_mark")
        assert "ctrl+g" not in screen_text(pilot)
    groups = key_groups("ctrl+]")
    shown = [
        group.title + "".join(key for row in group.rows for key in row.keys) for group in groups
    ]
    assert not any("ctrl+g" in text for text in shown)
    assert sum("ctrl+]" in text for text in shown) == 2


async def test_without_direct_keys_they_go_to_the_agent() -> None:
    app, terminals = workstation("ctrl+g", direct=False)
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        bar = app.screen.query_one(KeyBar)
        assert [hint.key for hint in bar.hints] == ["ctrl+g", "ctrl+g f12", "ctrl+g 1-9"]
        await press(pilot, *DIRECT)
        assert terminals.keys("s1") == DIRECT
        await press(pilot, "ctrl+g", "2")
        assert fleet_of(app).rail.current_key == "s2"
        await press(pilot, "ctrl+g", "f12")
        assert not isinstance(app.focused, TerminalView)


async def test_live_terminals_hand_it_to_their_views(tmp_path: Path) -> None:
    paths = Paths(*[tmp_path] * 5)
    palette = builtin_palettes()["cloche-dark"]
    terminals = LiveTerminals(paths, palette, prefix="ctrl+a", direct_keys=False)
    view = terminals.view("s1")
    assert isinstance(view, TerminalView)
    assert not view.is_guests("ctrl+a")
    assert all(view.is_guests(key) for key in ["ctrl+g", *DIRECT])
    await terminals.close()


async def test_ctrl_h_erases_in_our_own_lines_and_is_the_agents_elsewhere() -> None:
    app, terminals = workstation("ctrl+g")
    async with app.run_test(size=SIZE) as pilot:
        await settle(pilot)
        await press(pilot, "slash", "a", "b", "ctrl+h")
        assert fleet_of(app).query_one(LineBar).query_one(Input).value == "a"
        await press(pilot, "escape", "enter", "ctrl+h")
        assert terminals.keys("s1") == ["ctrl+h"]
