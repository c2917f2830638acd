"""What other processes cost: CPU to the nanosecond, and memory by who shares it, from /proc."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def children_of(parent: int) -> Iterator[int]:
    """Yield the processes that `parent` started and that still run."""
    for task in Path(f"/proc/{parent}/task").iterdir():
        yield from map(int, (task / "children").read_text().split())


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU that the processes have used so far, by all threads that still run.

    `schedstat` counts nanoseconds where `stat` counts hundredths of a second.
    """
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended
                total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def peak() -> int:
    """The most bytes that this program held.

    Not getrusage's figure: that one begins with what the process which started it held.
    """
    status = Path("/proc/self/status").read_text()
    (line,) = (one for one in status.splitlines() if one.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def memory_mb(pid: int) -> dict[str, float]:
    """Resident memory, the process's share of it (PSS), and what is its alone, in MB."""
    wanted = {"Rss": "rss", "Pss": "pss", "Private_Dirty": "private_dirty"}
    found: dict[str, float] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        if name.rstrip(":") in wanted:
            found[wanted[name.rstrip(":")]] = round(int(value) * 1024 / 1e6, 2)
    return found
