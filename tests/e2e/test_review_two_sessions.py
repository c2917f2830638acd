"""Two agents on one repository: both reviewed, overlapping hunks merged one after the other."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e.sessions import World, store_of, tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm

CALC = "def area(w, h):\n    return w * h\n\n\ndef name():\n    return 'calc'\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a committed repository of one module."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "calc.py").write_text(CALC)
    git = ["git", "-C", str(folder), "-c", "user.name=dev", "-c", "user.email=dev@host.example"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    return folder


@pytest.fixture
def world(tmp_path: Path, guest_image: ImageSet) -> Iterator[World]:
    """Return a user's world; its sessions end with the test."""
    made = World(tmp_path / "w", store_of(guest_image))
    try:
        yield made
    finally:
        made.close()


def worked(world: World, workspace: Path, script: str) -> str:
    """Start a session, let its agent work, and return its id."""
    session: str = world.json("run", "shell", "--detach", "--workspace", str(workspace))["session"]
    world.wait_for(session, "agent_state", "working", "idle")
    done = world.run("exec", session, "--", "sh", "-c", f"cd /workspace && {script}")
    assert done.status == 0, done
    return session


def test_two_sessions_meet_in_one_line_and_both_come_home(world: World, workspace: Path) -> None:
    one = worked(world, workspace, "sed -i 's/w \\* h/abs(w * h)/' calc.py && echo one > one.txt")
    two = worked(world, workspace, "sed -i 's/w \\* h/w * h * 2/; s/calc/two/' calc.py; rm -f nope")
    before = tree(workspace)
    assert [file["path"] for file in world.json("changes", one)["files"]] == ["calc.py", "one.txt"]
    (both,) = world.json("changes", two)["files"]
    assert (both["path"], len(both["hunks"])) == ("calc.py", 1)

    first = world.json("merge", one, "--accept", "*")
    assert first["written"] == ["calc.py", "one.txt"]
    middle = tree(workspace)

    refused = world.json("merge", two, "--accept", "*", status=3)
    assert (refused["written"], refused["conflicts"]) == ([], ["calc.py"])
    assert tree(workspace) == middle

    solved = world.json("merge", two, "--accept", "*", "--resolve", "calc.py=agent")
    assert solved["written"] == ["calc.py"]
    found = (workspace / "calc.py").read_text()
    assert found == CALC.replace("w * h", "w * h * 2").replace("calc", "two")

    world.json("undo", solved["merge"])
    assert tree(workspace) == middle
    world.json("undo", first["merge"])
    assert tree(workspace) == before
