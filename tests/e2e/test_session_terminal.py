"""The agent's terminal from a real one, and the session's SSH server from a real ssh."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.records import read_session
from tests.e2e.sessions import LAUNCHER, World
from tests.e2e.tmux import TmuxTerminal

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.vm

PROMPT = "host> "
COMMAND = shlex.join([sys.executable, "-P", str(LAUNCHER)])


def at_prompt(screen: str) -> bool:
    return screen.rstrip().endswith(PROMPT.rstrip())


def ssh(world: World, session: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run the system's ssh through `cloche proxy`, the session's key being the only known one."""
    known = world.paths.state / "known_hosts"
    key = read_session(world.paths.session(session)).control_key
    known.write_text(f"{session} {key}\n")
    options = {
        "ProxyCommand": f"{COMMAND} proxy {session}",
        "UserKnownHostsFile": known,
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
    }
    return subprocess.run(
        ["ssh", "-F", "none"]
        + [f"-o{name}={value}" for name, value in options.items()]
        + [session, *words],
        input=b"from stdin",
        capture_output=True,
        env=world.environment,
        timeout=60,
        check=False,
    )


def test_run_leave_attach_and_end_in_a_real_terminal(world: World, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    environment = world.environment | {"TERM": "tmux-256color", "PS1": PROMPT}
    with TmuxTerminal(
        tmp_path, ["bash", "--norc"], environment, columns=100, rows=30, cwd=tmp_path
    ) as terminal:
        terminal.type(f"{COMMAND} run shell --workspace {workspace} --name here\n")
        terminal.until("agent@cloche", 120)
        terminal.type("stty size\n")
        terminal.until("30 100", 30)
        terminal.resize(80, 24)
        terminal.type("sleep 1; stty size\n")
        terminal.until("24 80", 30)
        terminal.keys("C-g", "d")
        terminal.until("goes on", 30)
        (session,) = [one["id"] for one in world.json("ps")["sessions"]]
        assert world.shown(session)["state"] == "running"

        done = ssh(world, session, "cat; echo; id -un; exit 4")
        assert (done.returncode, done.stdout) == (4, b"from stdin\nagent\n"), done.stderr

        terminal.until(at_prompt, 30)
        terminal.type("clear\n")
        terminal.until(lambda screen: "agent@cloche" not in screen, 30)
        terminal.type(f"{COMMAND} attach here\n")
        terminal.until("agent@cloche", 30)
        terminal.type("echo made > made.txt\n")
        terminal.type("exit 3\n")
        terminal.until(at_prompt, 30)
        terminal.type("echo status=$?\n")
        terminal.until("status=3", 30)
    world.wait_for(session, "exit_code", 3)
    assert world.json("stop", session)["agent_state"] == "failed"
    assert [file["path"] for file in world.json("changes", session)["files"]] == ["made.txt"]
