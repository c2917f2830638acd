"""How fast terminal engines take a guest's output: ours, pyte and tmux from one run.

`python -m tests.bench.terminal_feed --json [--runs N]`. Megabytes per CPU second on a terminal of
120x40 with scrollback, in pieces of 16 KiB. Goals: at least 20 on each class of output, and at
least twenty times pyte. `ours` takes answers and happenings after each piece, as the worker does;
`ours_60hz` draws and packs a frame for each sixtieth of a second of CPU besides; `ours_worker` is
all that a real worker in its sandbox takes, its sockets and its frames included. `pyte` is its
screen with scrollback, for ours and tmux keep one too; `pyte_bare` is the one without, which is
three to five times as fast and is shown beside. On `d_scripts` that one throws most of the text
away (it drops the rest of a line at the first joiner or variation selector); `pyte_drops` says how
much. tmux is a detached pane of a server of its own, measured from outside.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import pyte

from tests.bench.processes import cpu_seconds
from tests.bench.report import publish, runs_wanted, summary
from tests.bench.terminal_inputs import CLASSES, sample
from tests.doubles.engines import engine
from tests.doubles.worker_link import WorkerProcess
from vm.terminal.wire_frame import pack_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE: Final = 120, 40
PIECE: Final = 16_384
BYTES: Final = 8_000_000
PYTE_CPU_S: Final = 1.5
"""pyte is fed until it has used that much CPU; all of a sample would take it half a minute."""

QUIET_S: Final = 0.5
TMUX_S: Final = 60
HISTORY: Final = "10000"
GOAL_MB: Final = 20
GOAL_TIMES_PYTE: Final = 20


def pieces(data: bytes) -> list[bytes]:
    """Cut data as a connection would."""
    return [data[at : at + PIECE] for at in range(0, len(data), PIECE)]


def ours(data: bytes, *, frames: bool = False) -> float:
    """MB per CPU second of our engine."""
    terminal = engine(*SIZE)
    parts = pieces(data)
    begin = drawn = time.process_time()
    for number, piece in enumerate(parts):
        terminal.feed(piece)
        terminal.take_replies()
        terminal.take_happenings()
        if frames and time.process_time() - drawn >= 1 / 60:
            drawn = time.process_time()
            pack_frame(number, terminal.frame())
    taken = time.process_time() - begin
    terminal.close()
    return len(data) / 1e6 / taken


def worker(data: bytes) -> float:
    """MB per CPU second of a worker process whose keeper sends as fast as it acknowledges."""
    with WorkerProcess() as process:
        keeper = process.open(size=SIZE)
        keeper.live()
        process.frame()
        pid = process.process.pid
        begin = cpu_seconds([pid])
        drawing = threading.Thread(target=draw_until_quiet, args=(process,))
        drawing.start()
        for piece in pieces(data):
            keeper.output(piece)
            keeper.acked(len(piece))
        drawing.join()
        return len(data) / 1e6 / (cpu_seconds([pid]) - begin)


def draw_until_quiet(process: WorkerProcess) -> None:
    """Take frames as a screen does, until none comes."""
    with contextlib.suppress(TimeoutError):
        while True:
            process.frame(QUIET_S)


class Counting(pyte.Screen):
    """Counts the characters that it is given and those that it goes past."""

    given = drawn = 0

    def draw(self, data: str) -> None:
        seen = Watched(data)
        super().draw(seen)
        self.given += len(data)
        self.drawn += seen.taken


class Watched(str):
    """Text that knows how much of it was looked at."""

    taken = 0

    def __iter__(self) -> Iterator[str]:
        for character in super().__iter__():
            self.taken += 1
            yield character

    def translate(self, table: object, /) -> Watched:
        """Stay watched: pyte translates what it draws."""
        return self


def dropped(data: bytes) -> float:
    """Return the share of characters that pyte never looks at."""
    screen = Counting(*SIZE)
    pyte.ByteStream(screen).feed(data)
    return round(1 - screen.drawn / screen.given, 3)


def pytes(data: bytes, screen: pyte.Screen, cpu_s: float = PYTE_CPU_S) -> tuple[float, int]:
    """MB per CPU second of a screen of pyte, and how many pieces it failed on."""
    stream = pyte.ByteStream(screen)
    begin, fed, failed = time.process_time(), 0, 0
    for piece in pieces(data):
        try:
            stream.feed(piece)
        except Exception:  # it raises a dozen kinds on valid output; that is one of its figures
            failed += 1
        fed += len(piece)
        if time.process_time() - begin > cpu_s:
            break
    return fed / 1e6 / (time.process_time() - begin), failed


def tmuxes(path: Path) -> float:
    """MB per CPU second of a tmux server whose detached pane shows a file."""
    name = f"cloche-bench-{uuid4().hex[:8]}"
    size = ["-x", str(SIZE[0]), "-y", str(SIZE[1])]

    def tmux(*arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-L", name, *arguments],
            env={"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
            capture_output=True,
            check=True,
            text=True,
            timeout=TMUX_S,
        )
        return done.stdout

    try:
        tmux("-f", os.devnull, "new-session", "-d", *size, "--", "cat")
        tmux("set", "-g", "history-limit", HISTORY)
        steps = "tmux wait-for -S here; tmux wait-for go; cat %s; tmux wait-for -S done"
        tmux("new-window", "-d", "--", "sh", "-c", f"stty raw; {steps % path}; cat")
        server = int(tmux("display-message", "-p", "#{pid}"))
        tmux("wait-for", "here")
        begin = cpu_seconds([server])
        tmux("wait-for", "-S", "go")
        tmux("wait-for", "done")
        return path.stat().st_size / 1e6 / (cpu_seconds([server]) - begin)
    finally:
        subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, timeout=20)


def one_class(name: str, runs: int, folder: Path) -> dict[str, object]:
    """Every figure of one class of output."""
    data = sample(name, BYTES)
    path = folder / name
    path.write_bytes(data)
    ours(data[:1_000_000])
    alone = [ours(data) for _ in range(runs)]
    drawn = [ours(data, frames=True) for _ in range(runs)]
    confined = [worker(data) for _ in range(runs)]
    few = range(max(1, runs // 2))
    whole = [pytes(data, pyte.HistoryScreen(*SIZE, history=int(HISTORY))) for _ in few]
    bare = [pytes(data, pyte.Screen(*SIZE)) for _ in few]
    tmux_speed = [tmuxes(path) for _ in few]
    ratios = [
        round(statistics.median(alone) / statistics.median(speed for speed, _ in it), 1)
        for it in (whole, bare)
    ]
    return {
        "ours": summary(alone),
        "ours_60hz": summary(drawn),
        "ours_worker": summary(confined),
        "pyte": summary([speed for speed, _ in whole]),
        "pyte_bare": summary([speed for speed, _ in bare]),
        "pyte_pieces_failed": max(failed for _, failed in whole),
        "pyte_drops": dropped(data[:300_000]),
        "tmux": summary(tmux_speed),
        "times_pyte": ratios[0],
        "times_pyte_bare": ratios[1],
        "meets_goals": statistics.median(alone) >= GOAL_MB and ratios[0] >= GOAL_TIMES_PYTE,
    }


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(3)
    with tempfile.TemporaryDirectory() as name:
        figures = {each: one_class(each, runs, Path(name)) for each in CLASSES}
    publish({"mb_per_cpu_second": figures, "runs": runs})


if __name__ == "__main__":
    main()
