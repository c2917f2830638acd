"""Screen updates a second of live panes, and the CPU that they take, on a real PTY.

`python -m tests.bench.terminal_fps --json [--runs N]`. Real panes with real workers show guests
that repaint at 60 Hz (one pane) or 30 Hz (nine). Updates are counted at the outer terminal by their
synchronised-update marks. CPU is per cent of one core: `screen` is the program on the terminal,
`workers` all of its workers together. Goals: one pane of 120x40 at 50 updates a second and at most
half a core for the screen; nine panes at 30 updates a second. Cases named `workstation` are the
whole workstation with its rail and headers; the others are panes and nothing else. In `eager` ones
all nine are drawn as often as the one with the keys, else the eight beside it twelve times a
second.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tests.bench.outer_terminal import OuterTerminal
from tests.bench.processes import children_of, cpu_seconds
from tests.bench.report import publish, runs_wanted, summary

if TYPE_CHECKING:
    from collections.abc import Generator

HERE: Final = Path(__file__).parent
START_S: Final = 60.0
SETTLE_S: Final = 2.0
WATCH_S: Final = 6.0


class Case(NamedTuple):
    """What is shown, and what it must reach."""

    panes: int
    columns: int
    rows: int
    work: str
    updates: int = 0
    """Least updates a second, 0 where there is no goal."""
    percent: int = 0
    """Most per cent of a core for the screen, 0 where there is no goal."""
    kind: Literal["", "eager", "workstation"] = ""
    """See above."""

    @property
    def rate(self) -> int:
        """Steps a second of each guest."""
        return 60 if self.panes == 1 else 30

    @property
    def name(self) -> str:
        """Name in the figures."""
        kind = f", {self.kind}" if self.kind else ""
        return f"{self.panes} in {self.columns}x{self.rows}, {self.work}{kind}"

    def argv(self, folder: Path) -> list[str]:
        """Return the program that shows it."""
        if self.kind == "workstation":
            program = [str(HERE / "terminal_workstation.py"), str(folder), str(self.panes)]
        else:
            program = [str(HERE / "terminal_app.py"), str(folder), str(self.panes), self.kind]
        return [sys.executable, *program]


KINDS: Final[tuple[Literal["eager", "workstation"], ...]] = ("eager", "workstation")
CASES: Final = (
    Case(1, 120, 40, "full_screen", 50, 50),
    Case(1, 120, 40, "agent", 50, 50),
    Case(1, 120, 40, "plain_scroll", 50, 50),
    Case(1, 120, 40, "truecolor"),
    Case(1, 120, 40, "spinner", 50, 50),
    *(
        Case(9, *size, work, 30 if work != "truecolor" else 0)
        for size in ((360, 120), (200, 60))
        for work in ("full_screen", "agent", "plain_scroll", "truecolor")
    ),
    *(
        Case(9, *size, "full_screen", 30, kind=kind)
        for size in ((360, 120), (200, 60))
        for kind in KINDS
    ),
    Case(9, 200, 60, "agent", 30, kind="workstation"),
)


@contextlib.contextmanager
def guests(folder: Path, panes: int, work: str, rate: int) -> Generator[None]:
    """Serve the guests of a case."""
    argv = [sys.executable, str(HERE / "terminal_guests.py"), str(folder)]
    with subprocess.Popen([*argv, str(panes), work, str(rate)], stdin=subprocess.PIPE) as process:
        try:
            until_there(folder / "ready")
            yield
        finally:
            process.kill()


def until_there(path: Path) -> None:
    """Wait until a file exists."""
    end = time.monotonic() + START_S
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(path.name)
        time.sleep(0.02)


def until_drawn(folder: Path, terminal: OuterTerminal) -> None:
    """Wait until the guests repaint."""
    end = time.monotonic() + START_S
    while not (folder / "steps").exists():
        terminal.drain(0.1)
        if not terminal.open or time.monotonic() > end:
            raise RuntimeError("the panes did not come up")


def steps(folder: Path) -> int:
    """Return how many steps each guest was given."""
    text = (folder / "steps").read_text()
    return int(text) if text else steps(folder)


def measure(case: Case, folder: Path) -> dict[str, float]:
    """Run a case once."""
    with (
        guests(folder, case.panes, case.work, case.rate),
        OuterTerminal(case.argv(folder), case.columns, case.rows, {}) as terminal,
    ):
        until_drawn(folder, terminal)
        if case.kind == "workstation":
            terminal.send(b"1")  # gives the first pane the keys
        terminal.drain(SETTLE_S)
        workers = list(children_of(terminal.pid))
        begin = time.monotonic()
        before = terminal.updates, terminal.bytes, steps(folder)
        cpu = cpu_seconds([terminal.pid]), cpu_seconds(workers)
        terminal.drain(WATCH_S)
        cpu = cpu_seconds([terminal.pid]) - cpu[0], cpu_seconds(workers) - cpu[1]
        after = terminal.updates, terminal.bytes, steps(folder)
        taken = time.monotonic() - begin
    updates, written, given = (now - then for now, then in zip(after, before, strict=True))
    return {
        "updates_s": updates / taken,
        "screen_percent": 100 * cpu[0] / taken,
        "screen_ms_per_update": 1000 * cpu[0] / max(1, updates),
        "workers_percent": 100 * cpu[1] / taken,
        "guest_steps_s": given / taken,
        "kb_per_update": written / 1e3 / max(1, updates),
    }


def repeated(case: Case, runs: int) -> dict[str, object]:
    """Run a case several times."""
    found: list[dict[str, float]] = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            found.append(measure(case, Path(folder)))
    figures: dict[str, object] = {
        name: summary([round(run[name], 1) for run in found]) for name in found[0]
    }
    if case.updates:
        middle = sorted(found, key=lambda run: run["updates_s"])[len(found) // 2]
        fast = middle["updates_s"] >= case.updates
        cheap = not case.percent or middle["screen_percent"] <= case.percent
        figures["meets_goals"] = fast and cheap
    return figures


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(3)
    publish({case.name: repeated(case, runs) for case in CASES})


if __name__ == "__main__":
    main()
