"""qcow2 overlays: making them, and checking that what they stand on is what we say."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from vm.machine.spec import Backing, Disk


async def create_overlay(path: Path, backing: Backing) -> None:
    """Make a new qcow2 file that stands on `backing`. Raises HostLacks, DiskFull or VMError."""
    raise NotImplementedError


def verify(disk: Disk) -> None:
    """Raise BadDisk unless the file is of its format and its header names exactly its backing."""
    raise NotImplementedError
