"""How much memory this host has, and how much of it programs can still have.

What the kernel says of the whole host is cut down to the limits of the control groups (version 2)
that this process lives in, as in a container or a service with a memory limit.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path("/")
_GROUPS: Final = "sys/fs/cgroup"


class HostMemory(NamedTuple):
    """Bytes of this host, or of the part of it that is given to us; 0 when nobody tells."""

    total: int
    available: int
    """What programs can have without anything being swapped out."""


def host_memory(root: Path = ROOT) -> HostMemory:
    """Ask the kernel; `root` is where /proc and /sys are."""
    known = _text(root / "proc/meminfo")
    found = HostMemory(_kilobytes(known, "MemTotal"), _kilobytes(known, "MemAvailable"))
    for limit, used in _groups(root):
        found = HostMemory(min(found.total, limit), min(found.available, max(0, limit - used)))
    return found


def resident(pid: int, root: Path = ROOT) -> int:
    """Return the bytes that a process keeps from others: its own pages, not those of files."""
    known = _text(root / f"proc/{pid}/status")
    return _kilobytes(known, "RssAnon") + _kilobytes(known, "RssShmem")


def _groups(root: Path) -> Iterator[tuple[int, int]]:
    """Yield limit and use of each control group with a limit, from ours upwards."""
    ours = re.search(r"^0::/(.*)$", _text(root / "proc/self/cgroup"), re.M)
    top = root / _GROUPS
    place = top / ours[1] if ours else top
    for group in (place, *place.parents):
        if group != top and top not in group.parents:
            return
        limit = _text(group / "memory.max").strip()
        if limit.isdecimal():
            yield int(limit), _used(group)


def _used(group: Path) -> int:
    """Return what a group uses; files that nobody reads just now are given up when needed."""
    used = _text(group / "memory.current").strip()
    idle = re.search(r"^inactive_file (\d+)$", _text(group / "memory.stat"), re.M)
    return max(0, int(used) - (int(idle[1]) if idle else 0)) if used.isdecimal() else 0


def _kilobytes(text: str, name: str) -> int:
    line = re.search(rf"^{name}:\s+(\d+) kB$", text, re.M)
    return int(line[1]) << 10 if line else 0


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
