"""Plays random operations to an engine in a child process; a crash is seen as its signal.

    python -m tests.conformance.fuzz --seeds 100 --operations 2000      # seeds 0 … 99
    python -m tests.conformance.fuzz --seconds 600 --first 1000         # as many as the time allows
    python -m tests.conformance.fuzz --minimise 1234 --operations 2000  # the operations that matter

Every operation comes from the seed and its own number alone, so leaving some out changes no other
one: that makes minimising a matter of bisecting. The child keeps the number of the operation that
it is at in a file, where it stays when the child dies.
"""

from __future__ import annotations

import argparse
import json
import mmap
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.processes import peak
from tests.conformance.play import Player

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parents[2]
CHILD = ["-m", "tests.conformance.fuzz"]
MEMORY = 2 << 30
"""Address space of a child in bytes; its real use is checked against `RESIDENT`."""

RESIDENT = 250 << 20
"""Most memory that a child may have used, in bytes: interpreter, two screens, scrollback."""

HUNG = 124
"""Status of a child that did not come to its end, as of `timeout`."""

NOTE = struct.Struct("<I12s")
"""The operation that a child is at, and its name."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended: `status` as subprocess gives it, negative for a signal."""

    seed: int
    status: int
    operation: int
    doing: str
    words: str

    @property
    def good(self) -> bool:
        """True when nothing went wrong."""
        return self.status == 0

    @property
    def known(self) -> bool:
        """True for the engine's fault in resizing that docs/terminal-conformance.md describes."""
        return self.status == -signal.SIGSEGV and self.doing == "resize"

    def __str__(self) -> str:
        """Say it so that it can be played again."""
        how = signal.Signals(-self.status).name if self.status < 0 else f"status {self.status}"
        where = f"seed {self.seed}, operation {self.operation} ({self.doing})"
        return f"{where}: {how}\n{self.words}"


def play_child(seed: int, chosen: Sequence[int], note: Path, tiny: bool) -> None:
    """Play operations in this process, noting each one before it is done."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with note.open("r+b") as file, mmap.mmap(file.fileno(), NOTE.size) as board:
        player = Player(random.Random(seed), tiny=tiny)
        for operation in chosen:
            source = random.Random(seed * 1_000_003 + operation)
            chosen_step = player.pick(source)
            board[:] = NOTE.pack(operation, chosen_step.__name__.encode())
            player.step(chosen_step, source)
        player.compare()
    used = peak()
    assert used < RESIDENT, f"{used} bytes used"


def run(
    seed: int, operations: int | Sequence[int], *, tiny: bool = False, seconds: float = 600
) -> Ending:
    """Play one seed in a child and return how that ended."""
    chosen = list(range(operations)) if isinstance(operations, int) else list(operations)
    with tempfile.TemporaryDirectory() as folder:
        note, plan = Path(folder, "note"), Path(folder, "plan")
        note.write_bytes(NOTE.pack(0, b""))
        plan.write_text(json.dumps(chosen))
        files = ["--plan", str(plan), "--note", str(note)]
        argv = [sys.executable, *CHILD, "--child", str(seed), *files]
        status, words = _wait([*argv, "--tiny"] if tiny else argv, seconds)
        at, doing = NOTE.unpack(note.read_bytes())
    return Ending(seed, status, at, doing.rstrip(b"\0").decode(), words)


def _wait(argv: Sequence[str], seconds: float) -> tuple[int, str]:
    try:
        done = subprocess.run(
            argv, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return HUNG, f"not done after {seconds:.0f} s"
    return done.returncode, done.stderr[-3000:]


def minimise(seed: int, operations: int, fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Return operations that still fail and of which none can be left out (as far as tried)."""
    left = list(range(operations))
    size = len(left) // 2
    while size:
        at = 0
        while at < len(left):
            fewer = left[:at] + left[at + size :]
            if fails(fewer):
                left = fewer
            else:
                at += size
        size //= 2
    return left


def main() -> int:
    """Play seeds, or minimise one; the exit status is 1 when a child ended badly."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.fuzz")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1_000_000, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=60.0, help="stop after so long")
    parser.add_argument("--operations", type=int, default=2000, help="operations a seed")
    parser.add_argument("--tiny", action="store_true", help="stay at the smallest sizes")
    parser.add_argument("--minimise", type=int, help="find the operations of this seed that fail")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--plan", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--note", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child is not None:
        play_child(asked.child, json.loads(asked.plan.read_text()), asked.note, asked.tiny)
        return 0
    if asked.minimise is not None:
        return _minimise(asked.minimise, asked.operations, asked.tiny)
    return _many(asked)


def _minimise(seed: int, operations: int, tiny: bool) -> int:
    first = run(seed, operations, tiny=tiny)
    sys.stdout.write(f"{first}\n")
    if first.good:
        return 0
    left = minimise(
        seed,
        first.operation + 1,
        lambda chosen: run(seed, chosen, tiny=tiny).status == first.status,
    )
    sys.stdout.write(f"{len(left)} operations matter: {left}\n{run(seed, left, tiny=tiny)}\n")
    return 1


def _many(asked: argparse.Namespace) -> int:
    begin = time.monotonic()
    bad: list[Ending] = []
    played = 0
    for seed in range(asked.first, asked.first + asked.seeds):
        if time.monotonic() - begin > asked.seconds:
            break
        ending = run(seed, asked.operations, tiny=asked.tiny)
        played += 1
        if not ending.good:
            bad.append(ending)
            sys.stdout.write(f"{ending}\n")
            sys.stdout.flush()
    spent = time.monotonic() - begin
    each = f"{asked.operations} operations in {spent:.0f} s"
    known = sum(it.known for it in bad)
    told = f"{len(bad)} ended badly, {known} of them in the known fault"
    sys.stdout.write(f"{played} seeds of {each}, {told}\n")
    return 1 if len(bad) > known else 0


if __name__ == "__main__":
    raise SystemExit(main())
