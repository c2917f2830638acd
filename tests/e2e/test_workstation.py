"""The whole path on the screen: start, watch, review, reject one hunk, merge, compare bytes.

Once through a real terminal (tmux), as a person would, and once through Textual's pilot.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from app.services.local import LocalFleet
from app.ui.app import ClocheApp
from app.ui.dialogs import MergedDialog, MergeDialog, NewSessionDialog
from app.ui.live_terminals import LiveTerminals
from app.ui.review_screen import ReviewScreen
from tests.e2e.sessions import LAUNCHER, Tree, World, tree
from tests.e2e.tmux import TmuxTerminal
from themes.palette import DEFAULT, builtin_palettes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from textual.pilot import Pilot


pytestmark = pytest.mark.vm

REMARK = "# reviewed by the demo agent ({})\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder where the demo finds one text file to edit in three places."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 41)))
    return folder


def expected(before: Tree) -> Tree:
    """What the folder must be when the second of the three hunks of a.py was rejected."""
    mode, content = before["a.py"]
    lines = content.decode().splitlines(keepends=True)
    return {
        "a.py": (mode, "".join([lines[0], REMARK.format(1), *lines[1:], REMARK.format(3)]).encode())
    }


@pytest.mark.parametrize(("columns", "rows"), [(120, 40), (80, 24)])
def test_a_person_at_a_terminal(
    world: World, project: Path, tmp_path: Path, columns: int, rows: int
) -> None:
    before = tree(project)
    argv = [sys.executable, "-P", str(LAUNCHER)]
    with TmuxTerminal(tmp_path, argv, world.environment, columns, rows, project) as terminal:
        terminal.until("n new")
        terminal.keys("n")
        terminal.until("New session")
        terminal.keys("Down")
        terminal.until("▸ demo")
        terminal.keys("Enter")
        terminal.until("demo at work in this workspace", 90)
        session = world.json("ps")["sessions"][0]["id"]
        world.wait_for(session, "agent_state", "done", seconds=120)
        terminal.until("✓")
        terminal.keys("r")
        terminal.until("hunks")
        press_until(terminal, "}", "3 open")
        press_until(terminal, "]", "hunk 2 of 3")
        terminal.keys("x")
        terminal.until("✗ 1 rejected" if columns > 100 else "✗")
        press_until(terminal, "[", "hunk 1 of 3")
        terminal.keys("Space")
        press_until(terminal, "]", "hunk 3 of 3")
        terminal.keys("Space")
        terminal.keys("M")
        terminal.until("Merge into")
        assert tree(project) == before
        terminal.keys("y")
        terminal.until("a.py")
        terminal.until(lambda _: tree(project) == expected(before))
        terminal.keys("Escape")
        terminal.until("takes the merge back")
        terminal.keys("T")
        terminal.until("Take the merge back?")
        terminal.keys("y")
        terminal.until("Restored 1 file")
        assert tree(project) == before
        terminal.keys("q")
        terminal.until("n new")
        terminal.keys("q")
        terminal.until_ended()
    assert world.shown(session)["state"] == "running"
    with TmuxTerminal(tmp_path, argv, world.environment, columns, rows, project) as terminal:
        terminal.until("demo")


def press_until(terminal: TmuxTerminal, key: str, wanted: str) -> None:
    """Press a key until the screen says `wanted`, a dozen times at most."""
    for _ in range(12):
        if wanted in terminal.settled():
            return
        terminal.keys(key)
    raise AssertionError(f"{wanted!r} was not reached:\n{terminal.screen()}")


async def until(pilot: Pilot[None], condition: Callable[[], bool], within_s: float = 120) -> None:
    """Let the application work until `condition` holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while not condition():
        assert loop.time() < deadline, "the application did not get there"
        await pilot.pause(0.05)


def decisions(app: ClocheApp) -> list[str]:
    """What the keeper says of the hunks of a.py, as the review screen got it."""
    screen = app.screen
    if not isinstance(screen, ReviewScreen) or screen.changes is None:
        return []
    return [h.decision for file in screen.changes.files if file.path == "a.py" for h in file.hunks]


async def test_the_same_through_the_pilot(
    world: World, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in world.environment.items():
        monkeypatch.setenv(name, value)
    before = tree(project)
    palette = builtin_palettes()[DEFAULT]
    app = ClocheApp(project, LocalFleet(world.paths), LiveTerminals(world.paths, palette))
    async with app.run_test(size=(200, 60)) as pilot:
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewSessionDialog))
        await pilot.press("down", "enter")
        await until(pilot, lambda: any(info.agent_state == "done" for info in app.sessions))
        await pilot.press("r")
        await until(pilot, lambda: decisions(app) == ["open", "open", "open"])
        screen = app.screen
        assert isinstance(screen, ReviewScreen)
        while screen.path != "a.py":
            await pilot.press("right_curly_bracket")
            await pilot.pause()
        await until(pilot, lambda: screen.loaded is not None and screen.loaded.path == "a.py")
        await until(pilot, lambda: screen.unit_index() == 0)
        await pilot.press("space")
        await until(pilot, lambda: decisions(app) == ["accepted", "open", "open"])
        await until(pilot, lambda: screen.unit_index() == 1)
        await pilot.press("x")
        await until(pilot, lambda: decisions(app) == ["accepted", "rejected", "open"])
        await until(pilot, lambda: screen.unit_index() == 2)
        await pilot.press("space")
        await until(pilot, lambda: decisions(app) == ["accepted", "rejected", "accepted"])
        assert tree(project) == before
        await pilot.press("M")
        await until(pilot, lambda: isinstance(app.screen, MergeDialog))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, MergedDialog))
        assert tree(project) == expected(before)
        await pilot.press("t")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("y")
        await until(pilot, lambda: tree(project) == before)
