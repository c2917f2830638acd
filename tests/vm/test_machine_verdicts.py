"""The memory of verdicts trusts nothing but a plain file of the user's own."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vm.machine import verdicts
from vm.machine.verdicts import Verdict, recall, remember

if TYPE_CHECKING:
    from pathlib import Path

NO = Verdict(False, "it did not boot")


def test_what_is_remembered_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "accelerator.json"
    assert recall(path, "a") is None
    remember(path, "a", NO)
    remember(path, "b", Verdict(True))
    remember(path, "a", Verdict(True))
    assert (recall(path, "a"), recall(path, "b")) == (Verdict(True), Verdict(True))
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == ["accelerator.json"]


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "v"
    for number in range(verdicts.MAX_VERDICTS + 1):
        remember(path, str(number), NO)
    assert (recall(path, "0"), recall(path, "1")) == (None, NO)


@pytest.mark.parametrize(
    "damage",
    [
        *(b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 60000, b'{"a": true}', b'{"a": {}}'),
        b'{"a": {"works": 1, "why": ""}}',
        b'{"a": {"works": false, "why": 7}}',
        json.dumps({"a": {"works": False, "why": "x" * 601}}).encode(),
        json.dumps({"b": "x" * verdicts.MAX_FILE, "a": {"works": True, "why": ""}}).encode(),
    ],
)
def test_damage_counts_as_never_asked(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "v"
    path.write_bytes(damage)
    assert recall(path, "a") is None
    remember(path, "a", NO)
    assert recall(path, "a") == NO


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("v") / "v"
    path.write_bytes(data)
    assert recall(path, "a") is None


def test_what_others_could_have_written_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v"
    remember(path, "a", Verdict(True))
    for mode in (0o620, 0o602):
        path.chmod(mode)
        assert recall(path, "a") is None
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    assert recall(tmp_path / "link", "a") is None
    os.mkfifo(tmp_path / "pipe")
    assert recall(tmp_path / "pipe", "a") is None
    open_before = os.listdir("/proc/self/fd")
    assert recall(tmp_path, "a") is None
    assert os.listdir("/proc/self/fd") == open_before
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert recall(path, "a") is None


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    remember(tmp_path / "file" / "v", "a", NO)
    assert recall(tmp_path / "file" / "v", "a") is None
