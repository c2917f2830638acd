"""What a session gives back: a guest's memory, used (512 MB) and freed, and what its keeper holds.

A real session. `held_mb` is what QEMU held when a program that had used the memory ended,
`freed_mb` what it held `--seconds` after that program had ended, `before_mb` what it had held at
first. `returned` is the share of the growth that the host has again. Goals: at least 0.7 within
60 s; keeper at most 80 MB resident.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Final

from tests.bench.idle import resident_mb
from tests.bench.quiet import quiet_world
from tests.bench.report import publish

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.sessions import World

USED_MB: Final = 512
GOAL: Final = 0.7
LOOK_S: Final = 1.0

HOLD: Final = (
    "import sys\n"
    f"held = bytearray(b'x') * {USED_MB * 1_000_000}\n"
    "print('held', flush=True)\n"
    "sys.stdin.read(1)\n"
)
"""Every page of it is written, or the guest's kernel would not have it."""


def use_and_free(world: World, session: str, pid: int, seconds: float) -> dict[str, object]:
    """Let the guest use memory and free it; what QEMU held on the way."""
    before = resident_mb(pid)
    answer = world.run("exec", session, "--", "python3", "-c", HOLD)
    assert answer.stdout == b"held\n", answer
    held, began = resident_mb(pid), time.monotonic()
    freed, reached = held, 0.0
    while time.monotonic() - began < seconds:
        freed = resident_mb(pid)
        if not reached and held - freed >= GOAL * (held - before):
            reached = round(time.monotonic() - began, 1)
        time.sleep(LOOK_S)
    return {
        "before_mb": before,
        "held_mb": held,
        "freed_mb": freed,
        "returned": round((held - freed) / max(1.0, held - before), 3),
        "goal_reached_s": reached or None,
    }


def measure(world: World, project: Path, seconds: float) -> dict[str, object]:
    """Start a quiet session and look at both its processes."""
    session = world.json("run", "shell", "--detach", "--workspace", str(project))["session"]
    world.wait_for(session, "state", "running")
    machine = world.state(session).machine
    assert machine is not None
    figures = use_and_free(world, session, machine.pid, seconds)
    return {**figures, "used_mb": USED_MB, "keeper_mb": resident_mb(world.keeper(session))}


def main() -> None:
    """Read the options, measure, publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the output is JSON in any case")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with quiet_world() as (world, project):
        publish(measure(world, project, options.seconds))


if __name__ == "__main__":
    main()
