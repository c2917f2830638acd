"""What a merge brings to the disk: few files one by one, many at once, in the end all of them."""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING

import pytest

from snapshot import renameat, writeback_sync
from snapshot.errors import MergeAborted
from tests.snapshot.merge_help import Nodes, Scene, text, tree_of

if TYPE_CHECKING:
    from pathlib import Path


def scene_of(tmp_path: Path, count: int) -> Scene:
    """Return a scene in which the agent edited and made files."""
    base: Nodes = {b"d%d/f%d" % (n % 7, n): text("1\n") for n in range(0, count, 2)}
    agent: Nodes = {b"d%d/f%d" % (n % 7, n): text("2\n") for n in range(count)}
    return Scene(tmp_path / "ws", tmp_path / "merges", base, agent)


class Synced:
    """Counts what is synced, by inode, and how often a whole file system is."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.inodes: set[tuple[int, int]] = set()
        self.whole = 0
        patch.setattr(os, "fsync", self.fsync)
        patch.setattr(renameat, "sync_file_system", self.syncfs)

    def fsync(self, fd: int) -> None:
        """Note a file or folder."""
        found = os.fstat(fd)
        self.inodes.add((found.st_dev, found.st_ino))

    def syncfs(self, _fd: int) -> None:
        """Note a whole file system."""
        self.whole += 1


@pytest.mark.parametrize("count", [1, 2, 60])
def test_every_file_and_folder_of_a_small_merge_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    made = scene_of(tmp_path, count)
    synced = Synced(monkeypatch)
    outcome = made.merge()
    assert synced.whole == 0
    places = [*made.root.rglob("*"), *(made.merges / outcome.merge).rglob("*")]
    for place in places:
        status = place.lstat()
        assert (status.st_dev, status.st_ino) in synced.inodes, place


def test_many_files_are_synced_with_their_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writeback_sync, "MAX_SINGLE", 20)
    made = scene_of(tmp_path, 60)
    synced = Synced(monkeypatch)
    outcome = made.merge()
    assert len(outcome.written) == 60
    assert synced.whole == 1  # the workspace's; ours are few files whatever was merged
    for place in (made.merges / outcome.merge, *(made.merges / outcome.merge).iterdir()):
        assert (place.stat().st_dev, place.stat().st_ino) in synced.inodes, place


def test_a_file_system_that_takes_too_long_does_not_hold_the_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writeback_sync, "MAX_SINGLE", 20)
    monkeypatch.setattr(writeback_sync, "SYNCFS_LIMIT_S", 0.05)
    synced = Synced(monkeypatch)
    free = threading.Event()

    def wait(_fd: int) -> None:
        assert free.wait(60)

    monkeypatch.setattr(renameat, "sync_file_system", wait)
    made = scene_of(tmp_path, 60)
    try:
        assert len(made.merge().written) == 60
    finally:
        free.set()
    for place in made.root.rglob("f*"):
        assert (place.stat().st_dev, place.stat().st_ino) in synced.inodes


@pytest.mark.parametrize("many", [False, True])
def test_a_disk_that_refuses_takes_the_merge_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, many: bool
) -> None:
    made = scene_of(tmp_path, 60)
    before = tree_of(made.root)
    inner = os.fsync

    def refuse(fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    def refuse_ours(fd: int) -> None:
        if ".cloche-" in os.readlink(f"/proc/self/fd/{fd}"):
            refuse(fd)
        inner(fd)

    monkeypatch.setattr(writeback_sync, "MAX_SINGLE", 20 if many else 500)
    monkeypatch.setattr(os, "fsync", refuse_ours)
    monkeypatch.setattr(renameat, "sync_file_system", refuse)
    with pytest.raises(MergeAborted) as caught:
        made.merge()
    assert "Input/output error" in caught.value.message
    assert tree_of(made.root) == before


def test_a_mode_that_lets_nobody_read_is_no_obstacle(tmp_path: Path) -> None:
    made = scene_of(tmp_path, 4)
    (made.root / "d0/f0").chmod(0o600)
    (made.root / "d2/f2").chmod(0o200)
    assert len(made.merge().written) == 4
    assert (made.root / "d2/f2").stat().st_mode & 0o777 == 0o200
