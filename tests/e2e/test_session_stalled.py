"""An agent whose command stands still in front of it is shown as stalled, until it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.sessions import World

pytestmark = pytest.mark.vm

CONFIG = "agents:\n  mine:\n    command: [bash, -l]\n    stalled_s: 15\n"


def test_a_command_that_stands_still_is_told_and_its_end(world: World, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    world.configure(CONFIG)
    session = world.json("run", "mine", "--detach", "--workspace", str(workspace))["session"]
    world.wait_for(session, "agent_state", "idle")

    world.json("send", session, "sleep 86399")
    world.wait_for(session, "agent_state", "stalled")
    assert world.shown(session)["status"] == "stalled"
    journal = (world.paths.session(session) / "journal.jsonl").read_text()
    assert "stalled" in journal

    killed = world.run("exec", session, "--", "sh", "-c", "kill $(pidof sleep)")
    assert killed.status == 0
    world.wait_for(session, "agent_state", "working", "idle")
    world.wait_for(session, "agent_state", "idle")
