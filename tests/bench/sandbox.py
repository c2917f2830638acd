"""What one command in a machine of its own costs: `cloche sandbox -- true`, from start to gone.

`wall_s` is the whole command, Python's start and the end of machine and keeper included; `boot_ms`,
`exec_ms` and `total_ms` are what its report says. `start_s` is the command line alone
(`cloche version`), so that the rest can be told from it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench.report import publish, repeat, runs_wanted, summary
from tests.e2e.sessions import LAUNCHER, World
from tests.e2e.vmlab import PATHS

SMALL = ("--memory", "512", "--vcpus", "1", "--scratch", "2")
STEPS = ("boot_ms", "exec_ms", "total_ms")


def timed(world: World, *words: str) -> tuple[float, dict[str, Any]]:
    """Run one command; its seconds and its answer."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-P", str(LAUNCHER), *words],
        env=world.environment, cwd="/", capture_output=True, timeout=300, check=True,
    )  # fmt: skip
    return time.perf_counter() - began, json.loads(done.stdout)


def main() -> None:
    """Measure and print JSON."""
    runs = runs_wanted(5)
    with tempfile.TemporaryDirectory(prefix="csbx") as folder:
        world = World(Path(folder) / "w", PATHS.store)
        sandbox = ("sandbox", "--json", *SMALL, "--", "true")
        timed(world, *sandbox)  # finds out about accelerator and jail, which is remembered
        all_runs = [timed(world, *sandbox) for _ in range(runs)]
        publish(
            {
                "runs": runs,
                "wall_s": summary([wall for wall, _ in all_runs]),
                "start_s": repeat(lambda: timed(world, "version", "--json")[0], runs),
                **{step: summary([report[step] for _, report in all_runs]) for step in STEPS},
                "accelerator": all_runs[0][1]["accelerator"],
            }
        )


if __name__ == "__main__":
    main()
