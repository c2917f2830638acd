"""A session's life through the deaths of its keeper and its machine."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from app.client.session import SessionClient
from app.client.terminal import PaneClient
from tests.e2e.sessions import LAUNCHER, World, tree

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.vm


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "old.txt").write_text("old\n")
    return folder


async def typed(world: World, session: str, line: bytes, answer: bytes) -> None:
    """Type a line into the agent's terminal and wait for its answer."""
    async with await SessionClient.open(world.paths, session) as client:
        pane = await PaneClient.open(client.pane_socket_path)
        pane.take()
        seen, live = b"", False
        async with asyncio.timeout(60):
            while answer not in seen:
                event = await pane.next()
                assert event is not None
                if event.kind == "live" and not live:
                    live = True
                    await pane.send(line + b"\r")
                if event.kind == "output" and live:
                    seen += event.data
        await pane.close()


def runs_in_guest(world: World, session: str, words: str) -> bool:
    """Look for a program in the guest until it is gone, for ten seconds at most."""
    script = f"""
for n in $(seq 100); do
    found=
    for p in /proc/[0-9]*; do
        [ "$(tr '\\0' ' ' < $p/cmdline 2>/dev/null)" = '{words} ' ] && found=yes
    done
    [ "$found" ] || exit 0
    sleep 0.1
done
exit 1"""
    return bool(world.json("exec", session, "--root", "--", "sh", "-c", script)["exit_code"])


def test_keeper_and_machine_die_and_nothing_is_lost(world: World, workspace: Path) -> None:
    before = tree(workspace)
    session = world.json("run", "shell", "--detach", "--workspace", str(workspace))["session"]
    world.wait_for(session, "state", "running")

    done = world.run("exec", session, "--", "sh", "-c", "cat; echo err >&2; exit 7", stdin=b"in")
    assert (done.status, done.stdout, done.stderr) == (7, b"in", b"err\n")
    assert world.run("exec", session, "--", "no-such-program").status == 127
    assert world.json("exec", session, "--root", "--", "id", "-u")["stdout"] == "0\n"
    assert world.run("exec", session, "--timeout-s", "1", "--", "sleep", "9753").status == 124
    assert not runs_in_guest(world, session, "sleep 9753")
    asyncio.run(
        typed(world, session, b"echo typed$((20+3)) > typed.txt; cat typed.txt", b"typed23")
    )

    world.kill_keeper(session)
    assert world.shown(session)["state"] == "running"
    machine = world.state(session).machine
    assert world.run("exec", session, "--", "cat", "typed.txt").stdout == b"typed23\n"
    assert world.state(session).machine == machine
    asyncio.run(typed(world, session, b"echo again$((40+2))", b"again42"))
    record = (world.paths.session(session) / "terminal.rec").read_bytes()
    since = record[record.index(b"typed23") : record.rindex(b"again42")]
    assert b"\x1b[H\x1b[J" not in since, "attaching again must not clear what the record holds"

    asyncio.run(typed(world, session, b"exit 3", b"exit"))
    world.wait_for(session, "exit_code", 3)
    refused = world.json("send", session, "hello", status=1)["error"]
    assert refused["hint"] == f"Start it again: cloche resume {session}"
    assert world.json("resume", session)["exit_code"] is None
    assert world.state(session).machine == machine
    asyncio.run(typed(world, session, b"echo third$((50+3))", b"third53"))

    assert world.run("exec", session, "--", "rm", "old.txt").status == 0
    changes = world.json("changes", session)
    assert [(file["path"], file["kind"]) for file in changes["files"]] == [
        ("old.txt", "deleted"),
        ("typed.txt", "added"),
    ]
    refused = world.json("rm", session, status=1)
    assert refused["error"]["code"] == "busy"
    needed = world.run("image", "rm", "base", "--dry-run", "--json").json["error"]
    assert needed["code"] == "in-use"
    assert session in needed["message"]
    running = world.run("logs", session, "--cast", "-").stdout

    world.kill_machine(session)
    assert world.shown(session)["state"] == "lost"
    world.wait_for(session, "state", "lost")
    header, *events = [json.loads(line) for line in running.splitlines()]
    assert header["version"] == 2
    assert "typed23" in "".join(text for _, kind, text in events if kind == "o")
    assert [when for when, _, _ in events] == sorted(when for when, _, _ in events)
    whole = running[: running[:-1].rindex(b"\n")]  # the last event may have grown
    assert world.run("logs", session, "--cast", "-").stdout.startswith(whole)
    assert world.run("exec", session, "--", "true").status == 125
    assert world.json("merge", session, "--accept", "typed.txt")["written"] == ["typed.txt"]
    assert (workspace / "typed.txt").read_bytes() == b"typed23\n"

    assert world.json("resume", session, "--no-agent")["state"] == "stopped"
    assert world.state(session).generation > changes["generation"] - 1
    assert len(world.json("changes", session)["files"]) == 2

    assert world.json("resume", session)["state"] == "running"
    assert world.run("exec", session, "--", "cat", "typed.txt").stdout == b"typed23\n"
    world.kill_keeper(session)
    assert world.json("stop", session)["state"] == "stopped"
    assert world.state(session).machine is None
    assert world.json("rm", session)["session"] == session
    assert set(tree(workspace)) == {*before, "typed.txt"}


def test_a_machine_that_a_new_keeper_cannot_reach(world: World, workspace: Path) -> None:
    """Stopped from outside it goes on with `resume`; without its sockets it starts anew."""
    session = world.json("run", "shell", "--detach", "--workspace", str(workspace))["session"]
    world.wait_for(session, "state", "running")
    assert world.run("exec", session, "--", "sh", "-c", "echo kept > kept.txt; sync").status == 0
    machine = world.state(session).machine
    assert machine is not None

    world.kill_keeper(session)
    os.kill(machine.pid, signal.SIGSTOP)
    refused = world.run("exec", session, "--", "true")
    assert (refused.status, b"its monitor does not answer" in refused.stderr) == (125, True)
    assert world.json("resume", session)["state"] == "running"
    assert world.state(session).machine == machine
    assert world.run("exec", session, "--", "cat", "kept.txt").stdout == b"kept\n"

    world.kill_keeper(session)
    shutil.rmtree(world.paths.runtime)
    told = [
        "cloche: The machine runs, but its sockets were removed: nothing can reach it any more.",
        f"  Start it anew from its disk: cloche stop {session} && cloche resume {session}",
    ]
    for command, status in ((("exec", session, "--", "true"), 125), (("resume", session), 1)):
        refused = world.run(*command)
        assert (refused.status, refused.stderr.decode().splitlines()) == (status, told)
    assert machine.alive, "nothing ends it unasked"
    assert world.json("stop", session)["state"] == "stopped"
    assert not machine.alive
    assert world.json("resume", session)["state"] == "running"
    assert world.run("exec", session, "--", "cat", "kept.txt").stdout == b"kept\n"
    assert world.run("rm", "--force", session).status == 0


def killed_at_once(world: World, workspace: Path) -> str:
    """Start a session, and kill the command and the keeper before anything is made."""
    words = [sys.executable, "-P", str(LAUNCHER), "run", "shell", "--workspace", str(workspace)]
    command = subprocess.Popen([*words, "--detach", "--json"], env=world.environment)
    until = time.monotonic() + 30
    while not (begun := list(world.paths.sessions.glob("*/journal.jsonl"))):
        assert time.monotonic() < until
        time.sleep(0.005)
    session = begun[0].parent.name
    command.kill()
    command.wait(30)
    world.kill_keeper(session)
    return session


def test_deaths_during_the_start_leave_a_session_that_can_be_resumed(
    world: World, workspace: Path
) -> None:
    session = killed_at_once(world, workspace)
    assert world.shown(session)["state"] == "failed"
    assert world.run("resume", session, "--json").status == 0

    world.kill_keeper(session)
    world.kill_machine(session)
    assert world.shown(session)["state"] == "lost"
    assert world.json("rm", session)["ok"]

    session = world.json("run", "shell", "--detach", "--workspace", str(workspace))["session"]
    world.wait_for(session, "prepared", True)
    while world.state(session).machine is None:
        assert world.state(session).state == "starting"
    world.kill_machine(session)
    world.wait_for(session, "state", "failed", "lost")
    assert "ended" in world.shown(session)["message"]
    assert world.json("rm", session)["ok"]


def test_a_keeper_killed_while_its_machine_boots_is_followed_by_one_that_goes_on(
    world: World, workspace: Path
) -> None:
    session = world.json("run", "shell", "--detach", "--workspace", str(workspace))["session"]
    while world.state(session).machine is None:
        assert world.state(session).state == "starting"
    world.kill_keeper(session)
    world.json("changes", session)
    world.wait_for(session, "agent_state", "working", "idle")
    assert world.run("exec", session, "--", "cat", "old.txt").stdout == b"old\n"
    assert world.json("rm", "--force", session)["ok"]
