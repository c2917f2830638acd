"""Whether this host can hold what a session's machine shall have; nothing is ever cut down.

A machine with less than was asked for would fail later, and nobody would know why. So what does not
fit is refused before anything is written, with the line of the configuration that does.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from app.config import LIMITS, Defaults
from app.errors import AppError
from app.host_memory import host_memory
from app.memory_claims import ceiling, too_large

if TYPE_CHECKING:
    from pathlib import Path

    from app.paths import Paths
    from app.records import Limits

MIN_NODES: Final = 1000
"""Files that a file system must still be able to make; a session has some dozens at first."""

_GIB: Final = 1 << 30


def check_limits(paths: Paths, limits: Limits | Defaults) -> None:
    """Raise AppError where this host cannot hold such a machine, whatever else runs on it.

    `usage` for numbers that no machine can have, `host-lacks` for more processors or disk than
    there are, `no-memory` for more memory than sessions can ever have.
    """
    for name, (least, most) in LIMITS.items():
        if not least <= getattr(limits, name) <= most:
            text = f"'{name}' must be from {least} to {most}, not {getattr(limits, name)}."
            raise AppError("usage", text, f"In config.yaml: 'defaults: {{{name}: {least}}}'")
    _check_processors(limits.vcpus)
    highest = ceiling(host_memory().total, limits.pool)
    if limits.memory > highest:
        raise too_large(limits.memory, highest, limits.pool)
    _check_disk(_existing(paths.state), limits.scratch)


def patience_s(wish: bool | None, usual: int) -> int:
    """Return how many seconds a start may wait for memory; `usual` is the configuration's."""
    if wish is None:
        return usual
    return (usual or Defaults().queue) if wish else 0


def _check_processors(vcpus: int) -> None:
    """Refuse more vCPUs than there are processors for us; two are always allowed."""
    here = len(os.sched_getaffinity(0))
    most = max(here, Defaults().vcpus)
    if vcpus > most:
        raise AppError(
            "host-lacks",
            f"The machine shall have {vcpus} vCPUs, this host has {here}.",
            f"Give it at most {most}, in config.yaml: 'defaults: {{vcpus: {most}}}'",
        )


def _check_disk(folder: Path, scratch: int) -> None:
    """Refuse a disk that could never be filled, beyond the usual size; it takes what is written."""
    room = os.statvfs(folder)
    size = room.f_blocks * room.f_frsize // _GIB
    most = max(size, Defaults().scratch)
    if scratch > most:
        raise AppError(
            "host-lacks",
            f"The machine's disk shall have {scratch} GiB, the whole disk of {folder} has {size}.",
            f"Give it at most {most}, in config.yaml: 'defaults: {{scratch: {most}}}', "
            "or choose another disk: export XDG_STATE_HOME=DIR",
        )
    if room.f_files and room.f_favail < MIN_NODES:
        raise AppError(
            "host-lacks",
            f"The file system of {folder} can make {room.f_favail} more files, "
            f"a session needs {MIN_NODES}.",
            f"Remove some: df -i '{folder}'",
        )


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
