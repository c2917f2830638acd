"""What every benchmark shares: repeated runs, medians, the machine's load, and JSON on stdout."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return minimum, median and maximum of `values`."""
    return {
        "min": round(min(values), 4),
        "median": round(statistics.median(values), 4),
        "max": round(max(values), 4),
    }


def runs_wanted(default: int = 5) -> int:
    """Read `--runs N` from the command line; `--json` is accepted and always on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="the output is JSON in any case")
    parser.add_argument("--runs", type=int, default=default)
    return max(1, int(parser.parse_args().runs))


def repeat(measure: Callable[[], float], runs: int) -> dict[str, float]:
    """Call `measure` once to warm up, then `runs` times, and summarise what it returned."""
    measure()
    return summary([measure() for _ in range(runs)])


def publish(figures: Mapping[str, object]) -> None:
    """Print the figures with the load that the machine had, as one JSON object."""
    load = [round(value, 2) for value in os.getloadavg()]
    sys.stdout.write(json.dumps({**figures, "load": load, "cpus": os.cpu_count()}, indent=1) + "\n")
