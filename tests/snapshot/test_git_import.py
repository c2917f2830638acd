"""Commits of an agent as bundles, hostile ones made by the test, taken with this host's git."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from snapshot.bundle import MAX_HEADER, BundleRefused, is_plain, read_bundle
from snapshot.errors import SnapshotError
from snapshot.git_import import Quarantine, find_repository
from tests.snapshot.capture_helpers import git, write
from tests.snapshot.commit_world import SESSION, World, sha, tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_commits_come_with_what_they_changed(world: World) -> None:
    first = world.commit("one\n\nbody", {"a.txt": "A\n", "new/c.txt": "c\n"})
    git(world.agent, "rm", "-q", "sub/b.txt")
    second = world.commit("two", {".env": "TOKEN=2\n"})
    taken = world.take(world.bundle("main", "HEAD"))
    assert taken.branches == (("main", second),)
    assert [commit.id for commit in taken.commits] == [second, first]
    newest, oldest = taken.commits
    assert newest.parents == (first,)
    assert {(file.path, file.change) for file in newest.files} == {
        (b".env", "M"),
        (b"sub/b.txt", "D"),
    }
    assert newest.withheld == (b".env",)
    assert oldest.message == b"one\n\nbody\n"
    assert {(file.path, file.change) for file in oldest.files} == {
        (b"a.txt", "M"),
        (b"new/c.txt", "A"),
    }


def test_taken_commits_become_refs_and_nothing_else(world: World) -> None:
    hook = world.workspace / ".git" / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {world.folder}/ran\n")
    hook.chmod(0o755)
    head = world.commit("work", {"a.txt": "A\n"})
    git(world.agent, "tag", "v1")
    git(world.agent, "branch", "feature/x")
    before = git(world.workspace, "status", "--porcelain", "--branch")
    taken = world.take(world.bundle("--all"))
    assert b"refs/tags/v1" in taken.left_out
    refs = git(world.workspace, "for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/main"], "nothing is written before the user wants it"
    for _ in range(2):  # once more is no error
        Quarantine(world.quarantine).publish(world.user, SESSION, taken.branches)
    refs = git(world.workspace, "for-each-ref", "--format=%(refname)").split()
    ours = {f"refs/cloche/{SESSION}/{name}" for name in ("main", "feature/x")}
    assert set(refs) == {"refs/heads/main", *ours}
    assert git(world.workspace, "rev-parse", f"refs/cloche/{SESSION}/main").strip() == head
    assert git(world.workspace, "status", "--porcelain", "--branch") == before
    assert not (world.folder / "ran").exists()
    git(world.workspace, "fsck", "--strict", "--no-dangling")
    assert head in world.user.heads


def test_the_next_bundle_builds_on_what_was_published(world: World) -> None:
    world.commit("one", {"a.txt": "A\n"})
    taken = world.take(world.bundle("main"))
    Quarantine(world.quarantine).publish(world.user, SESSION, taken.branches)
    second = world.commit("two", {"a.txt": "AA\n"})
    again = world.take(world.bundle("main"))
    assert [commit.id for commit in again.commits] == [second]


def test_a_thin_pack_and_a_detached_head_are_taken(world: World) -> None:
    long = "".join(f"line {number}\n" for number in range(2000))
    write(world.workspace, {"long.txt": long})
    git(world.workspace, "add", ".")
    git(world.workspace, "commit", "-q", "-m", "long")
    git(world.agent, "pull", "-q")
    git(world.agent, "checkout", "-q", "--detach")
    head = world.commit("small edit", {"long.txt": long.replace("line 7\n", "seven\n")})
    assert world.take(world.bundle("HEAD")).branches == (("HEAD", head),)


EMPTY = sha("blob", b"")


@pytest.mark.parametrize(
    "name",
    [
        *(b".git", b".GIT", b".Git", b"git~1", b"GIT~1", b".git ", b".git."),
        *(b".g\xe2\x80\x8cit", b".git::$INDEX_ALLOCATION"),
    ],
)
def test_a_tree_with_a_git_folder_in_disguise_is_refused(world: World, name: bytes) -> None:
    inner = tree((0o100644, b"config", EMPTY))
    row = (0o040000, name, sha("tree", inner))
    with pytest.raises(BundleRefused):
        world.take(world.crafted(row, blobs=(b"",), inner=(inner,)))
    assert not world.quarantine.exists()


@pytest.mark.parametrize(
    "modules",
    [
        b'[submodule "x"\n\tpath = y\n',
        b'[submodule "../../x"]\n\tpath = y\n\turl = z\n',
        b'[submodule "x"]\n\tpath = -y\n\turl = z\n',
        b'[submodule "x"]\n\tpath = y\n\turl = -u./payload\n',
        b'[submodule "x"]\n\tpath = y\n\turl = z\n\tupdate = !touch /tmp/x\n',
    ],
)
def test_a_bad_gitmodules_is_refused(world: World, modules: bytes) -> None:
    bundle = world.crafted((0o100644, b".gitmodules", sha("blob", modules)), blobs=(modules,))
    with pytest.raises(BundleRefused, match=r"gitmodules"):
        world.take(bundle)


def test_a_good_gitmodules_is_taken_and_a_submodule_is_named(world: World) -> None:
    modules = b'[submodule "x"]\n\tpath = y\n\turl = https://example.example/x\n'
    rows = ((0o100644, b".gitmodules", sha("blob", modules)), (0o160000, b"y", "11" * 20))
    (commit,) = world.take(world.crafted(*rows, blobs=(modules,))).commits
    assert [file.path for file in commit.files if file.submodule] == [b"y"]


@pytest.mark.parametrize(
    "rows",
    [
        ((0o100644, b"a/b", EMPTY),),
        ((0o100644, b"..", EMPTY),),
        ((0o100644, b"b", EMPTY), (0o100644, b"a", EMPTY)),
        ((0o100644, b"a", EMPTY), (0o100644, b"a", EMPTY)),
        ((0o100644, b"a", "22" * 20),),
        ((0o120000, b".gitmodules", EMPTY),),
    ],
)
def test_broken_trees_are_refused(world: World, rows: tuple[tuple[int, bytes, str], ...]) -> None:
    with pytest.raises(BundleRefused):
        world.take(world.crafted(*rows, blobs=(b"",)))


def test_a_bundle_that_is_cut_anywhere_is_refused(world: World) -> None:
    world.commit("one", {"a.txt": os.urandom(3000)})
    whole = world.bundle("main")
    cuts = {
        0,
        10,
        whole.index(b"\n\n") + 1,
        whole.index(b"PACK") + 3,
        len(whole) // 2,
        len(whole) - 1,
    }
    for end in sorted(cuts):
        with pytest.raises(BundleRefused):
            world.take(whole[:end])
        assert not world.quarantine.exists()


def test_a_bundle_on_commits_that_the_user_does_not_have_is_refused(world: World) -> None:
    world.commit("unknown", {"x": "x\n"})
    world.commit("known", {"y": "y\n"})
    words = ["git", "bundle", "create", "-q", "-", "main", "--not", "main~1"]
    data = subprocess.run(words, cwd=world.agent, capture_output=True, check=True).stdout
    with pytest.raises(BundleRefused):
        world.take(data)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"# v4 git bundle\n\nPACK",
        b"# v3 git bundle\n@filter=blob:none\n\nPACK",
        b"# v3 git bundle\n@object-format=sha256\n\nPACK",
        b"# v2 git bundle\n@object-format=sha1\n\nPACK",
        b"# v2 git bundle\nzz refs/heads/x\n\nPACK",
        b"# v2 git bundle\n-zz\n\nPACK",
        b"# v2 git bundle\n" + b"x" * MAX_HEADER + b"\n\nPACK",
        b"# v2 git bundle\n" + (b"1" * 40 + b" refs/heads/x\n") * 300 + b"\nPACK",
    ],
)
def test_heads_of_another_form_are_refused(head: bytes) -> None:
    with pytest.raises(BundleRefused):
        read_bundle(head)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        (b"main", True),
        (b"feature/x-1.2", True),
        (b"-rf", False),
        (b"a/../b", False),
        (b"a..b", False),
        (b".hidden", False),
        (b"a.lock", False),
        (b"a/b.lock/c", False),
        (b"x y", False),
        (b"x\x1b", False),
        (b"caf\xc3\xa9", False),
        (b"a//b", False),
        (b"a/", False),
        (b"HEAD", False),
        (b"@", False),
        (b"x" * 300, False),
    ],
)
def test_which_branches_become_refs(name: bytes, plain: bool) -> None:
    assert is_plain(name) is plain


def test_a_workspace_without_a_repository_says_so(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError):
        find_repository(tmp_path, SESSION)
