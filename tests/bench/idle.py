"""What a quiet session costs: the keeper's memory, and the CPU of keeper and workstation.

Goals: keeper at most 80 MB resident, workstation at most 3 % of a core with one quiet session.
A real machine, a real keeper, and the workstation in a real terminal (tmux).
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench.quiet import quiet_world
from tests.bench.report import publish
from tests.e2e.sessions import LAUNCHER, World
from tests.e2e.tmux import TmuxTerminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SETTLE_S: Final = 5.0
WATCH_S: Final = 20.0
TICKS: Final = os.sysconf("SC_CLK_TCK")


def children_of(parent: int) -> Iterator[int]:
    """Yield the processes that `parent` started and that still run."""
    for task in Path(f"/proc/{parent}/task").iterdir():
        yield from map(int, (task / "children").read_text().split())


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU that the processes have used so far."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def share_of_a_core(groups: dict[str, list[int]]) -> dict[str, float]:
    """Percent of one core that each group of processes takes over `WATCH_S`."""
    before = {name: cpu_seconds(pids) for name, pids in groups.items()}
    time.sleep(WATCH_S)
    after = {name: cpu_seconds(pids) for name, pids in groups.items()}
    return {name: round(100 * (after[name] - before[name]) / WATCH_S, 2) for name in groups}


def measure(world: World, project: Path, folder: Path) -> dict[str, object]:
    """Start a quiet session, open the workstation on it, and watch both do nothing."""
    session = world.json("run", "shell", "--detach", "--workspace", str(project))["session"]
    world.wait_for(session, "state", "running")
    argv = [sys.executable, "-P", str(LAUNCHER)]
    with TmuxTerminal(folder, argv, world.environment, 120, 40, project) as terminal:
        terminal.until("/workspace$", 60)
        time.sleep(SETTLE_S)
        keeper = world.keeper(session)
        screen = terminal.process()
        children = list(children_of(screen))
        shares = share_of_a_core({"keeper": [keeper], "workstation": [screen, *children]})
        return {
            "keeper_mb": resident_mb(keeper),
            "workstation_mb": resident_mb(screen),
            "its_children_mb": [resident_mb(pid) for pid in children],
            "percent_of_a_core": shares,
        }


if __name__ == "__main__":
    with quiet_world() as (world, project):
        publish(measure(world, project, project.parent))
