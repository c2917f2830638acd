from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from snapshot import capture_run, image_writer
from snapshot.capture import load_snapshot
from snapshot.errors import SnapshotError, StoreDamaged, ToolMissing, WorkspaceRefused
from snapshot.image_writer import ImageWriter
from tests.snapshot.capture_helpers import (
    awkward_tree,
    capture,
    made,
    seconds_only,
    tree_of,
    unpacked,
    write,
)


def test_manifest_and_image_and_workspace_are_the_same(tmp_path: Path) -> None:
    workspace = awkward_tree(made(tmp_path / "ws"))

    report = capture(workspace, tmp_path / "out")

    image = tree_of(unpacked(tmp_path / "out"))
    real = tree_of(workspace)
    assert seconds_only(report) == image
    assert image[b"run"].mode == 0o755
    real[b"run"] = image[b"run"]
    assert image == real
    assert report.files == sum(entry.kind == "file" for entry in real.values())
    assert report.bytes == sum(entry.size for entry in real.values())


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
    report = capture(awkward_tree(made(tmp_path / "ws")), tmp_path / "out")

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
    workspace = made(tmp_path / "ws")
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
import sys
from pathlib import Path
from snapshot.capture import CaptureOptions, take_snapshot
from snapshot.errors import WorkspaceRefused
try:
    take_snapshot(Path(sys.argv[1]), Path(sys.argv[2]), CaptureOptions(exclude=tuple(sys.argv[3:])))
except WorkspaceRefused as error:
    print(error.message); print(error.hint)
"""


RIGHTS = "-dac_override,-dac_read_search"
WITHOUT = ("setpriv", "--bounding-set", RIGHTS, "--inh-caps", RIGHTS, "--")
"""Takes from root the right to read what is closed; the interpreter itself may lie in its home."""


@pytest.mark.parametrize("name", ["closed", "closed_dir"])
def test_what_cannot_be_read_is_named_with_the_fix(name: str, tmp_path: Path) -> None:
    workspace = write(tmp_path / "ws", {"a": "x", "sub/closed": "x", "sub/closed_dir/x": "x"})
    (workspace / "sub" / name).chmod(0)
    place = made(tmp_path / "out")
    root = Path(capture_run.__file__).parent.parent

    def run(*exclude: str) -> str:
        less = WITHOUT if os.getuid() == 0 else ()
        command = [*less, sys.executable, "-c", UNREADABLE, str(workspace), str(place), *exclude]
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
    place = made(tmp_path / "small")
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


def test_an_image_that_is_not_finished_is_removed(tmp_path: Path) -> None:
    image = tmp_path / "image"

    with ImageWriter(image, 0o755) as writer:
        writer.write(b"x" * (1 << 20))

    assert list(tmp_path.iterdir()) == []


def test_a_stuck_mksquashfs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "mksquashfs"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(image_writer, "DEADLINE_S", 0.05)

    with pytest.raises(SnapshotError, match="no progress"):
        capture(write(tmp_path / "ws", {"a": os.urandom(3 << 20)}), tmp_path / "out")
    with pytest.raises(SnapshotError, match="no progress"):
        capture(write(tmp_path / "ws", {"a": "small"}), tmp_path / "out")

    assert list((tmp_path / "out").iterdir()) == []
