"""Two agents on one repository: both reviewed, overlapping hunks merged one after the other."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e.sessions import World, store_of, tree
from tests.e2e.tmux import TmuxTerminal

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


def worked(world: World, workspace: Path, name: str, script: str) -> str:
    """Start a session, let its agent work and commit, and return its id."""
    words = ("run", "shell", "--detach", "--name", name, "--workspace", str(workspace))
    session: str = world.json(*words)["session"]
    world.wait_for(session, "agent_state", "working", "idle")
    who = "git -c user.name=Agent -c user.email=agent@guest.example"
    whole = f"cd /workspace && {script} && git add -A && {who} commit -qm 'by the {name} agent'"
    done = world.run("exec", session, "--", "sh", "-c", whole)
    assert done.status == 0, done
    return session


def review(terminal: TmuxTerminal, name: str) -> None:
    """Open the review of a session from the fleet."""
    for _ in range(3):
        terminal.keys("r")
        if f"\n review  {name} " in terminal.until("\n review  "):
            terminal.until("hunk 1 of")
            return
        terminal.keys("q")
        terminal.until("n new")
        terminal.keys("j")
        terminal.settled()
    raise AssertionError(f"no review of {name}:\n{terminal.screen()}")


def merge(terminal: TmuxTerminal, merged: str) -> None:
    """Write what the summary of the merge shows, and leave the review."""
    terminal.keys("y")
    terminal.until(merged)
    terminal.keys("Enter")
    terminal.until("takes the merge back")
    terminal.keys("q")
    terminal.until("n new")


def test_two_sessions_meet_in_one_line_and_both_come_home(
    world: World, workspace: Path, tmp_path: Path
) -> None:
    one = worked(
        world, workspace, "first", "sed -i 's/w \\* h/abs(w * h)/' calc.py && echo one > one.txt"
    )
    two = worked(world, workspace, "second", "sed -i 's/w \\* h/w * h * 2/; s/calc/two/' calc.py")
    before = tree(workspace)
    assert [file["path"] for file in world.json("changes", one)["files"]] == ["calc.py", "one.txt"]
    (both,) = world.json("changes", two)["files"]
    assert (both["path"], len(both["hunks"])) == ("calc.py", 1)

    argv = world.words()
    with TmuxTerminal(tmp_path, argv, world.environment, 120, 40, workspace) as terminal:
        terminal.until("n new")
        review(terminal, "first")
        terminal.keys("+")
        terminal.until("Accepted 2 hunks in 2 files")
        terminal.keys("M")
        terminal.until("Merge into the workspace")
        merge(terminal, "Merged 2 files")
        middle = tree(workspace)
        assert middle["calc.py"][1] == CALC.replace("w * h", "abs(w * h)").encode()

        review(terminal, "second")
        terminal.keys("L")
        terminal.until("by the second agent", 120)
        terminal.keys("q")
        terminal.until("\n review  second ")
        terminal.keys("+")
        terminal.until("1 conflict")
        terminal.keys("M")
        terminal.until("solve the conflicts")
        assert tree(workspace) == middle
        terminal.keys("C")
        terminal.until("Conflict 1 of 1")
        terminal.keys("2")
        terminal.until("all solved: M shows the merge")
        terminal.keys("M")
        terminal.until("Merge into the workspace")
        merge(terminal, "Merged 1 file")
        found = (workspace / "calc.py").read_text()
        assert found == CALC.replace("w * h", "w * h * 2").replace("calc", "two")
        terminal.keys("q")
        terminal.until_ended()

    world.json("undo", world.json("changes", two)["last_merge"])
    assert tree(workspace) == middle
    world.json("undo", world.json("changes", one)["last_merge"])
    assert tree(workspace) == before
