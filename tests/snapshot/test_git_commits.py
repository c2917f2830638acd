"""What the agent's commits changed: every kind of it, hostile sizes, and git as the oracle."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from snapshot import git_commits, git_trees
from snapshot.bundle import BundleRefused
from snapshot.git_commits import Budget, CommitReader
from snapshot.git_import import Quarantine
from snapshot.git_store import OBJECT_LIMIT
from tests.snapshot.capture_helpers import git, write
from tests.snapshot.commit_world import World, pack, sha, tree

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.git_commits import CommitChange

LINES = "".join(f"line {number}\n" for number in range(40))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def change(world: World, old: str | None, new: str) -> CommitChange:
    with Quarantine(world.quarantine).reader(world.user) as reader:
        return reader.change(None if old is None else old.encode(), new.encode())


def kinds(found: CommitChange) -> dict[bytes, str]:
    return {one.file.path: one.file.kind for one in found.files}


def numbers(found: CommitChange) -> dict[bytes, tuple[int, int]]:
    return {one.file.path: (one.added, one.removed) for one in found.files if one.counted}


def test_every_kind_of_change_of_a_commit_is_told(world: World) -> None:
    before = world.commit("before", {"long.txt": LINES, "moved.txt": LINES * 2, "run.sh": "x\n"})
    git(world.agent, "mv", "moved.txt", "sub/renamed.txt")
    write(world.agent, {"sub/renamed.txt": LINES * 2 + "more\n", "photo": os.urandom(2000)})
    (world.agent / "run.sh").chmod(0o755)
    (world.agent / "link").symlink_to("a.txt")
    (world.agent / "sub" / "b.txt").unlink()
    (world.agent / "sub" / "b.txt").symlink_to("../a.txt")
    git(world.agent, "rm", "-q", "a.txt")
    after = world.commit("after", {"long.txt": LINES.replace("line 7\n", "seven\n")})
    world.take(world.bundle("main"))
    found = change(world, before, after)
    assert kinds(found) == {
        b"a.txt": "deleted",
        b"link": "added",
        b"long.txt": "modified",
        b"photo": "added",
        b"run.sh": "mode",
        b"sub/b.txt": "type",
        b"sub/renamed.txt": "renamed",
    }
    assert numbers(found)[b"long.txt"] == (1, 1)
    assert numbers(found)[b"sub/renamed.txt"] == (1, 0)
    photo = next(one for one in found.files if one.file.path == b"photo")
    assert (photo.binary, photo.tier) == (True, "held")
    assert found.left_out == 0


def test_lines_are_counted_as_git_counts_them(world: World) -> None:
    for step in range(4):
        edited = LINES.replace(f"line {step * 9}\n", f"edited {step}\n" * step)
        world.commit(f"step {step}", {"a.txt": edited, f"new{step}": "n\n" * step})
    taken = world.take(world.bundle("main"))
    for commit in taken.commits:
        said = git(world.agent, "show", "--numstat", "--format=", "--no-renames", commit.id)
        expected = {
            path.encode(): (int(added), int(removed))
            for added, removed, path in (line.split("\t") for line in said.strip().split("\n"))
        }
        counted = {file.path: (file.added or 0, file.removed or 0) for file in commit.files}
        assert counted == expected
        assert numbers(change(world, commit.parents[0], commit.id)) == expected


def test_a_root_a_merge_and_an_empty_commit(world: World) -> None:
    root = git(world.agent, "rev-parse", "HEAD").strip()
    first = world.commit("left", {"left.txt": "l\n"})
    git(world.agent, "checkout", "-q", "-b", "side", root)
    world.commit("right", {"right.txt": "r\n"})
    git(world.agent, "checkout", "-q", "main")
    git(world.agent, "merge", "-q", "--no-ff", "-m", "both", "side")
    merge = git(world.agent, "rev-parse", "HEAD").strip()
    empty = world.commit("nothing", {}, "--allow-empty")
    git(world.agent, "checkout", "-q", "--orphan", "other")
    alone = world.commit("from nothing", {"alone.txt": "a\n"})
    taken = world.take(world.bundle("main", "other"))
    assert len(next(one for one in taken.commits if one.id == merge).parents) == 2
    assert set(kinds(change(world, first, merge))) == {b"right.txt"}
    assert change(world, merge, empty).files == ()
    assert kinds(change(world, None, alone))[b"alone.txt"] == "added"
    assert set(kinds(change(world, root, empty))) == {b"left.txt", b"right.txt"}


def test_a_submodule_shows_as_the_commit_that_it_points_to(world: World) -> None:
    rows = ((0o160000, b"y", "11" * 20),)
    (commit,) = world.take(world.crafted(*rows)).commits
    (module,) = [
        one.file for one in change(world, commit.parents[0], commit.id).files if one.file.mode
    ]
    with Quarantine(world.quarantine).reader(world.user) as reader:
        content = reader.content(module.agent.encode())
    assert (module.path, content) == (b"y", b"Subproject commit " + b"11" * 20 + b"\n")


def test_what_there_is_no_room_to_read_is_listed_without_numbers(world: World) -> None:
    head = world.commit("one", {"a.txt": "A\n", "b.txt": "b\n"})
    world.take(world.bundle("main"))
    with Quarantine(world.quarantine).reader(world.user) as reader:
        poor = CommitReader(reader.store, budget=Budget(room=0))
        found = poor.change(None, head.encode())
        (commit, *_) = poor.commits([head.encode()])
    assert found.files
    assert not any(one.counted for one in found.files)
    assert {(file.added, file.removed) for file in commit.files} == {(None, None)}


def test_a_commit_of_too_many_paths_is_cut_but_a_secret_is_found_beyond(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_commits, "MAX_FILES", 5)
    head = world.commit("many", {f"f{number}": "x\n" for number in range(8)} | {"z/.env": "T=1\n"})
    (commit,) = world.take(world.bundle("main")).commits
    assert (len(commit.files), commit.cut, commit.withheld) == (5, True, (b"z/.env",))
    found = change(world, commit.parents[0], head)
    assert (len(found.files), found.left_out) == (5, 4)


def made_of(world: World, count: int) -> bytes:
    """Return a bundle of `count` commits in a row, made without a process for each."""
    parent = git(world.agent, "rev-parse", "HEAD").strip()
    lines = [f"reset refs/heads/many\nfrom {parent}\n\n"]
    for number in range(count):
        body = f"step {number}"
        lines.append(
            f"commit refs/heads/many\nauthor A <a@b.example> {number} +0000\n"
            f"committer A <a@b.example> {number} +0000\ndata {len(body)}\n{body}\n"
            f"M 100644 inline f{number % 7}\ndata {len(body)}\n{body}\n"
        )
    fast = ["git", "fast-import", "--quiet", "--force"]
    subprocess.run(fast, cwd=world.agent, input="".join(lines).encode(), check=True)
    return world.bundle("many")


def test_a_thousand_commits_are_listed_and_one_more_is_refused(world: World) -> None:
    taken = world.take(made_of(world, git_commits.MAX_COMMITS))
    assert len(taken.commits) == git_commits.MAX_COMMITS
    assert taken.commits[0].message.startswith(b"step 999")
    with pytest.raises(BundleRefused, match="more than 1000"):
        world.take(made_of(world, git_commits.MAX_COMMITS + 1))


def test_a_content_that_cannot_be_read_leaves_the_others_readable(world: World) -> None:
    head = world.commit("large", {"big": "x" * (OBJECT_LIMIT + 1), "small": "s\n"})
    world.take(world.bundle("main"))
    found = change(world, None, head)
    assert {one.file.path: one.counted for one in found.files}[b"big"] is False
    assert numbers(found)[b"small"] == (1, 0)
    with Quarantine(world.quarantine).reader(world.user) as reader:
        big = next(one.file for one in found.files if one.file.path == b"big")
        with pytest.raises(BundleRefused):
            reader.content(big.agent.encode())
        with pytest.raises(BundleRefused):
            reader.content(sha("tree", tree()).encode())


def with_head(world: World, parents: int, more: bytes = b"") -> bytes:
    """Return a bundle with one commit that has so many parents, and more lines in its head."""
    parent = git(world.workspace, "rev-parse", "HEAD").strip()
    root = tree()
    body = b"tree %b\n" % sha("tree", root).encode() + b"parent %b\n" % parent.encode() * parents
    body += b"author A <a@b.example> 1 +0000\ncommitter A <a@b.example> 1 +0000\n"
    body += more + b"\nhello\n"
    head = f"# v2 git bundle\n-{parent} \n{sha('commit', body)} refs/heads/x\n\n".encode()
    return head + pack([("tree", root), ("commit", body)])


def test_a_commit_with_thousands_of_parents_is_refused(world: World) -> None:
    (commit,) = world.take(with_head(world, git_commits.MAX_PARENTS)).commits
    assert len(commit.parents) == git_commits.MAX_PARENTS
    with pytest.raises(BundleRefused, match="more than 256 parents"):
        world.take(with_head(world, git_commits.MAX_PARENTS + 1))


def test_a_commit_with_an_endless_head_is_refused(world: World) -> None:
    line = b"gpgsig x\n" + b" y\n" * (git_commits.MAX_HEAD // 3)
    with pytest.raises(BundleRefused, match="before the message"):
        world.take(with_head(world, 1, line))


def test_rows_of_a_deep_folder_cost_as_much_as_their_paths(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = "/".join(["d" * 200] * 5)
    commit = world.commit("deep", {f"{folder}/{number}": "" for number in range(20)})
    world.take(world.bundle("main"))
    monkeypatch.setattr(git_trees, "MAX_PATHS", 20_000)
    with pytest.raises(BundleRefused, match="changed paths"):
        change(world, None, commit)
