"""The command with standard descriptors that are closed, full, or read by nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

LAUNCHER = Path(__file__).resolve().parents[2] / "cloche.py"
COMMAND_S = 60
COMMANDS = {
    "ps": 0,
    "ps --json": 0,
    "stop nothing": 4,
    "exec nothing -- true": 125,
    "--help": 0,
}
CLOSED = (">&-", "2>&-", "<&- >&- 2>&-")


class Said(NamedTuple):
    status: int
    out: str
    err: str


def call(tmp_path: Path, words: str, redirection: str) -> Said:
    command = f'exec "$0" -P "$1" {words} {redirection}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, str(LAUNCHER)],
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("closed", CLOSED)
def test_what_is_closed_changes_nothing_but_what_is_heard(
    tmp_path: Path, words: str, closed: str
) -> None:
    said = call(tmp_path, words, closed)
    assert said.status == COMMANDS[words]
    assert "Traceback" not in said.err
    answers, complains = said.status == 0, said.status != 0
    assert bool(said.out) == (answers and closed == "2>&-")
    assert bool(said.err) == (complains and closed == ">&-")


@pytest.mark.parametrize("words", ["ps", "ps --json", "--help", "--version", "stop nothing --json"])
def test_an_answer_that_cannot_be_written_is_a_failure_with_a_sentence(
    tmp_path: Path, words: str
) -> None:
    said = call(tmp_path, words, ">/dev/full")
    assert said.status == 1
    first, *rest = said.err.splitlines()
    assert first == "cloche: The answer could not be written: No space left on device."
    assert len(rest) <= 1


@pytest.mark.parametrize("words", ["ps", "stop nothing"])
def test_a_note_that_nobody_can_hear_changes_no_status(tmp_path: Path, words: str) -> None:
    assert call(tmp_path, words, "2>/dev/full").status == COMMANDS[words]


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "ps --json",
        "version",
        "image list",
        "agents list",
        "egress rules",
        "stop x --json",
    ],
)
def test_a_reader_that_has_gone_ends_it_silently(tmp_path: Path, words: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-P", str(LAUNCHER), *words.split()],
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
            stdout=gone,
            stderr=subprocess.PIPE,
            timeout=COMMAND_S,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


SHOW = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from app.standard import open_standard
open_standard()
file = os.open("/etc/passwd", os.O_RDONLY)
os.write(1, b"lost")
with open(sys.argv[2], "w") as answer:
    json.dump([os.readlink(f"/proc/self/fd/{n}") for n in range(3)] + [file], answer)
"""


def test_no_other_file_gets_a_standard_number(tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    words = [sys.executable, "-c", SHOW, str(LAUNCHER.parent), str(answer)]
    subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words], check=True, timeout=COMMAND_S
    )
    *paths, file = json.loads(answer.read_text())
    assert paths == ["/dev/null"] * 3
    assert file > 2
