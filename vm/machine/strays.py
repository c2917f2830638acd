"""Finding the processes of a machine of which no pid was written down.

Whoever starts QEMU can be killed before it has noted the pid, and bubblewrap may not even have
become QEMU by then. But all of them write to the machine's log from their first moment on, and an
open file is named for good by its device and inode: so no other machine, no other user and no other
folder of sessions is ever taken for this one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vm.machine.process import parent, start_time

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAMS: Final = ("bwrap", "setpriv", "qemu-system-")
"""How the names of the programs begin that a start goes through; a reader of the log is none."""

_ACCESS: Final = os.O_RDONLY | os.O_WRONLY | os.O_RDWR


@dataclass(frozen=True, slots=True)
class Stray:
    """One process of a machine: with its start time its pid names it for good."""

    pid: int
    start_time: int
    parent: int


def machine_processes(log: Path) -> tuple[Stray, ...]:
    """Return every process of the machine that writes to `log`: QEMU, and what started it.

    Looks at all of /proc (some ten milliseconds); processes of other users are left out.
    """
    try:
        found = os.stat(log, follow_symlinks=False)
    except OSError:
        return ()
    return tuple(_strays((found.st_dev, found.st_ino)))


def inmost(found: tuple[Stray, ...]) -> Stray | None:
    """Return the one that is QEMU, or is about to become it: the one that started none of them."""
    parents = {stray.parent for stray in found}
    return next((stray for stray in found if stray.pid not in parents), None)


def _strays(log: tuple[int, int]) -> Iterator[Stray]:
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        pid = int(name)
        started, above = start_time(pid), parent(pid)
        if started and above is not None and _writes(pid, log) and _is_ours(pid):
            yield Stray(pid, started, above)


def _writes(pid: int, log: tuple[int, int]) -> bool:
    """Tell whether a process has the log open as its standard error, for writing."""
    try:
        found = os.stat(f"/proc/{pid}/fd/2")
        if (found.st_dev, found.st_ino) != log:
            return False
        with open(f"/proc/{pid}/fdinfo/2", encoding="ascii") as file:
            flags = next(line for line in file if line.startswith("flags:")).split()[1]
    except (OSError, StopIteration):
        return False
    return int(flags, 8) & _ACCESS != os.O_RDONLY


def _is_ours(pid: int) -> bool:
    try:
        program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return False
    return program.startswith(PROGRAMS)
