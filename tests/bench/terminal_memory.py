"""What live panes take of memory: scrollback, a worker at rest, the screen's part.

`python -m tests.bench.terminal_memory --json [--runs N]`. Megabytes (10^6). `scrollback` is what a
worker grows by when its pane, 120x40, is given 10,000 coloured lines; goal: at most 15 MB, with all
lines of the log kept. `kept_rows` says how many rows there are; a colour for each word takes so
much that the bound in bytes drops some. `worker` is one quiet worker: `rss` counts pages that
others share, `pss` its share of those, `private_dirty` what ends with it. `one_pane` and
`nine_panes` are a screen of 360x120 with full pages, and its workers (one more is kept ready).
"""

from __future__ import annotations

import functools
import random
import sys
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench.outer_terminal import OuterTerminal
from tests.bench.processes import children_of, memory_mb
from tests.bench.report import publish, runs_wanted, summary
from tests.bench.terminal_fps import HERE, guests, until_drawn
from tests.bench.terminal_inputs import SEED, log, truecolor
from tests.doubles.worker_link import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vm.terminal.screen import Frame

LINES: Final = 10_000
SIZE: Final = 120, 40
GOAL_MB: Final = 15
PIECE: Final = 16_384
SETTLE_S: Final = 3.0
QUIET_S: Final = 0.5
INPUTS: Final[dict[str, Callable[[random.Random], Iterator[bytes]]]] = {
    "coloured_log": log,
    "colour_per_word": truecolor,
}


def scrollback(name: str) -> dict[str, float]:
    """Megabytes that a worker grows by when it keeps lines."""
    data = b"".join(islice(INPUTS[name](random.Random(SEED)), LINES))
    with WorkerProcess() as worker:
        keeper = worker.open(size=SIZE)
        keeper.live()
        worker.frame()
        empty = memory_mb(worker.process.pid)
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            keeper.output(piece)
            keeper.acked(len(piece))
        rows = last_frame(worker).scrollback.total
        full = memory_mb(worker.process.pid)
    grown = {f"{kind}_mb": full[kind] - empty[kind] for kind in ("rss", "pss")}
    return {**grown, "kept_rows": rows}


def last_frame(worker: WorkerProcess) -> Frame:
    """Return the frame after which none comes."""
    found = worker.frame()
    while True:
        try:
            found = worker.frame(QUIET_S)
        except TimeoutError:
            return found


def quiet_worker() -> dict[str, float]:
    """Memory of a worker with one empty pane, alone on the machine as far as it can be."""
    with WorkerProcess() as worker:
        worker.open(size=SIZE).live()
        worker.frame()
        return memory_mb(worker.process.pid)


def screen_and_workers(panes: int) -> dict[str, float]:
    """Memory of a screen of 360x120 with `panes` full pages, and of its workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        argv = [sys.executable, str(HERE / "terminal_app.py"), str(folder), str(panes)]
        with guests(folder, panes, "full_screen", 5), OuterTerminal(argv, 360, 120, {}) as screen:
            until_drawn(folder, screen)
            screen.drain(SETTLE_S)
            workers = [memory_mb(pid) for pid in children_of(screen.pid)]
            return {
                "screen_pss": memory_mb(screen.pid)["pss"],
                "workers_pss": sum(worker["pss"] for worker in workers),
                "workers_private_dirty": sum(worker["private_dirty"] for worker in workers),
                "workers": len(workers),
            }


def repeated(measure: Callable[[], dict[str, float]], runs: int) -> dict[str, dict[str, float]]:
    """Summarise several measurements."""
    found = [measure() for _ in range(runs)]
    return {name: summary([round(run[name], 2) for run in found]) for name in found[0]}


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(3)
    kept = {name: repeated(functools.partial(scrollback, name), runs) for name in INPUTS}
    log_kept = kept["coloured_log"]
    met = log_kept["rss_mb"]["median"] <= GOAL_MB and log_kept["kept_rows"]["min"] >= LINES
    one, nine = (repeated(functools.partial(screen_and_workers, n), runs) for n in (1, 9))
    publish(
        {
            "scrollback_of_10000_lines": kept,
            "meets_goals": met,
            "worker": repeated(quiet_worker, runs),
            "one_pane": one,
            "nine_panes": nine,
        }
    )


if __name__ == "__main__":
    main()
