"""Work in the guest: commands, copies, OpenSSH's own clients, ports and prompts, in one session."""

from __future__ import annotations

import contextlib
import os
import pty
import shlex
import socket
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.e2e.sessions import LAUNCHER, Answer, World, store_of, tree
from tests.e2e.tmux import TmuxTerminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm
MEGABYTES_8 = 8_000_000


class Lab:
    """One running session that the tests of this file share."""

    def __init__(self, world: World, session: str) -> None:
        self.world = world
        self.session = session

    def exec(self, *words: str, stdin: bytes = b"") -> Answer:
        return self.world.run("exec", self.session, *words, stdin=stdin)

    def sh(self, script: str, *flags: str) -> Answer:
        return self.exec(*flags, "--", "sh", "-c", script)

    def cp(self, source: object, target: object, *flags: str) -> Answer:
        return self.world.run("cp", *flags, str(source), str(target))

    def at(self, path: str) -> str:
        return f"{self.session}:{path}"

    def openssh(self, *words: str, stdin: bytes = b"") -> Answer:
        done = subprocess.run(
            words, input=stdin, capture_output=True, env=self.world.environment, timeout=120,
            check=False,
        )  # fmt: skip
        return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, guest_image: ImageSet) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("guest-work")
    workspace = folder / "project"
    workspace.mkdir()
    (workspace / "old.txt").write_text("old\n")
    world = World(folder / "w", store_of(guest_image))
    try:
        words = ("run", "shell", "--detach", "--workspace", str(workspace), "--port", "0:9000")
        session = world.json(*words)["session"]
        world.wait_for(session, "agent_state", "working", "idle")
        yield Lab(world, session)
    finally:
        world.close()


# -- exec ------------------------------------------------------------------------------------


def test_both_streams_apart_and_the_exit_code(lab: Lab) -> None:
    done = lab.sh("cat; printf o; printf e >&2; exit 42")
    assert (done.status, done.stdout, done.stderr) == (42, b"o", b"e")
    told = lab.world.json("exec", lab.session, "--", "sh", "-c", "echo o; exit 42", status=42)
    assert (told["stdout"], told["exit_code"]) == ("o\n", 42)


def test_a_signal_is_128_and_its_number(lab: Lab) -> None:
    assert lab.sh("kill -9 $$").status == 137
    assert lab.sh("kill -TERM $$").status == 143


def test_no_such_program_is_127_and_named(lab: Lab) -> None:
    done = lab.exec("--", "/nope")
    assert (done.status, done.stdout) == (127, b"")
    assert b"/nope" in done.stderr


def test_a_child_in_the_background_holds_nobody_up(lab: Lab) -> None:
    began = time.monotonic()
    done = lab.sh("sleep 1000 & echo started; echo err >&2; exit 3")
    assert (done.status, done.stdout, done.stderr) == (3, b"started\n", b"err\n")
    told = lab.world.json("exec", lab.session, "--", "sh", "-c", "sleep 1000 & echo started")
    assert told["stdout"] == "started\n"
    assert time.monotonic() - began < 60


def test_eight_megabytes_on_both_streams(lab: Lab) -> None:
    done = lab.sh(f"head -c {MEGABYTES_8} /dev/zero & head -c {MEGABYTES_8} /dev/zero >&2; wait")
    assert done.status == 0
    assert (len(done.stdout), len(done.stderr)) == (MEGABYTES_8, MEGABYTES_8)
    told = lab.world.json("exec", lab.session, "--", "sh", "-c", f"head -c {MEGABYTES_8} /dev/zero")
    assert (told["stdout_bytes"], told["stdout_truncated"]) == (MEGABYTES_8, True)


def test_input_goes_in_whole_and_unread_input_is_no_trouble(lab: Lab) -> None:
    data = os.urandom(1 << 20)
    assert lab.exec("--", "cat", stdin=data).stdout == data
    assert lab.exec("--", "true", stdin=data).status == 0


def test_the_deadline_kills_the_whole_group_and_keeps_what_was_said(lab: Lab) -> None:
    script = "echo x; echo y >&2; sleep 7531 & sleep 7532"
    done = lab.sh(script, "--timeout-s", "2")
    assert (done.status, done.stdout) == (124, b"x\n")
    said, sentence, rest = done.stderr.split(b"\n")
    assert (said, rest) == (b"y", b"")
    assert sentence.startswith(b"cloche: The command had not ended after 2 s")
    told = lab.world.json(
        "exec", lab.session, "--timeout-s", "2", "--", "sh", "-c", script, status=124
    )
    assert (told["timed_out"], told["stdout"], told["stderr"]) == (True, "x\n", "y\n")
    assert lab.exec("--", "pgrep", "-f", "sleep 753[12]").stdout == b""


def test_a_terminal_is_used_and_given_back_on_its_main_screen(lab: Lab, tmp_path: Path) -> None:
    words = [sys.executable, "-P", str(LAUNCHER), "exec", lab.session, "--", "sh", "-c"]
    main, far = pty.openpty()
    with subprocess.Popen(
        [*words, "tty; stty size; exit 7"], stdin=far, stdout=far, stderr=far,
        env=lab.world.environment, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(far)
        said = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while data := os.read(main, 1 << 16):
                said += data
        assert process.wait(120) == 7
    os.close(main)
    assert b"/dev/pts/" in said
    assert b"1049" not in said, "it would put the cursor back to where some editor began"


def test_hints_are_the_next_command_itself(lab: Lab, tmp_path: Path) -> None:
    forgotten = lab.exec("ls", "-la")
    assert forgotten.status == 2
    assert f"cloche exec {lab.session} -- ls -la".encode() in forgotten.stderr
    missing = lab.cp(lab.at("missing"), tmp_path)
    assert f"cloche exec {lab.session} -- ls -la".encode() in missing.stderr
    (tmp_path / "mine").write_text("x")
    denied = lab.cp(tmp_path / "mine", lab.at("/etc/mine"))
    assert denied.status == 1
    again = f"cloche cp --root {tmp_path / 'mine'} {lab.session}:/etc/mine"
    assert again.encode() in denied.stderr
    assert lab.world.run(*shlex.split(again)[1:]).status == 0


# -- cp --------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "big").write_bytes(os.urandom(5_000_000))
    (folder / "sub" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o4750)
    (folder / "sub" / "deep" / "empty").touch()
    (folder / "sub" / "deep" / os.fsdecode(b"n\xff\n")).write_text("odd name")
    return folder


def test_a_folder_there_and_back(lab: Lab, source: Path, tmp_path: Path) -> None:
    (source / "link").symlink_to("/etc/passwd")
    there = lab.cp(source, lab.at("there"))
    assert there.status == 1
    assert b"link: is a link" in there.stderr
    assert lab.sh("stat -c %a there/sub/run.sh; stat -c %U there/big").stdout == b"750\nagent\n"
    (source / "link").unlink()

    back = tmp_path / "back"
    assert lab.cp(lab.at("there"), back).status == 0
    (source / "sub" / "run.sh").chmod(0o750)  # the bit that never travels
    assert tree(back) == tree(source)

    again = lab.cp(lab.at("there"), back, "--json")
    assert (again.status, again.json["to"]) == (0, str(back / "there"))
    assert lab.cp(lab.at("there"), back).status == 1, "what is there is not written over"
    assert sorted(os.listdir(tmp_path)) == ["back", "source"]


def test_a_file_takes_its_place_in_one_step(lab: Lab, tmp_path: Path) -> None:
    target = tmp_path / "taken.txt"
    target.write_text("mine\n")
    assert lab.cp(lab.at("old.txt"), target).status == 0
    assert target.read_text() == "old\n"
    assert lab.cp(lab.at("no-such-file"), target).status == 4
    assert lab.cp(lab.at("/etc/shadow"), target).status == 1
    assert target.read_text() == "old\n"
    assert lab.cp(lab.at("/etc/shadow"), target, "--root").status == 0
    assert b"root:" in target.read_bytes()
    assert os.listdir(tmp_path) == ["taken.txt"]


def test_links_are_neither_followed_nor_written_through(lab: Lab, tmp_path: Path) -> None:
    script = (
        "mkdir evil; ln -s /etc/passwd evil/a; ln -s .. evil/b; mkfifo evil/c; "
        "echo x > evil/d; chmod 6755 evil/d; ln -s /etc/hosts top"
    )
    assert lab.sh(script).status == 0
    answer = lab.cp(lab.at("evil"), tmp_path / "evil", "--json")
    assert answer.status == 1
    left = {one["path"]: one["reason"] for one in answer.json["skipped"]}
    assert left == {"a": "is a link", "b": "is a link", "c": "is no regular file"}
    assert stat.S_IMODE((tmp_path / "evil" / "d").stat().st_mode) == 0o755
    assert lab.cp(lab.at("top"), tmp_path / "top").status == 1

    victim = tmp_path / "victim"
    victim.write_text("safe\n")
    (tmp_path / "pointer").symlink_to(victim)
    assert lab.cp(lab.at("old.txt"), tmp_path / "pointer").status == 1
    assert lab.cp(tmp_path / "pointer", lab.at("stolen")).status == 1
    assert victim.read_text() == "safe\n"

    assert lab.sh("echo safe > target; ln -s target inner").status == 0
    assert lab.cp(victim, lab.at("inner")).status == 0
    assert lab.sh("cat target; test -L inner || echo replaced").stdout == b"safe\nreplaced\n"


def test_the_agent_may_write_only_what_is_its_own(lab: Lab, source: Path) -> None:
    refused = lab.cp(source / "big", lab.at("/etc/big"))
    assert refused.status == 1
    assert b"Permission denied" in refused.stderr
    assert lab.cp(source / "sub", lab.at("/etc/"), "--root").status == 0
    assert lab.sh("stat -c %U /etc/sub/run.sh").stdout == b"root\n"
    usage = lab.cp(source, source)
    assert usage.status == 2


def test_a_place_that_is_not_there_is_named_and_nothing_is_left(
    lab: Lab, source: Path, tmp_path: Path
) -> None:
    inside = "find /tmp/no /workspace/no | sort"
    for what in (source / "big", source):
        refused = lab.cp(what, lab.at("/tmp/no/where/it is"))
        assert (refused.status, refused.stderr.decode().splitlines()) == (
            4,
            [
                "cloche: There is no folder '/tmp/no/where' in the guest.",
                f"  Make it: cloche exec {lab.session} -- mkdir -p /tmp/no/where",
            ],
        )
        assert lab.sh(inside).stdout == b""
    slashed = lab.cp(source / "big", lab.at("/tmp/no/"))
    assert (slashed.status, slashed.stderr.decode().splitlines()) == (
        4,
        [
            "cloche: There is no folder '/tmp/no' in the guest.",
            f"  Make it: cloche exec {lab.session} -- mkdir -p /tmp/no",
        ],
    )
    assert lab.cp(source / "big", lab.at("/etc/passwd/")).status == 1
    slashed = lab.cp(lab.at("/etc/passwd"), f"{tmp_path / 'no'}/")
    assert (slashed.status, b"There is no folder" in slashed.stderr) == (4, True)
    for path in ("/etc/passwd", "/etc/ssl"):
        refused = lab.cp(lab.at(path), tmp_path / "no" / "where" / "x")
        assert (refused.status, refused.stderr.decode().splitlines()) == (
            4,
            [
                f"cloche: There is no folder {tmp_path / 'no' / 'where'}.",
                f"  mkdir -p {tmp_path / 'no' / 'where'}",
            ],
        )
    refused = lab.cp(source / "big" / "x", lab.at("x"))
    assert (refused.status, b"There is no" in refused.stderr) == (4, True)
    assert sorted(os.listdir(tmp_path)) == ["source"]


# -- OpenSSH's own clients ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def config(lab: Lab) -> tuple[str, str]:
    """The configuration's file and the session's host name in it."""
    made = lab.world.json("ssh-config", lab.session)
    return made["file"], made["host"]


def test_ssh_runs_commands_as_agent_and_as_root(lab: Lab, config: tuple[str, str]) -> None:
    file, host = config
    done = lab.openssh(
        "ssh", "-F", file, host, "cat; id -u; pwd; echo e >&2; exit 9", stdin=b"in\n"
    )
    assert (done.status, done.stdout, done.stderr) == (9, b"in\n1000\n/workspace\n", b"e\n")
    assert lab.openssh("ssh", "-F", file, "-l", "agent-root", host, "id -u").stdout == b"0\n"
    assert lab.world.run("ssh", lab.session, "--", "id", "-un").stdout == b"agent\n"
    assert lab.world.run("ssh", "--root", lab.session, "--", "sh", "-c", "exit 3").status == 3


def test_ssh_offers_no_key_and_takes_no_other_host(
    lab: Lab, config: tuple[str, str], tmp_path: Path
) -> None:
    file, host = config
    told = lab.openssh("ssh", "-v", "-F", file, host, "true").stderr
    assert b"Offering public key" not in told
    assert b"Authenticated to cloche" in told
    other = tmp_path / "other"
    made = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other))
    subprocess.run(made, check=True, timeout=30)
    key = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    wrong = tmp_path / "known"
    wrong.write_text(f"{host} {key}\n")
    refused = lab.openssh("ssh", "-F", file, "-o", f"UserKnownHostsFile={wrong}", host, "true")
    assert refused.status == 255


def test_scp_and_sftp_reach_the_workspace_as_the_agent(
    lab: Lab, config: tuple[str, str], tmp_path: Path
) -> None:
    file, host = config
    mine = tmp_path / "mine"
    mine.write_bytes(os.urandom(200_000))
    assert lab.openssh("scp", "-F", file, str(mine), f"{host}:mine").status == 0
    assert lab.openssh("scp", "-F", file, f"{host}:mine", str(tmp_path / "back")).status == 0
    assert (tmp_path / "back").read_bytes() == mine.read_bytes()
    batch = f"ls\nmkdir made\nput {mine} made/x\nput {mine} /etc/x\n".encode()
    done = lab.openssh("sftp", "-F", file, host, stdin=batch)
    assert b"old.txt" in done.stdout
    assert b"Permission denied" in done.stderr
    assert lab.sh("stat -c '%U %s' made/x").stdout == b"agent 200000\n"
    batch = f"put {mine} /etc/x\n".encode()
    root = lab.openssh("sftp", "-F", file, f"agent-root@{host}", stdin=batch)
    assert root.status == 0
    assert lab.sh("stat -c %U /etc/x").stdout == b"root\n"


def test_ssh_is_a_terminal(lab: Lab, tmp_path: Path) -> None:
    words = [sys.executable, "-P", str(LAUNCHER), "ssh", lab.session]
    with TmuxTerminal(tmp_path, words, lab.world.environment, 91, 23, tmp_path) as tmux:
        tmux.until("$")
        tmux.type("stty size; id -un; tty | tr a-z A-Z")
        tmux.keys("Enter")
        screen = tmux.until("/DEV/PTS/")
        assert "23 91" in screen
        assert "\nagent" in screen
        tmux.type("exit 5")
        tmux.keys("Enter")
        tmux.until_ended()


# -- ports -------------------------------------------------------------------------------------

ECHO = """import socket
server = socket.create_server(("127.0.0.1", 9000))
print("up", flush=True)
while True:
    one, _ = server.accept()
    data = b""
    while more := one.recv(65536):
        data += more
    one.sendall(data[::-1])
    one.close()
"""


def ask(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 60) as one:
        one.settimeout(60)
        one.sendall(data)
        one.shutdown(socket.SHUT_WR)
        answer = b""
        while more := one.recv(1 << 16):
            answer += more
    return answer


def test_a_port_leads_to_the_guests_loopback_until_it_is_removed(lab: Lab) -> None:
    (forward,) = lab.world.json("port", lab.session)["ports"]
    port = forward["host_port"]
    assert (forward["guest_port"], forward["problem"]) == (9000, "")
    serving = f"python3 -c {shlex.quote(ECHO)} > /tmp/serving & "
    started = lab.sh(
        serving + "until grep up /tmp/serving; do sleep 0.1; done", "--timeout-s", "60"
    )
    assert started.stdout == b"up\n"
    data = os.urandom(300_000)
    assert ask(port, data) == data[::-1]

    more = lab.world.json("port", lab.session, "0:1")
    assert len(more["ports"]) == 2
    other = next(one["host_port"] for one in more["ports"] if one["guest_port"] == 1)
    assert ask(other, b"nobody listens there") == b""
    assert lab.world.json("port", lab.session, f"{port}:9000", status=1)["error"]["code"] == "busy"
    assert len(lab.world.json("port", lab.session, "--remove", str(other))["ports"]) == 1
    with pytest.raises(ConnectionRefusedError):
        ask(other, b"")

    lab.world.kill_keeper(lab.session)
    again = lab.world.json("port", lab.session)["ports"]
    assert [one["host_port"] for one in again] == [port], "the next keeper listens on"


# -- send --------------------------------------------------------------------------------------


def test_a_prompt_is_typed_once_and_submitted(lab: Lab) -> None:
    send = ("send", lab.session)
    assert lab.world.run(*send, "echo one >> said; echo done1 > flag1").status == 0
    text = b'echo two >> said\necho "three\nfour" >> said; echo done2 > flag2\n'
    assert lab.world.run(*send, "-", stdin=text).status == 0
    wait = "for i in $(seq 200); do [ -f flag2 ] && break; sleep 0.1; done; cat said"
    assert lab.sh(wait).stdout == b"one\ntwo\nthree\nfour\n"
    record = (lab.world.paths.session(lab.session) / "terminal.rec").read_bytes()
    assert b"\x1b[?2004h" in record, "the shell asked for pastes to be marked"


@pytest.mark.parametrize("text", ["", "  \n", "a\x1b[201~b", "x" * 300_000])
def test_a_prompt_that_is_none_is_refused(lab: Lab, text: str) -> None:
    refused = lab.world.run("send", lab.session, "-", "--json", stdin=text.encode())
    assert refused.status in (1, 2)
    error = refused.json["error"]
    assert (error["code"], bool(error["hint"])) == ("usage", True)
