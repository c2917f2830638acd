"""Sessions that share too little memory: they wait their turn, in real machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.sessions import World

pytestmark = pytest.mark.vm

MACHINES = "defaults: {memory: 384, vcpus: 1}\n"


def test_a_start_waits_for_memory_and_goes_on_when_there_is_some(
    world: World, tmp_path: Path
) -> None:
    world.configure("machine: {pool: 600}\n", MACHINES)
    project = tmp_path / "project"
    project.mkdir()
    run = ("run", "shell", "--detach", "--workspace", str(project))
    first = world.json(*run)["session"]
    refused = world.json(*run, "--no-queue", status=5)["error"]
    assert refused["code"] == "no-memory"
    assert "needs 384 MiB, and 216 MiB are left" in refused["message"]
    assert [one["id"] for one in world.json("ps")["sessions"]] == [first]

    second = world.json(*run)["session"]
    world.wait_for(second, "waits", "memory")
    shown = world.shown(second)
    assert (shown["state"], shown["waits"]) == ("starting", "memory")
    assert shown["message"] == "Waits for memory: 192 MiB free of 384 needed."
    assert b"waits for memory" in world.run("ps").stdout
    world.wait_for(first, "state", "running")
    assert world.state(second).machine is None

    world.kill_machine(first)  # nobody has to give its memory back
    world.wait_for(second, "state", "running")
    assert world.shown(second)["message"] == ""
    world.wait_for(first, "state", "lost")
    refused = world.json("resume", first, "--no-queue", status=5)["error"]
    assert refused["code"] == "no-memory"
    assert world.state(first).state == "lost"  # a refusal changes nothing
    assert world.json("stop", second)["state"] == "stopped"
    assert world.json("resume", first)["state"] == "running"
