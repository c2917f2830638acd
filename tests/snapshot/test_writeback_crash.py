"""A merge of 200 files that is killed or refused at any step: whole before, or whole after.

CI takes a sample of the steps; `CLOCHE_FULL=1` takes every one.
"""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from snapshot import renameat, writeback_commit
from snapshot.errors import MergeAborted
from snapshot.writeback import recover, run_merge
from tests.sampling import FULL, sampled
from tests.snapshot.merge_faults import die, fail_at, full, nothing, run_and_die, spread
from tests.snapshot.merge_help import Nodes, Scene, text, tree_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_sync")


def two_hundred(where: Path) -> Scene:
    """Return a scene of 200 files: edited, new, dropped, renamed and made to run."""
    base: Nodes = {}
    agent: Nodes = {}
    renames: dict[bytes, bytes] = {}
    for number in range(200):
        name = b"d%d/f%d" % (number % 10, number)
        sort = number % 5
        if sort != 1:
            base[name] = text(f"{number}\nkept\n")
        if sort == 2:
            continue
        path = b"new/moved%d" % number if sort == 3 else name
        if sort == 3:
            renames[path] = name
        mode = "100755" if sort == 4 else "100644"
        agent[path] = text(f"{number}\nkept\nadded\n", mode)
    return Scene(where / "ws", where / "merges", base, agent, renames)


def steps_of(memory_path: Path) -> list[str]:
    """Return the names of all steps of that merge."""
    names: list[str] = []
    (memory_path / "count").mkdir()
    two_hundred(memory_path / "count").merge(tick=names.append)
    return names


def sample(names: list[str]) -> list[int]:
    """Return every step, or of each sort its first, its last and some between."""
    return sorted(spread([name.split()[0] for name in names], sampled(1, 40)))


@pytest.mark.timeout(3600 if FULL else 600)
def test_a_kill_at_any_step_leaves_all_or_nothing_and_says_which(memory_path: Path) -> None:
    names = steps_of(memory_path)
    assert len(names) > 800
    committed = names.index("finish")
    scene = two_hundred(memory_path)
    before = tree_of(scene.root)
    after = tree_of(memory_path / "count" / "ws")
    plan = scene.plan()  # writes nothing, and is the same for every step
    for number in sample(names):
        tick = fail_at(number, die)
        status = run_and_die(lambda: run_merge(lambda: plan, scene.merges, tick))  # noqa: B023 - called before the loop goes on
        assert os.WIFSIGNALED(status)
        found = recover(scene.merges)
        assert [item.leftovers for item in found] == ([()] if number else [])
        done = bool(found) and not found[0].rolled_back
        assert done is (number >= committed), names[number]
        assert tree_of(scene.root) == (after if done else before), names[number]
        assert recover(scene.merges) == []
        if done:
            assert scene.undo(found[0].merge).conflicts == ()
            assert tree_of(scene.root) == before
        shutil.rmtree(scene.merges, ignore_errors=True)


def outcome_of(made: Scene) -> str:
    """Merge; `merged`, or what was said instead."""
    try:
        made.merge()
    except MergeAborted as aborted:
        return aborted.message
    return "merged"


CALLS = ["open", "write", "mkdir", "symlink", "rename", "link", "fchmod", "fsync", "setxattr"]
"""Calls of `os` by which a merge changes something; `renameat2` is counted besides."""


class Refusing:
    """Counts the calls that change something, and refuses one of them, or it and all later ones.

    A write is refused half way, as on a full disk. Removing and renaming stay possible when only
    room is missing.
    """

    def __init__(self, number: int, error: int, *, stays: bool) -> None:
        self.number, self.error, self.stays = number, error, stays
        self.count = 0
        self.named = ""

    def refuses(self, name: str) -> bool:
        """Count one call; whether it fails."""
        roomy = self.error == errno.ENOSPC and name in ("renameat2", "rename", "fchmod", "fsync")
        if roomy:
            return False
        self.count += 1
        hit = self.count == self.number or (self.stays and self.count > self.number > 0)
        self.named = self.named or (name if hit else "")
        return hit

    def fail(self) -> OSError:
        """Return the error of the kernel."""
        return OSError(self.error, os.strerror(self.error))

    def wrap(self, name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call that is refused when its turn has come."""

        def call(*args: Any, **named: Any) -> Any:
            if name == "open" and not args[1] & os.O_CREAT:
                return inner(*args, **named)
            if self.refuses(name):
                if name == "write" and len(args[1]) > 1:
                    return inner(args[0], bytes(args[1])[: len(args[1]) // 2])
                raise self.fail()
            return inner(*args, **named)

        return call

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Stand between the merge and the kernel."""
        for name in CALLS:
            patch.setattr(os, name, self.wrap(name, getattr(os, name)))
        rename: Callable[..., Any] = getattr(renameat, "_renameat2")  # noqa: B009 - a private name, by its text
        patch.setattr(renameat, "_renameat2", self.wrap("renameat2", rename))
        patch.setattr(renameat, "sync_file_system", self.wrap("syncfs", nothing))


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_a_refusal_of_any_call_leaves_all_or_nothing(
    memory_path: Path, *, error: int, stays: bool
) -> None:
    counting = Refusing(0, error, stays=False)
    with pytest.MonkeyPatch.context() as patch:
        made = full(memory_path / "count")
        counting.install(patch)
        made.merge()
    after = tree_of(made.root)
    assert counting.count > 30
    for number in range(1, counting.count + 1, sampled(1, 5)):
        made = full(memory_path / f"{number}")
        before = tree_of(made.root)
        refusing = Refusing(number, error, stays=stays)
        with pytest.MonkeyPatch.context() as patch:
            refusing.install(patch)
            said = outcome_of(made)
        assert refusing.named
        found = recover(made.merges)
        assert all(item.leftovers == () for item in found), (number, refusing.named)
        rolled = said != "merged" if not found else found[0].rolled_back
        assert tree_of(made.root) == (before if rolled else after), (number, refusing.named, said)
        assert recover(made.merges) == []
        shutil.rmtree(made.root.parent)


def test_a_disk_that_is_full_at_any_page_leaves_all_or_nothing(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writeback_commit.Commit, "_check_space", nothing)
    seen: set[bool] = set()
    for pages in range(0, 120, sampled(1, 4)):
        made = full(small_disk / f"{pages}")
        before = tree_of(made.root)
        filler = small_disk / "filler"
        room = os.statvfs(small_disk)
        filler.write_bytes(bytes((room.f_bavail - pages) * room.f_frsize))
        said = outcome_of(made)
        assert said == "merged" or "No space left" in said
        merged = said == "merged"
        filler.unlink()
        found = recover(made.merges)
        assert all(item.leftovers == () for item in found)
        assert (tree_of(made.root) == before) is not merged
        assert not list(made.root.rglob(".cloche-*"))
        seen.add(merged)
        shutil.rmtree(made.root.parent)
    assert seen == {False, True}
