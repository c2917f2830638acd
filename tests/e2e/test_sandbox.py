"""`cloche sandbox` with real machines: what comes out, and that nothing is left, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.client.naming import NAMES_LOCK
from app.folders import LOCK
from tests.e2e.sessions import LAUNCHER, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.vm

SMALL = ("--memory", "512", "--vcpus", "1", "--scratch", "2")
WAIT_S = 180.0


def nothing_left(world: World) -> bool:
    """Tell whether neither a file of a sandbox nor a process of its world is there."""
    folders = [path.name for path in world.paths.state.iterdir()]
    sessions = list(world.paths.sessions.iterdir())
    sockets = [path for path in world.paths.runtime.iterdir() if path.is_dir()]
    known = {LOCK, NAMES_LOCK, "sessions", "sandboxes", "memory.lock"}
    return not (sessions or sockets or set(folders) - known or processes(world))


def processes(world: World) -> list[int]:
    """Return the processes that name one of the world's folders: keepers, QEMU and its jail."""
    ours = os.fsencode(world.paths.state.parent.parent)
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and ours in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def until(there: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not there():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def sleeping(world: World) -> Iterator[subprocess.Popen[bytes]]:
    """A sandbox whose command has begun and will not end."""
    words = ("sandbox", *SMALL, "--", "sh", "-c", "echo begun; exec sleep 7000")
    with subprocess.Popen(
        [sys.executable, "-P", str(LAUNCHER), *words],
        env=world.environment, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        yield process
        process.kill()


def test_both_streams_the_exit_code_copies_and_the_report(world: World, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("of the workspace\n")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.txt").write_text("brought\n")
    (tmp_path / "input").write_bytes(b"i" * 100_000)
    script = (
        "wc -c; cat a.txt /tmp/in/b.txt; pwd; echo $A; echo err >&2; mkdir -p /tmp/o/deep; "
        "echo made > /tmp/o/deep/f; echo changed > a.txt; head -c 100000 /dev/zero | tr '\\0' x; "
        "exit 42"
    )
    words = (
        "sandbox", "--json", *SMALL, "--workspace", str(project), "--env", "A=b c",
        "--stdin-file", str(tmp_path / "input"), "--copy-in", f"{tmp_path / 'in'}:/tmp/in",
        "--copy-out", f"/tmp/o:{tmp_path / 'o'}", "--copy-out", f"/no/such:{tmp_path / 'none'}",
        "--", "sh", "-c", script,
    )  # fmt: skip
    done = world.run(*words)
    report = done.json
    assert done.status == 42, report
    said = "100000\nof the workspace\nbrought\n/workspace\nb c\n"
    assert report["stdout"].startswith(said + "xxx")
    assert (len(report["stdout"]), report["stdout_truncated"]) == (65536, True)
    assert report["stdout_bytes"] == len(said) + 100_000
    assert (report["stderr"], report["stderr_truncated"], report["stderr_bytes"]) == (
        "err\n", False, 4,
    )  # fmt: skip
    assert (report["exit_code"], report["signal"], report["timed_out"]) == (42, None, False)
    assert (report["path"], report["stage_id"]) == ("cold", None)
    assert report["total_ms"] >= report["exec_ms"] + report["boot_ms"] > 0
    assert Path(report["stdout_log_path"]).stat().st_size == report["stdout_bytes"]
    assert report["stderr_log_path"] is None
    assert (tmp_path / "o" / "deep" / "f").read_text() == "made\n"
    assert [(one["guest"], one["bytes"]) for one in report["copied"]] == [("/tmp/o", 5)]
    (failed,) = report["copies_failed"]
    assert (failed["guest"], failed["code"], report["ok"]) == ("/no/such", "not-found", False)
    assert report["error"]["code"] == "not-found"
    assert "ID" not in failed["hint"]
    assert not (tmp_path / "none").exists()
    assert (project / "a.txt").read_text() == "of the workspace\n"
    assert nothing_left(world)


def test_it_is_listed_as_what_it_is_and_ctrl_c_ends_it(
    world: World, sleeping: subprocess.Popen[bytes]
) -> None:
    (listed,) = world.json("ps")["sessions"]
    assert (listed["sandbox"], listed["agent"], listed["state"]) == (True, "sandbox", "running")
    refused = world.json("changes", listed["id"], status=2)
    assert refused["error"]["code"] == "usage"
    assert world.run("exec", listed["id"], "--", "echo", "in").stdout == b"in\n"
    sleeping.send_signal(signal.SIGINT)
    assert sleeping.wait(WAIT_S) == 128 + signal.SIGINT
    assert nothing_left(world)


def test_the_time_is_for_start_and_command_together(world: World) -> None:
    script = "echo part; echo err >&2; sleep 7001 & sleep 7002"
    done = world.run("sandbox", *SMALL, "--timeout-s", "8", "--", "sh", "-c", script)
    assert done.status == 124
    *said, sentence = done.stderr.decode().splitlines()
    if said:
        assert (done.stdout, said) == (b"part\n", ["err"])
        assert sentence.startswith("cloche: The command had not ended after 8 s and was killed")
    else:  # a busy machine takes longer to start, or leaves the command no time to say something
        late = (
            "cloche: The machine had not started after 8 s",
            "cloche: The command had not ended",
        )
        assert sentence.startswith(late)
    assert nothing_left(world)


def test_a_killed_client_leaves_nothing(world: World, sleeping: subprocess.Popen[bytes]) -> None:
    assert processes(world)
    sleeping.kill()
    sleeping.wait()
    until(lambda: nothing_left(world))


def test_a_signal_ends_the_machine_first(world: World, sleeping: subprocess.Popen[bytes]) -> None:
    sleeping.terminate()
    assert sleeping.wait(WAIT_S) == 128 + signal.SIGTERM
    assert nothing_left(world)


def test_nobody_reads_any_more(world: World, sleeping: subprocess.Popen[bytes]) -> None:
    assert sleeping.stdout is not None
    sleeping.stdout.close()
    assert sleeping.wait(WAIT_S) == 128 + signal.SIGPIPE
    assert nothing_left(world)


def test_a_killed_keeper_and_what_the_next_one_finds(
    world: World, sleeping: subprocess.Popen[bytes]
) -> None:
    (session,) = [path.name for path in world.paths.sessions.iterdir()]
    sleeping.send_signal(signal.SIGSTOP)  # it would clean up at once
    world.kill_keeper(session)
    machine = world.state(session).machine
    assert machine is not None
    assert machine.alive, "QEMU outlives its keeper"
    sleeping.kill()
    sleeping.wait()
    listed = world.json("ps")["sessions"]
    assert [one["id"] for one in listed] == [session]
    assert world.run("rm", "--force", session).status == 0
    assert not machine.alive
    assert nothing_left(world)


def test_a_machine_that_dies_is_told_and_what_it_said_is_kept(
    world: World, sleeping: subprocess.Popen[bytes]
) -> None:
    (session,) = [path.name for path in world.paths.sessions.iterdir()]
    world.kill_machine(session)
    _, err = sleeping.communicate(timeout=WAIT_S)
    assert sleeping.returncode == 125
    assert b"The machine ended without being told to." in err
    kept = world.paths.state / "sandboxes" / session
    assert f"Read: {kept} ".encode() in err
    assert (kept / "console.log").stat().st_size > 0
    assert nothing_left(world)
