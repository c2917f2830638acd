"""The agent's terminal from a real one, and the session's SSH server from a real ssh."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.records import read_session
from tests.doubles.pane_watch import Watcher, hub_of
from tests.e2e.sessions import LAUNCHER, World
from tests.e2e.tmux import TmuxTerminal

if TYPE_CHECKING:
    from pathlib import Path

    from app.ui.pane import Pane


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
        ["ssh", "-F", "none", "-l", "agent"]
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


def test_one_client_holds_the_terminal_and_others_mirror_it(world: World, tmp_path: Path) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    words = ("run", "shell", "--detach", "--name", "shared", "--workspace", str(workspace))
    session = world.json(*words)["session"]
    world.wait_for(session, "state", "running")

    def attached(columns: int, rows: int, *options: str) -> TmuxTerminal:
        argv = [*shlex.split(COMMAND), "attach", *options, "shared"]
        return TmuxTerminal(tmp_path, argv, world.environment, columns, rows, tmp_path)

    with attached(100, 30) as first, attached(100, 30, "--read-only") as watcher:
        first.until("agent@cloche", 60)
        first.type("stty size\n")
        first.until("30 100", 30)
        watcher.until("30 100", 30)
        watcher.type("echo never typed\n")
        watcher.until("read-only", 30)
        first.type("echo ma''rk\n")
        assert "never typed" not in first.until("mark", 30)
        with attached(80, 24) as second:
            second.until("agent@cloche", 30)
            first.until("ctrl+g t takes it back", 30)
            second.type("clear; stty size; echo by the sec''ond\n")
            for terminal in (first, second, watcher):
                terminal.until("by the second", 30)
            second.until("24 80", 30)
            first.type("echo dropped\n")
            first.until("ctrl+g t takes it back", 30)
            first.keys("C-g", "t")
            second.until("ctrl+g t takes it back", 30)
            first.type("stty size; echo taken ba''ck\n")
            for terminal in (first, second, watcher):
                assert "dropped" not in terminal.until("taken back", 30)
            first.until("30 100", 30)
            second.keys("C-g", "t")
            first.until("ctrl+g t takes it back", 30)
            second.keys("C-g", "d")
            second.until_ended()
        first.type("clear; stty size; echo inher''ited\n")
        first.until("inherited", 30)
        first.until("30 100", 30)
    assert world.json("rm", "--force", session)["ok"]


async def test_what_is_typed_while_worker_and_keeper_die_reaches_the_agent_once(
    world: World, tmp_path: Path
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    words = ("run", "shell", "--detach", "--name", "typing", "--workspace", str(workspace))
    session = world.json(*words)["session"]
    world.wait_for(session, "state", "running")
    async with hub_of() as hub:
        await hub.start()
        pane = hub.open(session, world.paths.sockets(session) / "pane.sock")
        watcher = Watcher(pane)
        await watcher.shows("agent@cloche", 60)
        type_all(pane, "cat > typed.txt\r")
        # until then the shell reads keys by itself, and what it reads ahead is not for cat
        wait = "until test -e typed.txt; do sleep 0.1; done"
        assert (
            await asyncio.to_thread(world.run, "exec", session, "--", "sh", "-c", wait)
        ).status == 0
        type_all(pane, "1 before\r2 ")
        assert pane.worker_pid is not None
        os.kill(pane.worker_pid, signal.SIGKILL)
        type_all(pane, "worker dies\r")
        await watcher.shows("2 worker dies", 30)
        world.kill_keeper(session)
        await watcher.enters("lost", 30)
        type_all(pane, "3 keeper dies\r")
        # asking for anything brings a new keeper
        assert (await asyncio.to_thread(world.run, "exec", session, "--", "true")).status == 0
        await watcher.shows("3 keeper dies", 30)
        type_all(pane, "4 after\r")
        await watcher.shows("4 after", 30)
        pane.send_key("ctrl+d", None)
        done = await asyncio.to_thread(world.run, "exec", session, "--", "cat", "typed.txt")
        assert done.stdout == b"1 before\n2 worker dies\n3 keeper dies\n4 after\n"
        assert watcher.refused == []
    assert world.json("rm", "--force", session)["ok"]


def type_all(pane: Pane, text: str) -> None:
    for c in text:
        pane.send_key({" ": "space", "\r": "enter"}.get(c, c), c)
