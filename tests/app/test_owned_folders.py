"""Temporary folders of a process that was killed go at the next start, and nothing else does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.services import owned_folders
from app.services.owned_folders import OwnedFolder, sweep

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "cloche-trial-"
KEEPS = f"""
import sys
from app.services.owned_folders import OwnedFolder
made = OwnedFolder("{PREFIX}")
(made.path / "below").mkdir()
(made.path / "below" / "file").write_text("x")
print(made.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def old_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a temporary directory of the test's own, in which nothing is too young to go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(owned_folders, "YOUNG_S", 0.0)


def test_a_killed_owners_folder_goes_and_a_live_ones_stays(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", KEEPS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
        text=True,
    ) as owner:
        try:
            assert owner.stdout is not None
            folder = Path(owner.stdout.readline().strip())
            mine = OwnedFolder(PREFIX)
            sweep(PREFIX)
            assert (folder / "below" / "file").read_text() == "x"
        finally:
            owner.kill()
    sweep(PREFIX)
    assert not folder.exists()
    assert mine.path.is_dir()
    mine.close()
    assert os.listdir(tmp_path) == []


def test_links_files_and_what_is_anothers_stay(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}file").write_text("x")
    (tmp_path / f"other-{PREFIX}").mkdir()
    left = tmp_path / f"{PREFIX}left"
    left.mkdir()
    (left / "out").symlink_to(elsewhere)
    foreign = tmp_path / f"{PREFIX}foreign"
    foreign.mkdir()
    with contextlib.suppress(PermissionError):  # only root can give it away; else it is one more
        os.chown(foreign, 12345, 12345)
    theirs = foreign.stat().st_uid != os.getuid()
    sweep(PREFIX)
    names = {"elsewhere", f"{PREFIX}link", f"{PREFIX}file", f"other-{PREFIX}"}
    assert set(os.listdir(tmp_path)) == names | ({foreign.name} if theirs else set())
    assert (elsewhere / "precious").read_text() == "x"


def test_a_young_one_stays_and_one_sweep_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (tmp_path / f"{PREFIX}{number}").mkdir()
    monkeypatch.setattr(owned_folders, "YOUNG_S", 60.0)
    sweep(PREFIX)
    assert len(os.listdir(tmp_path)) == 5
    monkeypatch.setattr(owned_folders, "YOUNG_S", 0.0)
    monkeypatch.setattr(owned_folders, "MAX_SWEPT", 3)
    sweep(PREFIX)
    assert len(os.listdir(tmp_path)) == 2


def test_no_temporary_directory_is_no_reason_to_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    sweep(PREFIX)


def test_a_folder_elsewhere_is_swept_where_it_lies(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    mine = OwnedFolder(PREFIX, store)
    (store / f"{PREFIX}left").mkdir()
    (tmp_path / f"{PREFIX}other").mkdir()
    sweep(PREFIX, store)
    assert list(store.iterdir()) == [mine.path]
    assert (tmp_path / f"{PREFIX}other").is_dir()
    mine.close()
