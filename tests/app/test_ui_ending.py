"""The workstation under a signal from outside: it leaves as ever, and ends by that signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

CHILD = """
import asyncio, sys, time
from app.ui import ending

ending.PATIENCE_S = 1

async def body():
    left = asyncio.Event()
    leave.append(left.set)
    print("ready", flush=True)
    if sys.argv[1] == "blocked":
        time.sleep(60)  # that is the test: a loop that gets no turn
    await left.wait()
    print("left", flush=True)

leave = []
with ending.ended_by_signals(lambda: leave[0]()):
    asyncio.run(body())
print("never said")
"""


def start(how: str) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, how],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    return child


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_it_leave_first(number: signal.Signals) -> None:
    child = start("well")
    child.send_signal(number)
    said, _ = child.communicate(timeout=30)
    assert (said, child.returncode) == ("left\n", -number)


def test_one_that_cannot_leave_ends_all_the_same() -> None:
    child = start("blocked")
    child.send_signal(signal.SIGTERM)
    said, _ = child.communicate(timeout=30)
    assert (said, child.returncode) == ("", -signal.SIGALRM)
