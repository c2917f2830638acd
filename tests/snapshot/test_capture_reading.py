from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from snapshot import file_reader, walk
from snapshot.base_reader import BaseReader
from snapshot.blobs import BlobStore
from snapshot.errors import StoreDamaged
from tests.snapshot.capture_helpers import (
    awkward_tree,
    capture,
    made,
    seconds_only,
    tree_of,
    unpacked,
    write,
)

if TYPE_CHECKING:
    from snapshot.walk import Folder


class Meddler:
    """Does something once, right after a file was read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self._real = getattr(os, name)
        self.times = 0
        monkeypatch.setattr(file_reader.os, name, self)  # type: ignore[attr-defined]  # that module's own `os`

    def act(self) -> None:
        raise NotImplementedError

    def __call__(self, *arguments: int) -> bytes:
        data: bytes = self._real(*arguments)
        self.times += 1
        self.act()
        return data


def test_a_small_file_that_changes_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = write(tmp_path / "ws", {"a": "before"})

    class Once(Meddler):
        def act(self) -> None:
            if self.times == 1:
                (workspace / "a").write_text("afterwards")

    Once(monkeypatch, "read")
    report = capture(workspace, tmp_path / "out")
    monkeypatch.undo()

    assert (unpacked(tmp_path / "out") / "a").read_text() == "afterwards"
    assert seconds_only(report) == tree_of(tmp_path / "out/unpacked")
    assert report.notices == ()


def test_a_file_that_never_holds_still_is_taken_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = write(tmp_path / "ws", {"a": "x"})

    class Always(Meddler):
        def act(self) -> None:
            with (workspace / "a").open("a") as file:
                file.write("more")

    Always(monkeypatch, "read")
    Always(monkeypatch, "pread")
    report = capture(workspace, tmp_path / "out")
    monkeypatch.undo()

    assert "'a' was being written" in report.notices[0]
    image = tree_of(unpacked(tmp_path / "out"))[b"a"]
    assert (image.digest, image.size) == (report.manifest[b"a"].digest, report.manifest[b"a"].size)


@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite"])
def test_a_large_file_that_changes_begins_the_capture_anew(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = file_reader.SMALL + 5
    workspace = write(tmp_path / "ws", {"big": b"x" * size, "z": "z"})
    os.utime(workspace / "big", (1, 1))

    class Once(Meddler):
        def act(self) -> None:
            if self.times == 1:
                with (workspace / "big").open("r+b") as file:
                    file.truncate(10 if change == "shrink" else size)
                    file.write(b"y" * (size + 9 if change == "grow" else 3))

    Once(monkeypatch, "pread")
    report = capture(workspace, tmp_path / "out")
    monkeypatch.undo()

    assert (unpacked(tmp_path / "out") / "big").read_bytes() == (workspace / "big").read_bytes()
    assert seconds_only(report) == tree_of(tmp_path / "out/unpacked")
    assert report.notices == ()


def test_a_large_file_that_never_holds_still_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = write(tmp_path / "ws", {"big": b"x" * (file_reader.SMALL + 5)})
    os.utime(workspace / "big", (1, 1))

    class Always(Meddler):
        def act(self) -> None:
            with (workspace / "big").open("ab") as file:
                file.write(b"more")

    Always(monkeypatch, "pread")
    report = capture(workspace, tmp_path / "out")
    monkeypatch.undo()

    assert "'big' was being written" in report.notices[0]
    image = tree_of(unpacked(tmp_path / "out"))[b"big"]
    assert image.digest == report.manifest[b"big"].digest


def test_files_over_the_limit_are_listed(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"big": b"x" * 11, "small": b"x" * 10})

    report = capture(workspace, tmp_path / "out", max_file_bytes=10)

    assert report.skipped == ((b"big", "larger than 10 bytes"),)
    assert list(report.manifest) == [b"small"]


def test_the_walk_does_not_follow_what_was_swapped_in(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a/x": "x", "b/y": "y"})
    write(tmp_path / "elsewhere", {"secret": "s"})
    root = os.open(workspace, walk.FOLDER_FLAGS)
    seen: list[bytes] = []

    def choose(folder: Folder) -> list[str]:
        if not folder.path:  # after the root was listed
            (workspace / "a/x").unlink()
            (workspace / "a").rmdir()
            os.symlink(tmp_path / "elsewhere", workspace / "a")
        return [item.name for item in folder.entries if item.is_dir(follow_symlinks=False)]

    for folder in walk.walk(root, choose):
        seen.append(folder.path)
    os.close(root)

    assert seen == [b"", b"b"]


def test_the_walk_leaves_no_descriptor_open(tmp_path: Path) -> None:
    write(tmp_path / "ws", {f"{'d/' * depth}f": "x" for depth in range(100)})
    root = os.open(tmp_path / "ws", walk.FOLDER_FLAGS)
    before = set(os.listdir("/proc/self/fd"))

    steps = walk.walk(root, lambda folder: [e.name for e in folder.entries if e.is_dir()])
    most = max(len(os.listdir("/proc/self/fd")) for _ in steps)
    assert most <= len(before) + walk.OPEN_FOLDERS + 3

    assert set(os.listdir("/proc/self/fd")) == before
    os.close(root)


def test_base_contents_come_out_of_the_image(tmp_path: Path) -> None:
    workspace = awkward_tree(made(tmp_path / "ws"))
    report = capture(workspace, tmp_path / "out")
    blobs = BlobStore(tmp_path / "blobs")
    reader = BaseReader(tmp_path / "out/workspace.squashfs", report.manifest, blobs)
    files = [path for path, entry in report.manifest.items() if entry.kind == "file"]

    reader.ensure(files)

    for path in files:
        real = Path(os.fsdecode(os.path.join(os.fsencode(workspace), path))).read_bytes()
        assert reader.read(path) == real
        assert blobs.read(report.manifest[path].digest) == real
    for path in (b"nothing", b"a", b"inside"):
        with pytest.raises(KeyError):
            reader.read(path)


def test_base_contents_by_digest(tmp_path: Path) -> None:
    report = capture(write(tmp_path / "ws", {"a/b": "content"}), tmp_path / "out")
    blobs = BlobStore(tmp_path / "blobs")
    reader = BaseReader(tmp_path / "out/workspace.squashfs", report.manifest, blobs)
    digest = report.manifest[b"a/b"].digest

    assert reader.content(digest, limit=3) is None
    assert reader.content(digest) == b"content"
    assert reader.content("00" * 32) is None


def test_a_damaged_image_is_seen(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a": os.urandom(1 << 16), "b": "x"})
    report = capture(workspace, tmp_path / "out")
    image = tmp_path / "out/workspace.squashfs"
    data = bytearray(image.read_bytes())
    data[200:4000] = bytes(3800)
    image.write_bytes(data)
    reader = BaseReader(image, report.manifest, BlobStore(tmp_path / "blobs"))

    with pytest.raises(StoreDamaged):
        reader.read(b"a")
    image.write_bytes(b"no image")
    with pytest.raises(StoreDamaged):
        reader.read(b"b")


def test_a_fresh_large_file_is_copied_first(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"big": os.urandom(file_reader.SMALL + 1)})
    os.utime(workspace / "big", (time.time(), time.time()))

    report = capture(workspace, tmp_path / "out")

    image = tree_of(unpacked(tmp_path / "out"))[b"big"]
    assert image.digest == report.manifest[b"big"].digest
    assert len(list((tmp_path / "out").iterdir())) == 4
