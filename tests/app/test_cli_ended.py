"""A command that something ends from outside cleans up as it does after ctrl+c."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = """
import asyncio, sys, time
from pathlib import Path
from app.cli.ended import as_ctrl_c
from app.services.owned_folders import OwnedFolder

async def machine():
    try:
        print("at work", flush=True)
        await asyncio.sleep(600)
    finally:
        await asyncio.sleep(0)  # the end of a machine takes turns of the loop
        print("machine ended", flush=True)

def blocks():
    print("at work", flush=True)
    time.sleep(600)

with as_ctrl_c():
    folder = OwnedFolder("scratch-", Path(sys.argv[1]))
    try:
"""
TAIL = """
    finally:
        folder.close()
"""
WORK = {"blocks": "        blocks()", "loop": "        asyncio.run(machine())"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("begun", ["here", "in the background"])
def test_nothing_is_left(tmp_path: Path, number: signal.Signals, work: str, begun: str) -> None:
    # a shell has the commands that it starts in the background ignore ctrl+c
    head = "" if begun == "here" else "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    with subprocess.Popen(
        [sys.executable, "-c", head + HEAD + WORK[work] + TAIL, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "at work\n"
            assert len(os.listdir(tmp_path)) == 1
            child.send_signal(number)
            said, complaint = child.communicate(timeout=60)
        finally:
            child.kill()
    assert (child.returncode, complaint) == (128 + number, "")
    assert said == ("machine ended\n" if work == "loop" else "")
    assert os.listdir(tmp_path) == []


def test_what_nohup_ignores_stays_ignored(tmp_path: Path) -> None:
    script = """
import os, signal
from app.cli.ended import as_ctrl_c
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with as_ctrl_c():
    os.kill(os.getpid(), signal.SIGHUP)
    print("went on")
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
"""
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, capture_output=True, cwd=ROOT, timeout=60, check=True, text=True)
    assert done.stdout == "went on\nTrue\n"
