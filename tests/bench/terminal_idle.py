"""What quiet live panes cost: per cent of one core for the screen and all of its workers.

`python -m tests.bench.terminal_idle --json [--runs N]`. Ten guests that stand at a prompt, on a
real PTY of 200x60: as ten panes and nothing else, and as ten sessions of the whole workstation, of
which it shows nine and whose signs move, for their agents count as working. Goal: at most 3 % of a
core in all.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.bench.outer_terminal import OuterTerminal, plain
from tests.bench.processes import children_of, cpu_seconds
from tests.bench.report import publish, runs_wanted, summary
from tests.bench.terminal_fps import HERE, START_S, guests

PANES: Final = 10
SIZE: Final = 200, 60
SETTLE_S: Final = 4.0
WATCH_S: Final = 20.0
GOAL_PERCENT: Final = 3.0
PROGRAMS: Final = {"panes": PANES, "workstation": 9}
"""Programs, and how many prompts they show."""


def measure(program: str, folder: Path) -> dict[str, float]:
    """Watch ten quiet guests."""
    script = "terminal_app.py" if program == "panes" else "terminal_workstation.py"
    argv = [sys.executable, str(HERE / script), str(folder), str(PANES)]
    shown = PROGRAMS[program]
    with guests(folder, shown, "quiet", 1), OuterTerminal(argv, *SIZE, {}) as screen:
        screen.until(lambda data: plain(data).count(b"agent@cloche") >= shown, START_S)
        screen.drain(SETTLE_S)
        workers = list(children_of(screen.pid))
        begin, updates = time.monotonic(), screen.updates
        before = cpu_seconds([screen.pid]), cpu_seconds(workers)
        screen.drain(WATCH_S)
        used = cpu_seconds([screen.pid]) - before[0], cpu_seconds(workers) - before[1]
        taken = time.monotonic() - begin
    return {
        "screen_percent": 100 * used[0] / taken,
        "workers_percent": 100 * used[1] / taken,
        "in_all_percent": 100 * sum(used) / taken,
        "updates": screen.updates - updates,
    }


def repeated(program: str, runs: int) -> dict[str, object]:
    """Watch several times."""
    found: list[dict[str, float]] = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(program, Path(folder)))
    figures = {name: summary([round(run[name], 3) for run in found]) for name in found[0]}
    return {**figures, "meets_goals": figures["in_all_percent"]["median"] <= GOAL_PERCENT}


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(3)
    publish({f"ten_quiet_{program}": repeated(program, runs) for program in PROGRAMS})


if __name__ == "__main__":
    main()
