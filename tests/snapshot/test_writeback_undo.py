"""Taking a merge back, also when its files moved on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.snapshot.merge_help import (
    FOLDER,
    Nodes,
    full,
    scene,
    text,
    tree_of,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_undo_restores_every_byte_mode_and_folder(tmp_path: Path) -> None:
    made = full(tmp_path)
    os.chmod(made.root / "edit", 0o640)
    os.chmod(made.root / "gone/one", 0o600)
    os.chmod(made.root / "gone/deep", 0o700)
    before = tree_of(made.root)
    outcome = made.merge()
    undone = made.undo(outcome.merge)
    assert undone.conflicts == ()
    assert set(undone.restored) >= {b"edit", b"sub/renamed", b"new/empty"}
    assert tree_of(made.root) == before


def test_an_undo_can_be_asked_for_twice(tmp_path: Path) -> None:
    made = full(tmp_path)
    before = tree_of(made.root)
    merge = made.merge().merge
    made.undo(merge)
    assert made.undo(merge).restored == ()
    assert tree_of(made.root) == before


def test_an_empty_folder_becomes_a_file_and_comes_back(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"d": FOLDER}, {b"d": text("file\n")})
    before = tree_of(made.root)
    outcome = made.merge()
    assert (made.root / "d").read_text() == "file\n"
    made.undo(outcome.merge)
    assert tree_of(made.root) == before


def test_empty_folders_come_and_go(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"old": FOLDER}, {b"new/deep": FOLDER})
    before = tree_of(made.root)
    outcome = made.merge()
    assert list(tree_of(made.root)) == ["new", "new/deep"]
    made.undo(outcome.merge)
    assert tree_of(made.root) == before


def test_set_id_bits_are_never_written_but_come_back_on_undo(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"f": text("1\n", "100755")}, {b"f": text("2\n", "100755")})
    os.chmod(made.root / "f", 0o6755)
    outcome = made.merge()
    assert tree_of(made.root)["f"].mode == 0o755
    made.undo(outcome.merge)
    assert tree_of(made.root)["f"].mode == 0o6755


def test_attributes_pass_on_and_come_back(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"f": text("1\n"), b"g": text("g\n")}, {b"f": text("2\n")})
    try:
        for name in ("f", "g"):
            os.setxattr(made.root / name, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no user attributes")
    outcome = made.merge()
    assert os.getxattr(made.root / "f", "user.note") == b"kept"
    made.undo(outcome.merge)
    assert os.getxattr(made.root / "g", "user.note") == b"kept"


def test_an_undo_merges_with_later_edits_or_names_a_conflict(tmp_path: Path) -> None:
    base: Nodes = {b"far": text("1\n2\n3\n4\n5\n"), b"near": text("1\n"), b"bin": text(b"\0")}
    agent: Nodes = {b"far": text("A\n2\n3\n4\n5\n"), b"near": text("A\n"), b"bin": text(b"\0\1")}
    made = scene(tmp_path, base, {**agent, b"new": text("n\n")})
    merge = made.merge().merge
    (made.root / "far").write_text("A\n2\n3\n4\nmine\n")
    (made.root / "near").write_text("mine\n")
    (made.root / "bin").write_bytes(b"\0mine")
    (made.root / "new").write_text("mine\n")
    undone = made.undo(merge)
    assert undone.restored == (b"far",)
    assert {refusal.path for refusal in undone.conflicts} == {b"near", b"bin", b"new"}
    assert (made.root / "far").read_text() == "1\n2\n3\n4\nmine\n"
    assert (made.root / "near").read_text() == "mine\n"
    assert (made.root / "new").read_text() == "mine\n"


def test_an_undo_keeps_the_users_files_in_new_folders(tmp_path: Path) -> None:
    made = scene(tmp_path, {}, {b"d/x": text("x\n")})
    merge = made.merge().merge
    (made.root / "d/mine").write_text("mine\n")
    assert made.undo(merge).conflicts == ()
    assert tree_of(made.root).keys() == {"d", "d/mine"}


def test_undoing_a_rename_is_all_or_nothing(tmp_path: Path) -> None:
    made = scene(tmp_path, {b"old": text("1\n")}, {b"new": text("2\n")}, renames={b"new": b"old"})
    merge = made.merge().merge
    (made.root / "new").write_text("mine\n")
    undone = made.undo(merge)
    assert {refusal.path for refusal in undone.conflicts} == {b"new"}
    assert tree_of(made.root).keys() == {"new"}
