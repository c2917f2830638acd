"""The network of a real session: what is asked, what is refused and why, and what a death costs.

Cloche runs in a namespace of its own, whose only neighbour is a server of the test's: nothing of it
leaves this machine. All tests share one session, each with names of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.client.session import SessionClient
from tests.e2e.private_net import ANSWER, THERE
from tests.e2e.sessions import Answer, World, store_of
from tests.e2e.test_workstation import press_until
from tests.e2e.tmux import TmuxTerminal
from vm.egress.ledger import NAME, read_entries

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from app.protocol import SessionInfo
    from vm.egress.kinds import Entry
    from vm.image.store import ImageSet

pytestmark = pytest.mark.vm

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60
CURL = "curl -sS --max-time 40"
AGAIN = f"{CURL} --retry 40 --retry-delay 1 --retry-connrefused"
NO_NAME = 6
"""curl's exit status for a name without an address; 7 is a connection that was refused."""


DATAGRAM = f"""
import socket
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.connect(("{THERE}", 53))
asker.send(b"x")
asker.settimeout(40)
try:
    asker.recv(9)
except ConnectionRefusedError:
    print("refused")
"""


class Lab:
    """One running session in a network of the test's own."""

    def __init__(self, world: World, folder: Path, session: str) -> None:
        self.world, self.folder, self.session = world, folder, session
        # begun first, for it takes as long as a question waits
        self.unanswered = in_background(self, f"{CURL} -w '%{{http_code}}' http://nobody.example/")

    def guest(self, script: str) -> Answer:
        """Run a shell script in the guest."""
        return self.world.run("exec", self.session, "--", "sh", "-c", script)

    def entry(self, wanted: Callable[[Entry], bool]) -> Entry:
        """Wait for a line of the session's log; the last one that fits."""
        until = time.monotonic() + WAIT_S
        while True:
            log = list(read_entries(self.world.paths.session(self.session) / NAME))
            found = [entry for entry in log if wanted(entry)]
            if found:
                return found[-1]
            assert time.monotonic() < until, log
            time.sleep(0.05)

    def opened(self, host: str) -> Entry:
        """The last decision about a connection to a host."""
        return self.entry(lambda one: one.kind == "open" and one.host == host)

    def noted(self, what: str) -> list[str]:
        """What the server was asked so far: `queries` or `requests`."""
        path = self.folder / what
        return path.read_text().split() if path.exists() else []

    def explain(self, host: str) -> tuple[str, str]:
        words = ("explain", host, "--session", self.session, "--json")
        said = self.world.run("egress", *words).json
        return str(said["verdict"]), str(said["level"])

    def gateway(self) -> int:
        """The pid of the session's gateway."""
        keeper = self.world.keeper(self.session)
        (child,) = (
            int(pid)
            for pid in Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
            if b"gateway" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        )
        return child


@contextmanager
def private_net(folder: Path) -> Generator[tuple[str, ...]]:
    """A network of our own; yields what must stand before a command that is to run in it."""
    root = os.geteuid() == 0
    spaces = ["--net", "--mount"] if root else ["--net", "--mount", "--map-root-user"]
    process = subprocess.Popen(
        ["unshare", *spaces, sys.executable, "-m", "tests.e2e.private_net", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"ready\n"
        user = () if root else ("--user", "--preserve-credentials")
        yield ("nsenter", "--target", str(process.pid), "--net", "--mount", *user, "--")
    finally:
        process.stdin.close()
        process.wait(WAIT_S)
        process.stdout.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, guest_image: ImageSet) -> Iterator[Lab]:
    """A session under `standard` that may reach some names."""
    folder = tmp_path_factory.mktemp("net")
    with private_net(folder) as prefix:
        world = World(folder / "w", store_of(guest_image), prefix)
        if os.geteuid() != 0:  # a jail of an ordinary user needs ids that the namespace lacks
            world.environment["CLOCHE_JAIL"] = "off"
        workspace = folder / "project"
        workspace.mkdir()
        (world.paths.config / "rules.yaml").write_text("always: {deny: [denied.example]}\n")
        world.configure("egress: {wait: 15}\n")
        try:
            started = world.json(
                "run", "shell", "--detach", "--workspace", str(workspace),
                "--allow-host", "loop.example", "--allow-host", "open.example",
            )  # fmt: skip
            world.wait_for(started["session"], "state", "running")
            yield Lab(world, folder, started["session"])
        finally:
            world.close()


@dataclass
class Waiting:
    """A program in the guest that waits for an answer."""

    thread: threading.Thread
    answers: list[Answer]

    def end(self) -> Answer:
        self.thread.join(WAIT_S * 2)
        return self.answers[0]


def in_background(lab: Lab, script: str) -> Waiting:
    answers: list[Answer] = []
    thread = threading.Thread(target=lambda: answers.append(lab.guest(script)), daemon=True)
    thread.start()
    return Waiting(thread, answers)


async def asked(client: SessionClient, host: str) -> SessionInfo:
    """Wait until a question about a host is open."""
    async with asyncio.timeout(WAIT_S):
        async for event in client.events():
            if any(one.host == host and one.waiting for one in event.session.asks):
                return event.session
    raise AssertionError("the keeper went away")


async def test_an_unlisted_name_waits_for_the_answer_and_needs_no_second_try(lab: Lab) -> None:
    assert await asyncio.to_thread(lab.explain, "ask.example:80") == ("ask", "default")
    waiting = in_background(lab, f"{CURL} http://ask.example/")
    async with await SessionClient.open(lab.world.paths, lab.session) as client:
        info = await asked(client, "ask.example")
        (question,) = (one for one in info.asks if one.host == "ask.example")
        assert question.ports == (80,)
        assert 0 <= time.time() - question.first_seen < WAIT_S
        assert "ask.example" not in lab.noted("queries"), "nothing is looked up before the answer"
        rule = await client.egress_answer("ask.example", "session")
    assert rule == "allow ask.example:80 in this session"
    done = await asyncio.to_thread(waiting.end)
    assert (done.status, done.stdout, done.stderr) == (0, ANSWER, b"")
    assert lab.noted("requests").count("ask.example") == 1
    assert await asyncio.to_thread(lab.explain, "ask.example:80") == ("allow", "session")
    entry = lab.opened("ask.example")
    assert (entry.verdict, entry.level, entry.rule) == ("allow", "session", "ask.example:80")
    assert entry.origin == "answered: session"


def test_a_rule_of_the_command_line_lets_a_held_connection_go_on(lab: Lab) -> None:
    waiting = in_background(lab, f"{CURL} http://rule.example/")
    asyncio.run(until_asked(lab, "rule.example"))
    allow = ("egress", "allow", "rule.example:80", "--session", lab.session)
    assert lab.world.run(*allow).status == 0
    assert waiting.end().stdout == ANSWER


async def until_asked(lab: Lab, host: str) -> None:
    async with await SessionClient.open(lab.world.paths, lab.session) as client:
        await asked(client, host)


def test_each_refusal_is_prompt_and_has_its_own_reason(lab: Lab) -> None:
    assert lab.guest(
        f"{CURL} https://{THERE}/; echo $?; {CURL} http://denied.example/; echo $?;"
        f"{CURL} -g 'http://[2001:db8::1]/'; echo $?;"
        f"python3 -c {shlex.quote(DATAGRAM)}"
    ).stdout.split() == [b"7", b"6", b"7", b"refused"]
    looped = lab.guest(f"{CURL} http://loop.example/")
    assert json.loads(looped.stdout)["code"] == "loopback-address"
    assert lab.opened(THERE).code == "literal-address"
    assert lab.opened("loop.example").code == "loopback-address"
    assert lab.entry(lambda one: one.host == "denied.example").code == "denied"
    assert lab.entry(lambda one: one.kind == "drop" and one.protocol == "udp").code == "foreign-dns"
    six = lab.entry(lambda one: one.kind == "drop" and one.protocol == "ipv6")
    assert (six.code, six.host, six.port) == ("ipv6", "2001:db8::1", 80)
    assert "denied.example" not in lab.noted("queries")
    assert "loop.example" in lab.noted("queries")


def test_names_and_rules_outlive_gateway_and_keeper(lab: Lab) -> None:
    lab.unanswered.end()  # a connection that is held goes with the gateway
    address = "getent ahostsv4 open.example"
    before = lab.guest(address).stdout
    assert before
    os.kill(lab.gateway(), signal.SIGKILL)
    assert lab.guest(f"{AGAIN} http://open.example/ && {address}").stdout == ANSWER + before
    lab.world.kill_keeper(lab.session)
    assert lab.guest(f"{AGAIN} http://open.example/ && {address}").stdout == ANSWER + before
    assert lab.guest(f"{CURL} http://denied.example/").status == NO_NAME
    assert lab.world.shown(lab.session)["egress"]["network"] == "on"


def test_what_nobody_answers_is_refused_in_words(lab: Lab) -> None:
    done = lab.unanswered.end()
    assert (done.status, done.stdout[-3:]) == (0, b"403")
    said: dict[str, Any] = json.loads(done.stdout[:-3])
    assert (said["code"], said["retry"]) == ("no-answer", False)
    assert lab.entry(lambda one: one.host == "nobody.example" and one.code == "no-answer")


def test_a_person_at_a_terminal_answers_in_the_strip(lab: Lab, tmp_path: Path) -> None:
    lab.unanswered.end()  # so that the strip has one question
    # entering the namespace leads to the root folder
    place = ["env", f"--chdir={lab.folder / 'project'}"]
    argv = [*lab.world.prefix, *place, *lab.world.words()]
    with TmuxTerminal(tmp_path, argv, lab.world.environment, 80, 24, tmp_path) as terminal:
        terminal.until("enter into its screen", 90)
        press_until(terminal, "Enter", "keys go to")
        terminal.type(f"{CURL} http://strip.example/")
        terminal.keys("Enter")
        terminal.until("wants strip.example:80", WAIT_S)
        terminal.keys("C-g")
        terminal.keys("e")
        terminal.until("keys answer the question")
        press_until(terminal, "s", "allow strip.example:80 in this session")
        terminal.until(ANSWER.decode().split()[0], WAIT_S)
    assert lab.opened("strip.example").origin == "answered: session"
