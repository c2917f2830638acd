from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from snapshot import capture_run, file_reader, walk
from snapshot.base_reader import BaseReader
from snapshot.blobs import BlobStore
from snapshot.capture import load_snapshot
from snapshot.errors import SnapshotError, StoreDamaged, ToolMissing, WorkspaceRefused
from snapshot.image_writer import ImageWriter
from tests.snapshot.capture_helpers import capture, tree_of, unpacked, write

if TYPE_CHECKING:
    from snapshot.capture import SnapshotReport
    from snapshot.manifest import Entry
    from snapshot.walk import Folder

AWKWARD = [
    b"-dash",
    b"sp ace",
    b"new\nline",
    b"\xff\xfe",
    b"*",
    b"a[b]",
    b"back\\slash",
    b"...",
    b"#c",
    b" lead and trail ",
    b"l" * 255,
    "ü\u202e".encode(),
]


def seconds_only(report: SnapshotReport) -> dict[bytes, Entry]:
    """The manifest as squashfs keeps it: whole seconds, git's rebuilt files without a time."""
    from dataclasses import replace

    return {
        path: replace(entry, mtime_ns=entry.mtime_ns // 10**9 * 10**9, tracked=False)
        for path, entry in report.manifest.items()
    }


def awkward_tree(root: Path) -> Path:
    top = os.fsencode(root)
    for number, name in enumerate(AWKWARD):
        (Path(os.fsdecode(os.path.join(top, name)))).write_bytes(name * number)
    write(root, {"a/b/c/deep.txt": "deep", "empty": "", "sub/.hidden": "h"})
    (root / "hollow").mkdir(mode=0o700)
    os.symlink("a/b", root / "inside")
    os.symlink("/etc/passwd", root / "absolute")
    os.symlink("../../outside", root / "sub/outside")
    os.symlink("x" * 300, root / "long")
    os.link(root / "a/b/c/deep.txt", root / "hard")
    with (root / "sparse").open("wb") as file:
        file.truncate(6 << 20)
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o4755)
    os.utime(root / "empty", ns=(0, 1_234_567_890_123_456_789))
    return root


def test_manifest_and_image_and_workspace_are_the_same(tmp_path: Path) -> None:
    workspace = awkward_tree(_made(tmp_path / "ws"))

    report = capture(workspace, tmp_path / "out")

    image = tree_of(unpacked(tmp_path / "out"))
    real = tree_of(workspace)
    assert seconds_only(report) == image
    assert image[b"run"].mode == 0o755
    real[b"run"] = image[b"run"]
    assert image == real
    assert report.files == sum(entry.kind == "file" for entry in real.values())
    assert report.bytes == sum(entry.size for entry in real.values())


def _made(path: Path) -> Path:
    path.mkdir()
    return path


def test_owner_is_the_guests_user(tmp_path: Path) -> None:
    capture(write(tmp_path / "ws", {"a/b": "x"}), tmp_path / "out")

    image = str(tmp_path / "out/workspace.squashfs")
    listing = subprocess.run(
        ["unsquashfs", "-lln", image], check=True, capture_output=True, text=True
    ).stdout.splitlines()

    assert len(listing) == 3
    assert all(line.split()[1] == "1000/1000" for line in listing)


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    capture(write(tmp_path / "ws", {"a": "x"}), tmp_path / "out")

    names = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()}

    assert names == {"workspace.squashfs": 0o600, "manifest.json": 0o600, "snapshot.json": 0o600}


def test_the_report_can_be_read_again(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a": "x", ".env": "S", ".gitignore": "*.log\n"})
    report = capture(workspace, tmp_path / "out", exclude=("tmp/",))

    again = load_snapshot(tmp_path / "out")

    for name in (
        "manifest",
        "withheld",
        "heavy",
        "skipped",
        "notices",
        "files",
        "bytes",
        "seconds",
    ):
        assert getattr(again, name) == getattr(report, name)
    assert again.rules.to_json() == report.rules.to_json()
    assert again.rules.ignored(b"x.log")
    assert again.rules.ignored(b"tmp/x")
    (tmp_path / "out/snapshot.json").write_text("{}")
    with pytest.raises(StoreDamaged):
        load_snapshot(tmp_path / "out")


def test_special_files_are_listed_and_not_read(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a": "x"})
    os.mkfifo(workspace / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(workspace / "sock"))

        report = capture(workspace, tmp_path / "out")

    assert report.skipped == ((b"pipe", "special file"), (b"sock", "special file"))
    assert list(report.manifest) == [b"a"]


def test_links_are_kept_as_they_are_and_reported(tmp_path: Path) -> None:
    report = capture(awkward_tree(_made(tmp_path / "ws")), tmp_path / "out")

    assert report.manifest[b"absolute"].target == b"/etc/passwd"
    assert set(report.escaping_links) == {b"absolute", b"sub/outside"}


def test_secrets_heavy_folders_and_exclusions_stay_behind(tmp_path: Path) -> None:
    workspace = write(
        tmp_path / "ws",
        {
            "src/a.py": "a",
            ".env": "KEY=1",
            ".env.example": "KEY=",
            "deploy/id_rsa": "k",
            ".aws/config": "k",
            "node_modules/x/index.js": "x",
            "py/__pycache__/a.pyc": "x",
            "logs/today.txt": "l",
            "notes/private.md": "n",
            "a.bak": "b",
            ".clocheignore": "/notes/\n!.env\n!.aws/\n",
            ".broodboxignore": "*.bak\n",
        },
    )

    report = capture(workspace, tmp_path / "out", exclude=("logs/",))

    names = set(tree_of(unpacked(tmp_path / "out")))
    expected = {b"src", b"src/a.py", b".env.example", b"deploy", b"py"}
    assert names == expected | {b".clocheignore", b".broodboxignore"}
    assert set(report.withheld) == {b".env", b".aws", b"deploy/id_rsa"}
    assert set(report.heavy) == {b"node_modules", b"py/__pycache__"}
    assert set(report.excluded) == {b"logs", b"notes", b"a.bak"}
    assert len(report.notices) == 2
    assert report.rules.was_withheld(b".aws/config")


def test_heavy_folders_can_be_asked_for(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"node_modules/a.js": "a", "build/b": "b"}
    workspace = write(tmp_path / "ws", {**files, ".clocheignore": "!node_modules/\n"})

    report = capture(workspace, tmp_path / "out", exclude=("!/build/",))

    assert report.heavy == ()
    assert b"node_modules/a.js" in report.manifest
    assert b"build/b" in report.manifest


def test_an_ignore_file_that_is_a_link_or_folder_counts_as_empty(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a": "x"})
    (tmp_path / "rules").write_text("*\n")
    os.symlink(tmp_path / "rules", workspace / ".clocheignore")
    (workspace / ".broodboxignore").mkdir()

    report = capture(workspace, tmp_path / "out")

    assert b"a" in report.manifest


def test_our_own_folders_never_go_along(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a": "x", ".local/state/cloche/s/token": "t"})
    own = workspace / ".local/state/cloche"

    report = capture(workspace, workspace / "session", own_folders=(own, tmp_path / "none"))

    assert list(report.manifest) == [b".local", b".local/state", b"a"]


def test_deep_trees(tmp_path: Path) -> None:
    workspace = _made(tmp_path / "ws")
    current = os.open(workspace, os.O_RDONLY)
    for _ in range(400):  # deeper than the walk keeps folders open, longer than PATH_MAX
        os.mkdir("a" * 20, dir_fd=current)
        following = os.open("a" * 20, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = following
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=current))
    os.close(current)
    write(workspace, {"z": "after"})

    report = capture(workspace, tmp_path / "out")

    assert len(report.manifest) == 402
    assert b"/".join([b"a" * 20] * 400) + b"/leaf" in report.manifest
    subprocess.run(["rm", "-rf", str(workspace)], check=True)


@pytest.mark.parametrize("kind", ["missing", "file", "root"])
def test_what_is_no_workspace_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    workspace = Path("/") if kind == "root" else tmp_path / kind

    with pytest.raises(WorkspaceRefused) as caught:
        capture(workspace, tmp_path / "out")

    assert caught.value.hint


def test_a_workspace_inside_our_own_state_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    write(state, {"sessions/1/x": "x"})
    os.symlink(state, tmp_path / "alias")

    for workspace in (state, state / "sessions", tmp_path / "alias/sessions/1"):
        with pytest.raises(WorkspaceRefused, match="Cloche's own folder"):
            capture(workspace, tmp_path / "out", own_folders=(state,))


UNREADABLE = """
import os, sys
from pathlib import Path
os.setgid(65534); os.setuid(65534)
from snapshot.capture import CaptureOptions, take_snapshot
from snapshot.errors import WorkspaceRefused
try:
    take_snapshot(Path(sys.argv[1]), Path(sys.argv[2]), CaptureOptions(exclude=tuple(sys.argv[3:])))
except WorkspaceRefused as error:
    print(error.message); print(error.hint)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become an ordinary user")
@pytest.mark.parametrize("name", ["closed", "closed_dir"])
def test_what_cannot_be_read_is_named_with_the_fix(name: str, tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a": "x", "sub/closed": "x", "sub/closed_dir/x": "x"})
    (workspace / "sub" / name).chmod(0)
    place = _made(tmp_path / "out")
    place.chmod(0o777)
    for folder in [tmp_path, *tmp_path.parents][:3]:
        folder.chmod(0o755)
    root = Path(capture_run.__file__).parent.parent

    def run(*exclude: str) -> str:
        command = [sys.executable, "-c", UNREADABLE, str(workspace), str(place), *exclude]
        return subprocess.run(
            command, cwd=root, check=True, capture_output=True, text=True, timeout=60
        ).stdout

    said = run()

    assert f"'sub/{name}" in said
    assert "chmod" in said
    assert ".clocheignore" in said
    assert list(place.iterdir()) == []
    assert run(f"/sub/{name}") == ""


def test_a_full_disk_is_said_and_nothing_stays(tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"big": os.urandom(4 << 20)})
    place = _made(tmp_path / "small")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(place)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises(SnapshotError, match="disk is full") as caught:
            capture(workspace, place)
        assert list(place.iterdir()) == []
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert "df" in caught.value.hint


def test_without_mksquashfs_the_fix_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ToolMissing, match="mksquashfs") as caught:
        capture(write(tmp_path / "ws", {"a": "x"}), tmp_path / "out")

    assert "squashfs-tools" in caught.value.hint
    assert list((tmp_path / "out").iterdir()) == []


def test_a_failing_mksquashfs_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "mksquashfs"
    tool.write_text("#!/bin/sh\necho 'Invalid compressor' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(SnapshotError, match="Invalid compressor"):
        capture(write(tmp_path / "ws", {"a": os.urandom(3 << 20)}), tmp_path / "out")

    assert list((tmp_path / "out").iterdir()) == []


class Meddler:
    """Does something once, right after a file was read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self._real = getattr(os, name)
        self.times = 0
        monkeypatch.setattr(file_reader.os, name, self)  # type: ignore[attr-defined]

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


def test_an_image_that_is_not_finished_is_removed(tmp_path: Path) -> None:
    image = tmp_path / "image"

    with ImageWriter(image, 0o755) as writer:
        writer.write(b"x" * (1 << 20))

    assert list(tmp_path.iterdir()) == []


def test_base_contents_come_out_of_the_image(tmp_path: Path) -> None:
    workspace = awkward_tree(_made(tmp_path / "ws"))
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
