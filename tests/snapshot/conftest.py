"""Tests that make thousands of small trees work in memory and leave out syncing."""

from __future__ import annotations

import os
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
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out syncing: a killed process does not lose what the kernel has."""
    monkeypatch.setattr(renameat, "sync_file_system", _nothing)
    monkeypatch.setattr(os, "fsync", _nothing)


def _nothing(_fd: int) -> None:
    """Stand in for syncing."""
