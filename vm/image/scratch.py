"""The empty ext4 disk that every session's scratch.qcow2 has as its backing file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def scratch_template(store: Path, size_gib: int = 20) -> Path:
    """Return the raw, sparse, read-only ext4 image of `size_gib` GiB, made once.

    It is never written again: a session's disk is a qcow2 with this file as `raw` backing file.
    Raises HostLacks without mkfs.ext4, VMError when the disk is full.
    """
    raise NotImplementedError
