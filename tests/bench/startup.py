"""How long `cloche --version` and `cloche --help` take as whole processes. Goal: 150 ms each."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import cloche
from tests.bench.report import publish, repeat, runs_wanted

LAUNCHER = Path(cloche.__file__).resolve()


def wall_ms(argument: str) -> float:
    """Milliseconds from fork to exit of one call."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-P", str(LAUNCHER), argument], check=True, stdout=subprocess.DEVNULL
    )
    return (time.perf_counter() - start) * 1000


def bare_python_ms() -> float:
    """What the interpreter alone takes, to read the others against."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", ""], check=True)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    runs = runs_wanted()
    publish(
        {
            "python_ms": repeat(bare_python_ms, runs),
            "version_ms": repeat(lambda: wall_ms("--version"), runs),
            "help_ms": repeat(lambda: wall_ms("--help"), runs),
        }
    )
