"""How long a typed key takes to be seen, against a plain `ssh` in the same run.

`python -m tests.bench.terminal_echo --json [--runs N]`. Milliseconds from the key's byte going
into the outer terminal until its echo leaves it. Ours: PTY, workstation, worker, the keeper's real
`pane.sock`, SSH, PTY of `cat`, and back. `ssh` is OpenSSH's client on the same server in a terminal
of the same kind. `added` is the difference. Goals: at most 8 ms at p90 while nothing else happens,
at most 50 ms while another pane floods. The server is asyncssh on the loopback device and floods
through an SSH connection of its own, as each session has. For a real machine see `--vm`.
"""

from __future__ import annotations

import contextlib
import functools
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench.outer_terminal import OuterTerminal, plain
from tests.bench.report import publish, runs_wanted
from tests.bench.terminal_fps import HERE, START_S, until_there

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

KEYS: Final = 60
LINE: Final = 12
"""Keys before Enter."""

LETTERS: Final = "bcdfghjkmnpqrtvwxz"
ECHO_S: Final = 5.0
FLOODS: Final = {"idle": 0, "one other floods": 1, "eight others flood": 8}
GOALS_MS: Final = {"idle": 8, "one other floods": 50}
"""Most milliseconds that may be added at p90."""

SIZE: Final = 160, 48


def typed_and_seen(terminal: OuterTerminal, seed: random.Random, *, whole: bool) -> list[float]:
    """Type keys one after the other; `whole`: a changed line is printed again from its start."""
    taken: list[float] = []
    word = ""
    for number in range(KEYS):
        if not number % LINE:
            terminal.send(b"\r")
            word = ""
            terminal.drain(0.3)
        key = seed.choice(LETTERS)
        word += key
        wanted = (word if whole else key).encode()
        begin = time.perf_counter()
        terminal.send(key.encode())
        terminal.until(functools.partial(shows, wanted), ECHO_S)
        taken.append((time.perf_counter() - begin) * 1000)
        terminal.drain(0.03 + seed.random() * 0.03)
    return taken


def shows(wanted: bytes, data: bytes) -> bool:
    """Tell whether a text was printed."""
    return wanted in plain(data)


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Median, ninetieth per cent and worst."""
    ordered = sorted(values)
    p90 = ordered[len(ordered) * 9 // 10]
    return {
        "p50": round(ordered[len(ordered) // 2], 2),
        "p90": round(p90, 2),
        "max": round(ordered[-1], 2),
    }


@contextlib.contextmanager
def far_end(*arguments: str) -> Generator[None]:
    """Run a part of the far end."""
    argv = [sys.executable, str(HERE / "terminal_remote.py"), *arguments]
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as process:
        try:
            yield
        finally:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def session(stack: contextlib.ExitStack, folder: Path, number: int, command: Sequence[str]) -> Path:
    """Start a server and a keeper, as a session has its own; return the server's folder."""
    place = folder / f"server{number}"
    place.mkdir()
    stack.enter_context(far_end("sshd", str(place)))
    until_there(place / "port")
    socket = folder / f"{number}.sock"
    stack.enter_context(far_end("keeper", str(place), str(socket), *command))
    until_there(socket)
    return place


def ssh_argv(place: Path) -> list[str]:
    """Return the command of a plain ssh to a session's server."""
    options = {
        "StrictHostKeyChecking": "no",
        "UserKnownHostsFile": "/dev/null",
        "LogLevel": "ERROR",
        "PreferredAuthentications": "none",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    port = (place / "port").read_text()
    return ["ssh", "-tt", "-F", "none", *words, "-p", port, "bench@127.0.0.1", "cat"]


def measure(floods: int, seed: random.Random) -> dict[str, list[float]]:
    """Measure plain ssh and a pane while `floods` other panes flood."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = session(stack, folder, 0, ["cat"])
        for number in range(1, floods + 1):
            session(stack, folder, number, ["yes", "some plain output that goes by"])
        plain_ssh = stack.enter_context(OuterTerminal(ssh_argv(place), *SIZE, {}))
        argv = [sys.executable, str(HERE / "terminal_workstation.py"), str(folder), str(floods + 1)]
        screen = stack.enter_context(OuterTerminal(argv, *SIZE, {}))
        screen.until(lambda _: screen.updates > 0, START_S)
        screen.drain(3.0)  # workers start, and what a flood has printed so far is replayed
        screen.send(b"1")  # gives the first pane the keys
        screen.drain(1.0)
        plain_ssh.drain(0.5)
        return {
            "ours": typed_and_seen(screen, seed, whole=True),
            "ssh": typed_and_seen(plain_ssh, seed, whole=False),
        }


def main() -> None:
    """Measure and print."""
    runs, seed = runs_wanted(3), random.Random(5)
    figures: dict[str, dict[str, object]] = {}
    for name, floods in FLOODS.items():
        found: dict[str, list[float]] = {"ours": [], "ssh": []}
        for _ in range(runs):
            for side, values in measure(floods, seed).items():
                found[side] += values
        told = {side: quantiles(values) for side, values in found.items()}
        added = {at: round(told["ours"][at] - told["ssh"][at], 2) for at in ("p50", "p90")}
        figures[name] = {**told, "added": added}
        if name in GOALS_MS:
            figures[name]["meets_goals"] = added["p90"] <= GOALS_MS[name]
    publish({"echo_ms": figures, "keys": KEYS * runs})


if __name__ == "__main__":
    main()
