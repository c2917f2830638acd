"""What clients are told of the agent's commits: their changes in parts, and what is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from app.cli.sources import named_commit
from app.errors import AppError
from app.keeper.commit_changes import PART, CommitChanges
from app.keeper.commits import listed
from app.protocol_commits import Branch, CommitInfo, CommitList
from tests.snapshot.capture_helpers import git
from tests.snapshot.commit_world import SESSION, World

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def changes_of(world: World) -> CommitChanges:
    return CommitChanges(world.quarantine, lambda: world.user)


def test_a_commit_alone_and_all_that_led_to_it(world: World) -> None:
    before = world.user.heads[0]
    first = world.commit("one", {"a.txt": "A\n"})
    second = world.commit("two", {"new.txt": "n\n"})
    found = listed(SESSION, world.take(world.bundle("main")))
    changes = changes_of(world)
    alone = changes.change(found, second, whole=False)
    assert (alone.base, [file.path for file in alone.files]) == (first, ["new.txt"])
    whole = changes.change(found, second, whole=True)
    assert (whole.base, [file.path for file in whole.files]) == (before, ["a.txt", "new.txt"])
    assert changes.content(whole.files[0].base, 0).data == b"a\n"
    assert changes.content(whole.files[0].agent, 0).data == b"A\n"
    assert {(file.added, file.removed) for file in whole.files} == {(1, 1), (1, 0)}


def test_a_root_is_compared_with_nothing(world: World) -> None:
    git(world.agent, "checkout", "-q", "--orphan", "alone")
    first = world.commit("root", {"a.txt": "A\n"})
    second = world.commit("next", {"b.txt": "b\n"})
    found = listed(SESSION, world.take(world.bundle("alone")))
    for commit, whole in ((first, False), (first, True), (second, True)):
        change = changes_of(world).change(found, commit, whole=whole)
        assert change.base == ""
        assert {file.kind for file in change.files} == {"added"}


def test_a_long_content_comes_in_parts(world: World) -> None:
    data = os.urandom(2 * PART + 7)
    head = world.commit("big", {"big.bin": data})
    found = listed(SESSION, world.take(world.bundle("main")))
    changes = changes_of(world)
    (file,) = changes.change(found, head, whole=False).files
    parts = [changes.content(file.agent, start) for start in range(0, len(data), PART)]
    assert b"".join(part.data for part in parts) == data
    assert {part.total for part in parts} == {len(data)}
    assert changes.content(file.agent, len(data)).data == b""


def test_other_commits_and_names_are_refused(world: World) -> None:
    head = world.commit("one", {"a.txt": "A\n"})
    found = listed(SESSION, world.take(world.bundle("main")))
    changes = changes_of(world)
    for name in ("", "HEAD", "../config", "f" * 39, "f" * 41, "module-x"):
        with pytest.raises(AppError, match="no such content"):
            changes.content(name, 0)
    with pytest.raises(AppError, match="no such commit"):
        changes.change(found, world.user.heads[0], whole=False)
    world.quarantine.rename(world.folder / "away")
    with pytest.raises(AppError, match="not there any more"):
        changes_of(world).change(found, head, whole=False)


def test_words_that_name_a_commit_or_a_branch() -> None:
    ones = tuple(CommitInfo(name, (), "", 0, "") for name in ("abcd1" + "0" * 35, "abcd2" * 8))
    found = CommitList(SESSION, (Branch("main", ones[0].id),), ones)
    assert named_commit(found, "main") == (ones[0].id, True)
    assert named_commit(found, "ABCD1") == (ones[0].id, False)
    assert named_commit(found, "abc") is None
    assert named_commit(found, "ffff") is None
    with pytest.raises(AppError, match="2 commits begin"):
        named_commit(found, "abcd")
