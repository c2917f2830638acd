"""A review from the shell with a real agent's machine: requests, conflicts, commits."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.sessions import World, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm

NUMBERS = "".join(f"{number}\n" for number in range(1, 31))
WHO = "git -c user.name=Agent -c user.email=agent@agent.example"


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Me", "-c", "user.email=me@me.example")
    done = subprocess.run(
        ("git", *who, *words), cwd=folder, capture_output=True, check=True, text=True
    )
    return done.stdout


class Lab:
    """A running session on a repository."""

    def __init__(self, world: World, session: str, workspace: Path) -> None:
        self.world = world
        self.session = session
        self.workspace = workspace

    def sh(self, script: str) -> str:
        done = self.world.run("exec", self.session, "--", "sh", "-c", f"set -e; {script}")
        assert done.status == 0, done
        return done.stdout.decode()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, guest_image: ImageSet) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("review")
    workspace = folder / "project"
    workspace.mkdir()
    git(workspace, "init", "-q", "-b", "main")
    (workspace / "a.txt").write_text(NUMBERS)
    git(workspace, "add", ".")
    git(workspace, "commit", "-q", "-m", "first")
    world = World(folder / "w", store_of(guest_image))
    try:
        words = ("run", "shell", "--detach", "--workspace", str(workspace))
        session = world.json(*words)["session"]
        world.wait_for(session, "agent_state", "working", "idle")
        yield Lab(world, session, workspace)
    finally:
        world.close()


def test_a_review_goes_from_comments_to_a_solved_conflict(lab: Lab) -> None:
    lab.sh("sed -i 's/^5$/five/; s/^20$/twenty/' a.txt; echo new > new.txt")
    world, session = lab.world, lab.session
    made = world.json("comment", session, "a.txt:5", "keep digits")["comment"]
    assert (made["start"], made["quote"], bool(made["hunk"])) == (5, "five\n", True)
    world.json("merge", session, "--reject", "new.txt", "--hunk", made["hunk"])
    assert (lab.workspace / "a.txt").read_text() == NUMBERS.replace("\n5\n", "\nfive\n")
    state = world.json("review", session, status=3)
    assert (state["open"], state["accepted"], state["merged"], state["rejected"]) == (1, 1, 1, 1)
    text = world.json("review", session, "--export", "prompt")["text"]
    assert "keep digits" in text
    assert "Merged into my workspace; build on it and leave it as it is:\n- a.txt (1 of 2" in text

    world.json("send", session, "cat > /tmp/heard")
    world.json("review", session, "--send")
    until = time.monotonic() + 60
    while "Merged into my workspace" not in lab.sh("cat /tmp/heard || true"):
        assert time.monotonic() < until
    assert world.json("review", session, "--export", "prompt", status=1)["error"]["code"] == (
        "nothing-to-ask"
    )

    mine = (lab.workspace / "a.txt").read_text().replace("\n20\n", "\nmine\n")
    (lab.workspace / "a.txt").write_text(mine)
    stuck = world.json("merge", session, "--accept", "a.txt", status=3)
    assert (stuck["conflicts"], stuck["reasons"][0]["reason"]) == (
        ["a.txt"],
        "you changed the same lines",
    )
    world.json("merge", session, "--resolve", "a.txt=both")
    both = mine.replace("\nmine\n", "\nmine\ntwenty\n")
    assert (lab.workspace / "a.txt").read_text() == both
    assert world.json("review", session)["conflicts"] == 0
    patch = world.run("review", session, "--export", "patch").stdout
    git(lab.workspace, "stash", "-q")
    subprocess.run(("git", "apply", "-"), cwd=lab.workspace, input=patch, check=True)
    twenty = NUMBERS.replace("\n5\n", "\nfive\n").replace("\n20\n", "\ntwenty\n")
    assert (lab.workspace / "a.txt").read_text() == twenty


def test_commits_of_the_agent_become_refs(lab: Lab) -> None:
    world, session = lab.world, lab.session
    assert world.json("commits", session)["commits"] == []
    lab.sh(f"echo TOKEN=1 > .env; git add -f .env new.txt; {WHO} commit -q -m 'by the agent'")
    found = world.json("commits", session)
    (commit,) = found["commits"]
    assert (commit["message"], commit["withheld"]) == ("by the agent\n", [".env"])
    assert {file["path"] for file in commit["files"]} == {".env", "new.txt"}
    assert "refs/cloche" not in git(lab.workspace, "for-each-ref")
    one = world.json("diff", session, "--commit", commit["id"][:8])
    assert one["commit"] == commit["id"]
    assert {file["path"] for file in one["files"]} == {".env", "new.txt"}
    assert "+TOKEN=1" in one["files"][0]["lines"]
    assert world.json("diff", session, ".env", "--commit", "main")["base"] == one["base"]
    branches = world.json("commits", session, "--fetch")["branches"]
    ref = f"refs/cloche/{session}/main"
    assert [branch["ref"] for branch in branches] == [ref]
    assert git(lab.workspace, "show", f"{ref}:new.txt") == "new\n"
    assert git(lab.workspace, "log", "-1", "--format=%an", ref) == "Agent\n"
    assert world.json("commits", session)["commits"] == [], "they are here now"
    hostile = "mkdir -p /tmp/t; cd /tmp/t; git init -q; echo > x; B=$(git hash-object -w x); "
    hostile += "T=$(printf '100644 blob %s\\tconfig\\n' $B | git mktree); "
    hostile += "R=$(printf '040000 tree %s\\t.git\\n' $T | git mktree); "
    hostile += f"C=$({WHO} commit-tree -m trap $R); cd /workspace; "
    hostile += "git fetch -q /tmp/t $C 2>/dev/null || cp -r /tmp/t/.git/objects/* .git/objects/; "
    hostile += "git update-ref refs/heads/trap $C"
    lab.sh(hostile)
    refused = world.json("commits", session, status=1)["error"]
    assert refused["code"] == "bundle-refused"
    assert "refs/cloche" in git(lab.workspace, "for-each-ref")
    assert "trap" not in git(lab.workspace, "for-each-ref")
