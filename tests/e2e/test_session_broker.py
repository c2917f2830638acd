"""A key of the host is used by a guest that never has it: sought in every place that there is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e import outside
from tests.e2e.sessions import World, store_of
from tests.vm.broker_lab import certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import RawIOBase

    from app.protocol import Meter
    from vm.image.store import ImageSet

pytestmark = [
    pytest.mark.vm,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("ip") is None,
        reason="a network of its own for a whole session needs root and ip(8)",
    ),
]

CANARY = "sk-CANARY-" + "q7" * 12
PLACEHOLDER = re.compile(rb"cloche-[0-9a-f]{40}")
CONFIG = """
broker:
  services:
    lab:
      upstream: https://api.lab.example
      credential: env:LAB_KEY
      add: bearer
      accept: [bearer]
      allow: [GET /v1/**, POST /v1/**]
      meter: openai
      metered: [POST /v1/chat]
      env: {LAB_URL: "{url}", LAB_KEY: "{placeholder}"}
  cap: {usd: 0.006}
agents:
  worker:
    command: [sh, -c, "while :; do sleep 1; done"]
    services: {lab: required, github: optional}
"""
MACHINES = "defaults: {memory: 768, vcpus: 1, scratch: 2}\n"
PIECE, OVERLAP = 64 << 20, 256
ASK = 'curl -sS -m 60 -H "Authorization: Bearer $LAB_KEY" "$LAB_URL/v1/a?x=1"'
CHAT = 'curl -sS -m 120 -H "Authorization: Bearer $LAB_KEY" -d "{}" "$LAB_URL/v1/chat"'


class Outside:
    """The network, its host, and a user's world in it."""

    def __init__(self, root: Path, image: ImageSet) -> None:
        self.folder = root / "net"
        self.folder.mkdir()
        self.cert, _ = certificate(self.folder, outside.NAME)
        shutil.copy(self.cert, self.folder / "cert.pem")
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--mount", sys.executable, "-P", outside.__file__,
             str(self.folder)], stdin=subprocess.PIPE,
        )  # fmt: skip
        until = time.monotonic() + 60
        while not (self.folder / "up").exists():
            assert self._holder.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        self.world = World(root / "w", store_of(image))
        self.world.prefix = ("nsenter", f"--target={self._holder.pid}", "--net", "--mount", "--")
        self.world.environment |= {"LAB_KEY": CANARY, "SSL_CERT_FILE": str(self.cert)}
        self.world.configure(CONFIG, MACHINES)
        self.work = root / "work"
        self.work.mkdir()

    def close(self) -> None:
        self.world.close()
        self._holder.communicate(timeout=60)  # it ends the host when its input does

    def start(self) -> str:
        answer = self.world.json("run", "worker", "--detach", "--workspace", str(self.work))
        session: str = answer["session"]
        self.world.wait_for(session, "state", "running")
        return session

    def used(self, session: str, tokens: int, *, asks: bool = False) -> Meter:
        """Wait until the session's meter says so."""
        until = time.monotonic() + 120
        while (meter := self.world.state(session).meter).tokens != tokens or meter.asks != asks:
            assert time.monotonic() < until, meter
            time.sleep(0.05)
        return meter

    def guest(self, session: str, script: str, *, root: bool = False) -> bytes:
        words = ["--root"] if root else []
        answer = self.world.run("exec", *words, session, "--", "sh", "-c", script)
        assert answer.status == 0, answer
        return answer.stdout


@pytest.fixture
def lab(tmp_path: Path, guest_image: ImageSet) -> Iterator[Outside]:
    made = Outside(tmp_path, guest_image)
    yield made
    made.close()


def in_memory(pid: int, *values: bytes) -> set[bytes]:
    """Return which values a process has in its memory; the guest's own is a part of its machine's.

    What `values` name is read from elsewhere, so this process holds them, too.
    """
    found: set[bytes] = set()
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/mem").open("rb", 0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            first, last = (int(text, 16) for text in span.split("-"))
            if rights.startswith("r") and "[v" not in line:
                found |= _in_span(mem, first, last, values)
    return found


def _in_span(mem: RawIOBase, first: int, last: int, values: tuple[bytes, ...]) -> set[bytes]:
    found: set[bytes] = set()
    for start in range(first, last, PIECE):
        try:
            mem.seek(start)
            piece = mem.read(min(PIECE + OVERLAP, last - start)) or b""
        except OSError:
            break  # a mapping of a device
        found |= {value for value in values if value in piece}
    return found


def roles(folder: str) -> dict[str, int]:
    """Return the pids of the children of Cloche's own whose keeper is the session's."""
    found: dict[str, int] = {}
    parents: dict[int, int] = {}
    words: dict[int, list[bytes]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words[int(entry.name)] = (entry / "cmdline").read_bytes().split(b"\0")
                status = (entry / "status").read_text()
            except OSError:
                continue
            parents[int(entry.name)] = int(status.split("PPid:")[1].split()[0])
    keeper = next(
        pid for pid, said in words.items() if b"keeper" in said and folder.encode() in said
    )
    for pid, parent in parents.items():
        if parent == keeper and b"_role" in words[pid]:
            found[words[pid][words[pid].index(b"_role") + 1].decode()] = pid
    return {**found, "keeper": keeper}


def files_with(folder: Path, value: bytes) -> list[str]:
    return [
        str(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and value in path.read_bytes()
    ]


def test_a_key_is_used_and_found_nowhere(lab: Outside) -> None:
    session = lab.start()
    said = lab.guest(session, ASK)
    head = (lab.folder / "heads").read_text()
    assert f"authorization: Bearer {CANARY}" in head  # it was attached
    assert b"api.lab.example" in said  # the service repeated what it was sent
    assert CANARY.encode() not in said
    assert b"*" * len(CANARY) in said

    env = lab.guest(session, "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null || :", root=True)
    placeholder = PLACEHOLDER.search(lab.guest(session, "env"))
    assert placeholder is not None
    assert placeholder[0] in env
    assert CANARY.encode() not in env
    lab.guest(session, "sync", root=True)

    machine = lab.world.state(session).machine
    assert machine is not None
    key, marker = CANARY.encode(), placeholder[0]
    folder = lab.world.paths.session(session)
    who = roles(str(folder))
    assert set(who) == {"keeper", "gateway", "broker"}
    memories = {name: in_memory(pid, key, marker) for name, pid in who.items()}
    memories["machine"] = in_memory(machine.pid, key, marker)
    assert marker in memories["machine"]  # what is sought can be found
    assert sorted(name for name, values in memories.items() if key in values) == ["broker"]
    for pid in who.values():
        for name in ("environ", "cmdline"):
            assert key not in Path(f"/proc/{pid}/{name}").read_bytes()
    for name in ("broker", "gateway"):
        limits = Path(f"/proc/{who[name]}/limits").read_text()
        core = next(line for line in limits.splitlines() if line.startswith("Max core file"))
        assert core.split()[4:6] == ["0", "0"]

    rows = [json.loads(line) for line in (folder / "egress.jsonl").read_text().splitlines()]
    asked = [row for row in rows if row.get("kind") == "request"]
    assert [(row["host"], row["verdict"], row["address"]) for row in asked] == [
        ("lab.cloche.internal", "allow", "api.lab.example:443")
    ]
    assert asked[0]["reason"].startswith("GET /v1/a: 200")  # no query
    words = ("egress", "explain", "lab.cloche.internal", "--session", session, "--json")
    explained = lab.world.run(*words).json
    assert (explained["verdict"], explained["port"]) == ("allow", 80)
    lab.world.run("stop", session)
    assert files_with(lab.folder.parent / "w", key) == []
    assert files_with(lab.folder, key) == [str(lab.folder / "heads")]


def test_a_cap_asks_and_a_new_keeper_goes_on(lab: Outside) -> None:
    session = lab.start()
    assert b"gpt-4o" in lab.guest(session, CHAT)  # $0.0035 at list prices, below the cap
    assert b"gpt-4o" in lab.guest(session, CHAT)  # reaches it
    lab.used(session, 2200)
    lab.world.kill_keeper(session)
    waiting = subprocess.Popen(
        [*lab.world.prefix, *lab.world.words("exec", session, "--", "sh", "-c", CHAT)],
        env=lab.world.environment, cwd="/", stdout=subprocess.PIPE,
    )  # fmt: skip
    meter = lab.used(session, 2200, asks=True)
    assert meter.usd == pytest.approx(0.007)
    refused = lab.world.run("egress", "cap", session, "--usd", "0.001")
    assert b"used" in refused.stderr
    assert meter.more_usd == pytest.approx(0.012)
    assert meter.waiting == 1
    raised = lab.world.run("egress", "cap", session, "--more", "--json").json
    assert raised["usd"] == pytest.approx(0.012)
    assert b"gpt-4o" in waiting.communicate(timeout=120)[0]
    lab.used(session, 3300)
    assert b"gpt-4o" in lab.guest(session, CHAT)
    assert lab.world.run("egress", "cap", session, "--stop").status == 0
    assert b'"code": "cap"' in lab.guest(session, CHAT)
    lifted = lab.world.run("egress", "cap", session, "--none", "--json").json
    assert lifted["usd"] is None
    assert b"gpt-4o" in lab.guest(session, CHAT)
    lab.used(session, 5500)
    assert not any("cap is reached" in text for text in lab.world.state(session).notices)


def test_without_its_key_an_agent_does_not_start(lab: Outside) -> None:
    del lab.world.environment["LAB_KEY"]
    answer = lab.world.run("run", "worker", "--detach", "--workspace", str(lab.work))
    assert answer.status != 0
    assert b"worker needs the service lab. The environment variable LAB_KEY is not set." in (
        answer.stderr
    )
    assert b"export LAB_KEY=" in answer.stderr
    assert lab.world.json("ps")["sessions"] == []
