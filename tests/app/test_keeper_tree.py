"""The mirror and the review desk stay at the same generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from app.agents import shell
from app.keeper.desk import Desk
from app.keeper.tree import Tree
from app.records import SessionRecord
from snapshot.capture import CaptureOptions, take_snapshot
from tests.app.keeper_bench import FakeGuest

if TYPE_CHECKING:
    from pathlib import Path


def broken(*_: object) -> None:
    raise OSError(28, "No space left on device")


async def test_a_desk_that_failed_to_follow_follows_at_the_next_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, folder = tmp_path / "project", tmp_path / "session"
    workspace.mkdir()
    folder.mkdir()
    take_snapshot(workspace, folder, CaptureOptions())
    tree = Tree(SessionRecord("0123456789", "n", shell(), str(workspace), 0.0, "base", ""), folder)
    await tree.open()
    guest = FakeGuest()
    guest.put(b"new.txt", b"new\n")
    with monkeypatch.context() as full:
        full.setattr(Desk, "take_over", broken)
        with pytest.raises(OSError, match="No space"):
            await tree.take(guest.links)
    assert tree.desk.changes().files == ()
    assert await tree.take(guest.links)
    assert [file.path for file in tree.desk.changes().files] == ["new.txt"]
    assert (tree.generation, tree.desk.changes().generation) == (1, 1)
    assert tree.counts.files == 1
    assert not await tree.take(guest.links)
    await tree.close()
