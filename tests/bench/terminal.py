"""What the parts of a live pane cost: start, one frame step by step, recovery.

`python -m tests.bench.terminal --json [--runs N]`. Times are CPU milliseconds where they are named
`cpu`, wall milliseconds else. Whole panes on a real PTY: `terminal_fps`, `terminal_echo`,
`terminal_idle`; throughput: `terminal_feed`; memory: `terminal_memory`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.ui.pane_strips import StripMaker
from tests.bench.report import publish, repeat, runs_wanted, summary
from tests.bench.terminal_inputs import REPAINTS, repaints
from tests.doubles.engines import cache_folder, engine
from tests.doubles.pane_server import PaneServer
from tests.doubles.pane_watch import Watcher, hub_of
from tests.doubles.worker_link import WorkerProcess
from vm.terminal.palette import TerminalPalette
from vm.terminal.wire_frame import pack_frame, unpack_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ui.pane import Pane

SIZE: Final = 120, 40
STEPS: Final = 60
PAGE: Final = b"".join(b"\x1b[32m%04d\x1b[m a line that must come back\r\n" % n for n in range(500))
SPARE_S: Final = 1.0
"""Time for the spare worker to get ready, as it would be."""


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU milliseconds that `work` takes."""
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1000


def frame_costs(work: str) -> dict[str, float]:
    """CPU milliseconds of one frame, by what is done; `feed` is its parsing, to compare."""
    terminal, maker = engine(*SIZE), StripMaker(TerminalPalette())
    totals = dict.fromkeys(("feed", "engine", "pack", "unpack", "strips"), 0.0)
    for number, step in enumerate(repaints(work, *SIZE, STEPS)):
        times = [time.process_time()]
        terminal.feed(step)
        times.append(time.process_time())
        frame = terminal.frame()
        times.append(time.process_time())
        payload = pack_frame(number, frame)
        times.append(time.process_time())
        _, told = unpack_frame(payload)
        times.append(time.process_time())
        for row in told.rows.values():
            maker.strip(row, told.columns)
        times.append(time.process_time())
        for name, before, after in zip(totals, times, times[1:], strict=False):
            totals[name] += (after - before) * 1000 / STEPS
    terminal.close()
    return {name: round(value, 3) for name, value in totals.items()}


def import_cpu() -> float:
    """CPU milliseconds to load binding and engine in a fresh interpreter, less a bare one's."""
    root = str(Path(__file__).resolve().parents[2])
    body = (
        "from pathlib import Path\nfrom vm.terminal import abi\n"
        f"abi.load(Path({str(cache_folder())!r}))\n"
    )
    program = f"import sys, time\nsys.path.insert(0, {root!r})\nb = time.process_time()\n{body}"
    program += "print((time.process_time() - b) * 1000)"
    argv = [sys.executable, "-I", "-c", program]
    done = subprocess.run(argv, capture_output=True, check=True, timeout=60)
    return float(done.stdout)


def worker_start() -> float:
    """Milliseconds from starting a worker to its closed sandbox."""
    begin = time.perf_counter()
    with WorkerProcess():
        return (time.perf_counter() - begin) * 1000


async def recoveries(runs: int) -> list[float]:
    """Milliseconds from the death of a worker to the same page on the screen."""
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "s"
        async with PaneServer(socket) as server, hub_of() as hub:
            await hub.start()
            await server.put(PAGE)
            for number in range(runs):
                # a pane of its own each time: one that loses its worker often is given up
                pane = hub.open(f"dies {number}", socket)
                taken.append(await recovery(pane))
                pane.close()
    return taken


async def recovery(pane: Pane) -> float:
    """Kill the worker of a pane; return the milliseconds until its page is back."""
    watcher = Watcher(pane)
    pane.set_rate("focused")
    await watcher.shows("0499")
    page, pid = watcher.lines(), pane.worker_pid
    assert pid is not None
    await asyncio.sleep(SPARE_S)
    begin = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    await watcher.until(lambda: pane.worker_pid not in (pid, None) and pane.state == "live")
    await watcher.until(lambda: watcher.lines() == page)
    return (time.perf_counter() - begin) * 1000


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(3)
    publish(
        {
            "binding_import_cpu_ms": repeat(import_cpu, runs),
            "worker_start_ms": repeat(worker_start, runs),
            "frame_cpu_ms_120x40": {work: frame_costs(work) for work in REPAINTS},
            "recovery_ms": summary(asyncio.run(recoveries(runs))),
        }
    )


if __name__ == "__main__":
    main()
