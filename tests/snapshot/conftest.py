"""Tests that make thousands of small trees work in memory and leave out syncing."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from snapshot import renameat

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = "/dev/shm"


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A temporary folder in memory where there is one to be had."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def small_disk(memory_path: Path) -> Iterator[Path]:
    """A file system of one MiB, where the host lets us mount one."""
    where = memory_path / "disk"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(where)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out syncing: a killed process does not lose what the kernel has."""
    monkeypatch.setattr(renameat, "sync_file_system", _nothing)
    monkeypatch.setattr(os, "fsync", _nothing)


def _nothing(_fd: int) -> None:
    """Stand in for syncing."""
