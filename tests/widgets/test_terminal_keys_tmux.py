"""Within tmux that has extended keys on, as its users set it: more keys can be told."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from tests.doubles.outer_pty import PROGRAM
from tests.doubles.pane_server import PaneServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")

KEYS = [
    ("S-Enter", b"\x1b[13;2u"),
    ("C-Enter", b"\x1b[13;5u"),
    ("M-Enter", b"\x1b[13;3u"),
    ("C-1", b"\x1b[49;5u"),
    ("C-a", b"\x1b[97;5u"),
    ("C-S-a", b"\x1b[97;6u"),
    ("M-a", b"\x1b[97;3u"),
    ("M-S-Up", b"\x1b[1;4A"),
    ("S-F3", b"\x1b[13;2~"),
    ("BTab", b"\x1b[9;2u"),
    ("Escape", b"\x1b[27u"),
    ("C-Space", b"\x1b[32;5u"),
]


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[list[str]]:
    """The begin of a command for a server of this test's own."""
    settings = tmp_path / "tmux.conf"
    settings.write_text("set -s extended-keys on\nset -g default-terminal tmux-256color\n")
    command = ["tmux", "-u", "-L", f"cloche-test-{uuid4().hex[:8]}", "-f", str(settings)]
    yield command
    subprocess.run([*command, "kill-server"], check=False, capture_output=True)


async def test_keys_within_tmux(tmp_path: Path, tmux: list[str]) -> None:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(tmp_path)}
    async with PaneServer(tmp_path / "s") as guest:
        await guest.put(b"\x1b[>1u")
        program = [sys.executable, "-P", str(PROGRAM), str(tmp_path / "s")]
        begin = [*tmux, "new-session", "-d", "-x", "80", "-y", "24", "--", *program]
        subprocess.run(begin, check=True, env=environment)  # noqa: ASYNC221 - it goes off at once
        await guest.until(lambda: guest.acked > 0 and bool(guest.sizes))
        for key, wanted in KEYS:
            guest.typed.clear()
            subprocess.run([*tmux, "send-keys", key], check=True)  # noqa: ASYNC221 - it goes off at once
            await guest.until(lambda wanted=wanted: len(guest.typed) >= len(wanted))  # type: ignore[misc]  # mypy infers no type for `wanted`
            assert (key, bytes(guest.typed)) == (key, wanted)
