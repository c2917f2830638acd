"""`kill -9` of the screen: everything else goes on, and the next screen finds it."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.sessions import LAUNCHER, World, tree
from tests.e2e.tmux import TmuxTerminal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm


def test_a_killed_screen_takes_nothing_along(world: World, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "a.txt").write_text("a\n")
    before = tree(workspace)
    words = ("run", "shell", "--detach", "--name", "survivor", "--workspace", str(workspace))
    session = world.json(*words)["session"]
    world.wait_for(session, "state", "running")
    machine, keeper = world.state(session).machine, world.keeper(session)
    screen = [sys.executable, "-P", str(LAUNCHER)]
    with TmuxTerminal(tmp_path, screen, world.environment, 120, 40, workspace) as terminal:
        terminal.until("survivor")
        assert world.run("exec", session, "--", "sh", "-c", "echo b > b.txt").status == 0
        world.wait_for(session, "generation", 2)
        os.kill(terminal.process(), signal.SIGKILL)
        terminal.until_ended()

    assert world.shown(session)["state"] == "running"
    assert (world.state(session).machine, world.keeper(session)) == (machine, keeper)
    assert [file["path"] for file in world.json("changes", session)["files"]] == ["b.txt"]
    assert tree(workspace) == before
    with TmuxTerminal(tmp_path, screen, world.environment, 120, 40, workspace) as terminal:
        terminal.until("survivor")
    assert world.json("rm", "--force", session)["ok"]
