"""Eight sessions: one after the other for what a start costs, then all at once for failures.

What is counted of a start is the CPU of its keeper and of QEMU until the agent runs. In the first
part every session that was started stays, and `ratio` is what the eighth start cost, compared with
the first. In the second part eight run `true` headless, all started at the same moment.
Goals: no failure, ratio at most 1.3.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

from tests.bench.processes import cpu_seconds
from tests.bench.quiet import quiet_world
from tests.bench.report import publish, summary
from tests.e2e.sessions import LAUNCHER, World

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COUNT: Final = 8
CONFIG: Final = "defaults: {memory: 512, vcpus: 1, scratch: 2}\n"
RUN_S: Final = 600


def command(project: Path, *words: str) -> list[str]:
    """Return a command line that starts a session of a quiet agent."""
    return [
        *(sys.executable, "-P", str(LAUNCHER), "run", "shell", "--json"),
        *("--workspace", str(project), *words),
    ]


def cost_of(world: World, session: str) -> float:
    """CPU seconds that a session's keeper and machine have used so far."""
    machine = world.state(session).machine
    assert machine is not None
    return cpu_seconds([world.keeper(session), machine.pid])


def one_start(world: World, project: Path) -> dict[str, float]:
    """Start a session and leave it running; CPU and wall clock until it runs."""
    began = time.monotonic()
    session = world.json("run", "shell", "--detach", "--workspace", str(project))["session"]
    world.wait_for(session, "state", "running", seconds=RUN_S)
    return {"cpu_s": cost_of(world, session), "wall_s": time.monotonic() - began}


def at_once(world: World, project: Path, count: int) -> dict[str, object]:
    """Start `count` sessions in the same moment, each to its agent's end."""
    words = command(project, "--headless", "--", "-c", "true")
    began = time.monotonic()
    running = [
        subprocess.Popen(words, env=world.environment, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    answers = [child.communicate(timeout=RUN_S)[0] for child in running]
    failed = [text for child, text in zip(running, answers, strict=True) if child.returncode]
    return {
        "count": count,
        "failed": len(failed),
        "failures": failed,
        "wall_s": round(time.monotonic() - began, 1),
    }


def remove_all(world: World) -> None:
    """Leave no session."""
    for session in world.json("ps")["sessions"]:
        world.json("rm", session["id"], "--force")


def measure(world: World, project: Path, rounds: int) -> dict[str, object]:
    """Do both parts; the first one `rounds` times, after one start to warm up."""
    one_start(world, project)
    remove_all(world)
    firsts, lasts, walls = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        starts = [one_start(world, project) for _ in range(COUNT)]
        remove_all(world)
        firsts.append(starts[0]["cpu_s"])
        lasts.append(starts[-1]["cpu_s"])
        walls += [start["wall_s"] for start in starts]
    return {
        "rounds": rounds,
        "first_cpu_s": summary(firsts),
        "eighth_cpu_s": summary(lasts),
        "ratio": ratio(firsts, lasts),
        "start_wall_s": summary(walls),
        "at_once": at_once(world, project, COUNT),
    }


def ratio(firsts: Sequence[float], lasts: Sequence[float]) -> float:
    """Return the last starts' median cost in terms of the first starts'."""
    return round(summary(lasts)["median"] / summary(firsts)["median"], 3)


def main() -> None:
    """Read the options, measure, publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the output is JSON in any case")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with quiet_world() as (world, project):
        world.paths.config.mkdir(parents=True)
        (world.paths.config / "config.yaml").write_text(CONFIG)
        publish(measure(world, project, max(1, options.rounds)))


if __name__ == "__main__":
    main()
