"""The empty ext4 disk that every session's scratch.qcow2 has as its backing file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from vm.errors import VMError
from vm.image.tools import one_sentence, require, run

_OPTIONS = (
    # the file is a hole, so nothing has to be zeroed: neither now nor by each guest's kernel,
    # which would write 320 MB of zeros into every session's disk
    *("-E", "assume_storage_prezeroed=1,nodiscard"),
    *("-q", "-F", "-m", "0", "-L", "scratch"),
)
_MKFS_SECONDS = 120.0
_GIB = 1 << 30
_LARGEST_GIB = 4096


def scratch_template(store: Path, size_gib: int = 20) -> Path:
    """Return the raw, sparse, read-only ext4 image of `size_gib` GiB, made once.

    It is never written again: a session's disk is a qcow2 with this file as `raw` backing file.
    Raises HostLacks without mkfs.ext4, VMError when the size is absurd or the disk is full.
    """
    if not 1 <= size_gib <= _LARGEST_GIB:
        raise VMError(f"A scratch disk of {size_gib} GiB is not possible.", "Choose 1 to 4096 GiB.")
    target = store / "scratch" / f"ext4-{size_gib}g.raw"
    if target.is_file() and target.stat().st_size == size_gib * _GIB:
        return target
    require("mkfs.ext4")
    with one_sentence("Making the scratch disk"):
        _make(target, size_gib * _GIB)
    return target


def _make(target: Path, size: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=target.parent) as folder:
        fresh = Path(folder) / target.name
        with fresh.open("wb") as out:
            out.truncate(size)
        run(["mkfs.ext4", *_OPTIONS, str(fresh)], what="mkfs.ext4", seconds=_MKFS_SECONDS)
        fresh.chmod(0o444)
        os.replace(fresh, target)
