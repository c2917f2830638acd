"""Measure the live pane: start, throughput, frames, echo, recovery.

`python -m tests.bench.terminal --json [--runs N]`. Times are CPU milliseconds where they are named
`cpu`, wall milliseconds else; throughput is megabytes per CPU second.
"""

from __future__ import annotations

import asyncio
import functools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from app.ui.pane_strips import StripMaker
from app.ui.panes import PaneHub
from tests.bench.report import publish, repeat, runs_wanted, summary
from tests.doubles.engines import cache_folder, engine
from tests.doubles.pane_server import PaneServer
from tests.doubles.worker_link import LAUNCHER, WorkerProcess
from vm.terminal.palette import TerminalPalette
from vm.terminal.wire_frame import pack_frame, unpack_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ui.pane import Pane

CHUNK = 16_384
SIZE = 120, 40


def lines(seed: random.Random) -> bytes:
    """Plain numbered lines."""
    return b"".join(b"%d some plain log output\r\n" % seed.randrange(10**6) for _ in range(400))


def colours(seed: random.Random) -> bytes:
    """A random colour for each word: the worst case for frames."""
    word = b"\x1b[38;2;%d;%d;%dmword%d "
    row = b"".join(word % tuple(seed.randrange(256) for _ in range(4)) for _ in range(16))
    return (row + b"\x1b[m\r\n") * 40


def full_screen(seed: random.Random) -> bytes:
    """One repaint of a process viewer: addressed rows, a dozen styles in each."""
    rows = [b"\x1b[?2026h\x1b[H"]
    for y in range(1, SIZE[1] + 1):
        values = (y, seed.randrange(256), seed.randrange(99999), seed.randrange(9999))
        rows.append(
            b"\x1b[%d;1H\x1b[38;5;%dm%5d\x1b[39m \x1b[1mroot\x1b[0m \x1b[36m%5dM\x1b[0m" % values
        )
        rows.append(b" \x1b[32mS\x1b[0m %4d \x1b[7mpython3 -m server\x1b[0m\x1b[K" % values[2])
    return b"".join(rows) + b"\x1b[?2026l"


def scripts(seed: random.Random) -> bytes:
    """Wide characters, clusters and right-to-left text."""
    words = ["日本語", "漢字", "héllo", "👍🏽", "🇺🇸", "e\u0301", "नमस्ते", "│─┌", "ascii"]
    return "".join(seed.choice(words) + " " for _ in range(2000)).encode() + b"\r\n"


WORKLOADS: dict[str, Callable[[random.Random], bytes]] = {
    "lines": lines,
    "colours": colours,
    "full_screen": full_screen,
    "scripts": scripts,
}


def cpu_ms(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1000


def throughput(make: Callable[[random.Random], bytes]) -> float:
    """MB per CPU second of feeding 8 MB."""
    data = b"".join(make(random.Random(7)) for _ in range(3))
    data *= max(1, 8_000_000 // len(data))
    terminal = engine(*SIZE)

    def feed() -> None:
        for at in range(0, len(data), CHUNK):
            terminal.feed(data[at : at + CHUNK])

    taken = cpu_ms(feed)
    terminal.close()
    return len(data) / 1e6 / (taken / 1000)


def frame_costs(make: Callable[[random.Random], bytes]) -> dict[str, float]:
    """CPU milliseconds of one frame of a page that changed everywhere, by step."""
    terminal, maker, seed = engine(*SIZE), StripMaker(TerminalPalette()), random.Random(3)
    totals = dict.fromkeys(("engine", "pack", "unpack", "strips"), 0.0)
    count = 60
    for number in range(count):
        terminal.feed(make(seed))
        begin = time.process_time()
        frame = terminal.frame()
        mark = [begin, time.process_time()]
        payload = pack_frame(number, frame)
        mark.append(time.process_time())
        _, told = unpack_frame(payload)
        mark.append(time.process_time())
        for row in told.rows.values():
            maker.strip(row, told.columns)
        mark.append(time.process_time())
        for name, before, after in zip(totals, mark, mark[1:], strict=False):
            totals[name] += (after - before) * 1000 / count
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
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, check=True)
    return float(done.stdout)


def worker_start() -> float:
    """Milliseconds from starting a worker to its closed sandbox."""
    begin = time.perf_counter()
    with WorkerProcess():
        return (time.perf_counter() - begin) * 1000


def worker_memory() -> dict[str, float]:
    """Megabytes of a worker with one quiet pane."""
    with WorkerProcess() as worker:
        worker.open().live()
        worker.frame()
        status = Path(f"/proc/{worker.process.pid}/status").read_text()
    found = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if "kB" in line}
    return {name: round(int(found[name]) / 1024, 1) for name in ("VmRSS", "RssAnon")}


class Painter:
    """Paints at once and wakes whoever waits."""

    def __init__(self, pane: Pane) -> None:
        self.pane, self.news = pane, asyncio.Event()
        pane.listen(self)

    def feed_changed(self, rows: object) -> None:
        self.pane.painted()
        self.news.set()

    def feed_resized(self) -> None:
        self.feed_changed(())

    def feed_state(self, state: str, status: int | None, message: str) -> None:
        self.news.set()

    def feed_title(self, title: str) -> None: ...

    def feed_bell(self) -> None: ...

    def feed_clipboard(self, text: str) -> None: ...

    def feed_notified(self, title: str, body: str) -> None: ...

    def feed_progress(self, progress: object) -> None: ...

    def feed_mirrored(self, mirrored: bool) -> None: ...

    def feed_refused(self, message: str) -> None: ...

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self.news.clear()
                await self.news.wait()

    def row(self, y: int) -> str:
        strip = self.pane.strip(y)
        return strip.text.rstrip() if strip else ""


async def live(runs: int) -> dict[str, object]:
    """Echo through PTY, keeper's socket, worker and decoder; and recovery from a dead worker."""
    echoes: list[float] = []
    recoveries: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "s"
        hub = PaneHub(cache=cache_folder(), launcher=LAUNCHER)
        async with PaneServer(socket, ["cat"]):
            await hub.start()
            pane = hub.open("bench", socket)
            pane.set_rate("focused")
            painter = Painter(pane)
            await painter.until(lambda: pane.state == "live")
            for number in range(40 * runs):
                await echo(painter, number, echoes)
            for number in range(runs):
                # a pane of its own each time: one that loses its worker often is given up
                await recover(Painter(hub.open(f"dies {number}", socket)), recoveries)
            await hub.close()
    echoes.sort()
    return {
        "echo_ms": {
            "p50": round(echoes[len(echoes) // 2], 2),
            "p90": round(echoes[len(echoes) * 9 // 10], 2),
        },
        "recovery_ms": summary(recoveries),
    }


async def echo(painter: Painter, number: int, taken: list[float]) -> None:
    """Type one more character on an idle pane, twenty a line; `cat` and the PTY echo it."""
    if number and not number % 20:
        painter.pane.send_key("ctrl+u", None)
        await painter.until(lambda: painter.pane.cursor is not None and painter.pane.cursor.x == 0)
    wanted = number % 20 + 1
    await asyncio.sleep(0.02)
    begin = time.perf_counter()
    painter.pane.send_key("x", "x")
    await painter.until(lambda: painter.row(0) == "x" * wanted)
    taken.append((time.perf_counter() - begin) * 1000)


async def recover(painter: Painter, taken: list[float]) -> None:
    pane = painter.pane
    pane.set_rate("focused")
    await painter.until(lambda: pane.state == "live" and painter.row(0) != "")
    page = [painter.row(y) for y in range(pane.rows)]
    pid = pane.worker_pid
    await asyncio.sleep(1.0)  # let the spare worker get ready, as it would be
    begin = time.perf_counter()
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    await painter.until(lambda: pane.worker_pid not in (pid, None) and pane.state == "live")
    await painter.until(lambda: [painter.row(y) for y in range(pane.rows)] == page)
    taken.append((time.perf_counter() - begin) * 1000)


def main() -> None:
    runs = runs_wanted(3)
    publish(
        {
            "binding_import_cpu_ms": repeat(import_cpu, runs),
            "worker_start_ms": repeat(worker_start, runs),
            "worker_memory_mb": worker_memory(),
            "feed_mb_per_cpu_s": {
                name: repeat(functools.partial(throughput, make), runs)
                for name, make in WORKLOADS.items()
            },
            "frame_cpu_ms_120x40": {name: frame_costs(make) for name, make in WORKLOADS.items()},
            **asyncio.run(live(runs)),
        }
    )


if __name__ == "__main__":
    main()
