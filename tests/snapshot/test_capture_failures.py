"""What goes wrong in a capture is named for what it is, and leaves nothing open."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
from typing import TYPE_CHECKING, NoReturn

import pytest

from snapshot import capture_run, file_reader
from snapshot.errors import SnapshotError, WorkspaceRefused
from snapshot.walk import FOLDER_FLAGS, refused, walk
from tests.snapshot.capture_helpers import capture, made, write

if TYPE_CHECKING:
    from pathlib import Path


def denied() -> OSError:
    return PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def command(hint: str) -> str:
    return hint.partition(": ")[2]


def test_a_walk_that_is_given_up_leaves_no_folder_open(tmp_path: Path) -> None:
    write(tmp_path / "ws", {"a/b/c": "x"})
    root = os.open(tmp_path / "ws", FOLDER_FLAGS)
    before = set(os.listdir("/proc/self/fd"))
    folders = walk(root, lambda folder: [item.name for item in folder.entries if item.is_dir()])
    next(folders)
    next(folders)
    assert len(set(os.listdir("/proc/self/fd")) - before) == 2
    folders.close()
    assert set(os.listdir("/proc/self/fd")) == before
    os.close(root)


@pytest.mark.parametrize("path", [b"", b"/"])
def test_an_unreadable_workspace_is_not_taken_for_the_root_of_the_system(path: bytes) -> None:
    error = refused(path, denied())
    assert error.message == "The workspace cannot be read: Permission denied."
    assert command(error.hint) == "chmod u+rx ."


def test_a_hint_can_be_pasted_whatever_the_name_is(tmp_path: Path) -> None:
    name = "it's; touch pwned #[x].txt"
    write(tmp_path, {name: "x"})
    (tmp_path / name).chmod(0)
    error = refused(name.encode(), denied())
    line = command(error.hint)
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True, timeout=10)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o400
    assert not (tmp_path / "pwned").exists()

    (tmp_path / name).unlink()
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True, timeout=10, capture_output=True)
    write(tmp_path / "ws", {name: "x", "kept": "x"})
    os.replace(tmp_path / ".clocheignore", tmp_path / "ws/.clocheignore")
    report = capture(tmp_path / "ws", tmp_path / "out")
    assert report.excluded == (name.encode(),)
    assert shlex.split(line)[:2] == ["chmod", "u+r"]


def test_a_copy_that_finds_no_room_is_no_unreadable_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = write(tmp_path / "ws", {"large": bytes(file_reader.SMALL + 1)})  # fresh: is copied

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(file_reader, "_refill", full)
    with pytest.raises(SnapshotError, match="disk is full") as caught:
        capture(workspace, made(tmp_path / "out"))
    assert not isinstance(caught.value, WorkspaceRefused)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_folder_of_ours_that_takes_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = write(tmp_path / "ws", {"a": "x"})

    def read_only(*_: object) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(capture_run, "save_report", read_only)
    with pytest.raises(SnapshotError, match="cannot be written") as caught:
        capture(workspace, made(tmp_path / "out"))
    assert command(caught.value.hint).startswith("ls -ld ")
    assert list((tmp_path / "out").iterdir()) == []
