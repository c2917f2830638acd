"""Folders of our own are closed to others, and none that others could have filled is used."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from app.errors import AppError
from app.paths import Paths, private_folder

if TYPE_CHECKING:
    from pathlib import Path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    assert mode(private_folder(tmp_path / "a" / "b")) == 0o700


def test_a_folder_that_others_can_look_into_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    assert mode(private_folder(folder)) == 0o700


def test_a_folder_that_others_can_write_into_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(AppError) as refused:
        private_folder(folder)
    assert refused.value.code == "unsafe-folder"
    assert f"chmod 700 '{folder}'" in refused.value.hint
    assert mode(folder) == 0o777


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(AppError):
        private_folder(tmp_path / "link")


def test_two_state_homes_never_share_sockets(tmp_path: Path) -> None:
    first = Paths(tmp_path / "a", tmp_path, tmp_path, tmp_path, tmp_path / "run")
    second = Paths(tmp_path / "b", tmp_path, tmp_path, tmp_path, tmp_path / "run")
    assert first.sockets("one") != second.sockets("one")
