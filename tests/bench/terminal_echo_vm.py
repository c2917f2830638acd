"""How long a typed key takes to be seen from a real machine, and what each part of the way adds.

`python -m tests.bench.terminal_echo_vm --json [--runs N]`; boots a machine, then a second one whose
terminal floods (`yes`). Milliseconds from the key's byte going into the outer terminal until its
echo leaves it, `cat` in the guest. `ssh` is OpenSSH through `cloche proxy`, `attach` is `cloche
attach` (the keeper's socket, no emulation), `ours` is the workstation. `added_to_…` is ours less
theirs: an agent's terminal is held by the guest's PID 1, a plain ssh's by its sshd. Without KVM the
guest is emulated, and its part of the time is by far the largest.
"""

from __future__ import annotations

import contextlib
import random
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.paths import Paths
from app.records import read_session
from tests.bench.outer_terminal import OuterTerminal, plain
from tests.bench.report import publish, runs_wanted
from tests.bench.terminal_echo import quantiles, typed_and_seen
from tests.e2e.sessions import LAUNCHER, World

if TYPE_CHECKING:
    from collections.abc import Generator

CLOCHE: Final = [sys.executable, "-P", str(LAUNCHER)]
SIZE: Final = 160, 48
SEEN_S: Final = 60.0
READY: Final = b"now-typing"
FLOOD: Final = b"yes some plain output that goes by\r"


def start(world: World, project: Path, name: str) -> str:
    """Boot a session of a shell; return its id."""
    told = world.json("run", "shell", "--detach", "--name", name, "--workspace", str(project))
    session = str(told["session"])
    world.wait_for(session, "state", "running")
    return session


def ssh_argv(world: World, session: str) -> list[str]:
    """Return the command of OpenSSH to a session, with a terminal."""
    known = world.paths.state / "known_hosts"
    known.write_text(f"{session} {read_session(world.paths.session(session)).control_key}\n")
    options = {
        "ProxyCommand": " ".join([*CLOCHE, "proxy", session]),
        "UserKnownHostsFile": str(known),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "LogLevel": "ERROR",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-tt", "-F", "none", *words, session, "cat"]


def ready(terminal: OuterTerminal) -> None:
    """Wait until what is typed is echoed."""
    for _ in range(int(SEEN_S)):
        terminal.send(b"\r" + READY)
        if READY in plain(terminal.drain(1.0)):
            terminal.drain(1.0)
            return
    raise TimeoutError("nothing is echoed")


@contextlib.contextmanager
def workstation(world: World, project: Path) -> Generator[OuterTerminal]:
    """Open the workstation and give the first session the keys."""
    environment = {**world.environment, "CLOCHE_DEBUG": "1"}
    with OuterTerminal(CLOCHE, *SIZE, environment, cwd=project) as terminal:
        terminal.until(lambda data: b"echoes" in plain(data), SEEN_S)
        terminal.drain(2.0)
        terminal.send(b"1")
        ready(terminal)
        yield terminal


def measure(world: World, project: Path, session: str, runs: int) -> dict[str, object]:
    """Measure each way to the same machine."""
    seed = random.Random(5)
    found: dict[str, list[float]] = {"ours": [], "attach": [], "ssh": []}
    with workstation(world, project) as terminal:
        for _ in range(runs):
            found["ours"] += typed_and_seen(terminal, seed, whole=True)
    others = {"attach": [*CLOCHE, "attach", session], "ssh": ssh_argv(world, session)}
    for name, argv in others.items():
        with OuterTerminal(argv, *SIZE, world.environment, cwd=project) as terminal:
            ready(terminal)
            for _ in range(runs):
                found[name] += typed_and_seen(terminal, seed, whole=False)
    told = {name: quantiles(values) for name, values in found.items()}
    added = {
        f"added_to_{name}": {
            at: round(told["ours"][at] - told[name][at], 2) for at in ("p50", "p90")
        }
        for name in others
    }
    return {**told, **added}


def flood(world: World, project: Path, session: str) -> None:
    """Let the terminal of a session print without end."""
    argv = [*CLOCHE, "attach", session]
    with OuterTerminal(argv, *SIZE, world.environment, cwd=project) as terminal:
        terminal.until(lambda data: b"workspace$" in plain(data), SEEN_S)
        terminal.send(FLOOD)
        terminal.drain(1.0)


def main() -> None:
    """Measure and print."""
    runs = runs_wanted(2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        project = folder / "project"
        project.mkdir()
        (project / "a.txt").write_text("quiet\n")
        world = World(folder / "w", Paths.from_environment().store)
        try:
            session = start(world, project, "echoes")
            with OuterTerminal(
                [*CLOCHE, "attach", session], *SIZE, world.environment, cwd=project
            ) as terminal:
                terminal.until(lambda data: b"workspace$" in plain(data), SEEN_S)
                terminal.send(b"cat\r")
                ready(terminal)
            idle = measure(world, project, session, runs)
            flood(world, project, start(world, project, "floods"))
            flooded = measure(world, project, session, runs)
        finally:
            world.close()
    publish({"echo_ms": {"idle": idle, "another machine floods": flooded}, "runs": runs})


if __name__ == "__main__":
    main()
