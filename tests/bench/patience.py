"""How long clients wait for a connection that is held, and what they do then.

`python -m tests.bench.patience --json [--bound SECONDS] [--client NAME]…`; as root, or where user
namespaces are allowed. Real clients run in a network namespace whose only way out is the gateway,
which answers their questions for names and holds their connections: nobody answers a SYN. The tries
are read from the kernel's own list of sockets: `tries` are the seconds after a client's first SYN
at which it began and gave up each connection, `ended` is when the program ended, null where it
still waited or tried at the bound. In a second run each is answered at 0.8 of its first try, 45 s
at most; `went_on` tells whether its request then came over that same connection. A client that is
not installed here has null for everything.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench.report import publish
from tests.vm.egress_tap import ALLOW, site, verdict
from vm.egress.kinds import GATEWAY, Limits

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tests.vm.egress_tap import Site
    from vm.egress.kinds import Verdict

BOUND_S: Final = 150.0
"""Linux gives a connection up after some 130 s (tcp_syn_retries 6)."""
LOOK_S: Final = 0.1
ANSWER_AT: Final = 0.8
ANSWER_MOST_S: Final = 45.0
SYN_SENT: Final = "02"
"""A state in /proc/net/tcp (include/net/tcp_states.h)."""

PYTHON: Final = subprocess.run(
    ["python3", "-c", "import sys; print(sys.executable)"],
    stdout=subprocess.PIPE,
    text=True,
    check=True,
).stdout.strip()
"""The interpreter outside of the virtual environment: it has pip."""

CLIENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "curl": ("curl", "-sS", "URL"),
    "wget": ("wget", "-O-", "URL"),
    "git": ("git", "ls-remote", "URL"),
    "pip": (
        PYTHON,
        "-m",
        "pip",
        "--isolated",
        "download",
        "-i",
        "URL",
        "--trusted-host",
        "HOST",
        "it",
    ),
    "npm": ("npm", "view", "--registry", "URL", "it"),
    "node-fetch": ("node", "-e", "await fetch('URL')", "--input-type=module"),
    "python-urllib": (PYTHON, "-c", "import urllib.request as r; r.urlopen('URL')"),
    "python-requests": (PYTHON, "-c", "import requests; requests.get('URL')"),
    "go-mod": ("go", "mod", "download", "it.example/it@v1.0.0"),
    "go-http": ("go", "URL"),
}
"""`go-http` is a program that `go` builds first: see GO_HTTP."""
GO_HTTP: Final = """package main

import (
	"net/http"
	"os"
)

func main() {
	if _, err := http.Get(os.Args[1]); err != nil {
		os.Exit(1)
	}
}
"""
GO_BUILD_S: Final = 600.0
ENVIRONMENT: Final = {
    "LC_ALL": "C.UTF-8",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "NPM_CONFIG_UPDATE_NOTIFIER": "false",
    "GOSUMDB": "off",
    "GOTOOLCHAIN": "local",
}
IN_NAMESPACE: Final = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'


@dataclass(frozen=True)
class Tools:
    """What is measured, and with what."""

    wanted: frozenset[str]
    """No other clients; empty: all."""
    go_http: str
    """The program that was built; empty without Go."""


@dataclass
class Waiting:
    """One client that runs."""

    name: str
    argv: tuple[str, ...]
    host: str
    env: dict[str, str]
    tries: dict[int, list[float]] = field(default_factory=lambda: dict[int, list[float]]())
    """By the number of its own port: when it was seen first and last."""
    ended: float | None = None
    status: int | None = None
    requests: list[float] = field(default_factory=lambda: list[float]())
    answer_at: float | None = None

    @property
    def began(self) -> float:
        """When its first SYN was seen."""
        return min((first for first, _ in self.tries.values()), default=0.0)

    def spans(self) -> list[list[float]]:
        """Return its tries, in seconds after the first."""
        ordered = sorted(self.tries.values())
        return [[round(at - self.began, 1) for at in span] for span in ordered]

    def went_on(self) -> bool:
        """Tell whether a request came before there was a second try."""
        second = [first for first, _ in sorted(self.tries.values())[1:2]]
        return bool(self.requests) and all(self.requests[0] <= at for at in second)


def installed(wanted: Collection[str]) -> list[str]:
    """Return the clients that are here; `wanted`: no others, unless it is empty."""
    found = [name for name, argv in CLIENTS.items() if shutil.which(argv[0])]
    found = [name for name in found if not wanted or name in wanted]
    lacks = {"pip": "pip", "python-requests": "requests"}
    for name, module in lacks.items():
        look = [PYTHON, "-c", f"import {module}"]
        if name in found and subprocess.run(look, stderr=subprocess.DEVNULL).returncode:
            found.remove(name)
    return found


def build_go(folder: Path) -> str:
    """Build the program that asks with Go's own HTTP client; return its path."""
    (folder / "ask.go").write_text(GO_HTTP)
    env = {**os.environ, **ENVIRONMENT, "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    argv = ["go", "build", "-o", "ask", "ask.go"]
    subprocess.run(argv, cwd=folder, env=env, check=True, timeout=GO_BUILD_S)
    return str(folder / "ask")


def clients(port: int, tools: Tools) -> list[Waiting]:
    """Return the clients, each with a host of its own."""
    made: list[Waiting] = []
    for name in installed(tools.wanted):
        host = f"{name}.example"
        url = f"http://{host}:{port}/it"
        argv = tuple(word.replace("URL", url).replace("HOST", host) for word in CLIENTS[name])
        argv = (tools.go_http, *argv[1:]) if name == "go-http" else argv
        made.append(Waiting(name, argv, host, env={"GOPROXY": url}))
    return made


async def run(one: Waiting, site_: Site, folder: Path) -> None:
    """Run a client in the namespace until it ends."""
    home = folder / one.name
    home.mkdir()
    process = site_.namespace.process.pid
    user = () if os.geteuid() == 0 else ("-U", "--preserve-credentials")
    enter = ("nsenter", "-t", str(process), *user, "-n", "unshare", "-m", "sh", "-c", IN_NAMESPACE)
    child = await asyncio.create_subprocess_exec(
        *enter,
        "sh",
        str(folder / "resolv.conf"),
        *one.argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=home,
        env={**ENVIRONMENT, **one.env, "PATH": os.environ["PATH"], "HOME": str(home)},
        start_new_session=True,
    )
    try:
        one.status = await child.wait()
        one.ended = time.monotonic()
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, 9)
            await child.wait()


async def watch(waiting: list[Waiting], site_: Site) -> None:
    """Note every connection that is being made, until cancelled."""
    path = f"/proc/{site_.namespace.process.pid}/net/tcp"
    hosts = {site_.address(one.host): one for one in waiting}
    while True:
        now = time.monotonic()
        for line in _sockets(path):
            own, other, state = line.split()[1:4]
            one = hosts.get(_address(other))
            if one is not None and state == SYN_SENT:
                span = one.tries.setdefault(int(own.partition(":")[2], 16), [now, now])
                span[1] = now
        await asyncio.sleep(LOOK_S)


def _sockets(path: str) -> list[str]:
    """Read the kernel's list; it never waits for a disk."""
    with open(path) as rows:
        return rows.readlines()[1:]


def _address(text: str) -> str:
    """Read `0100007F:0050` as /proc/net/tcp writes it: the address in the host's own order."""
    return str(IPv4Address(int.from_bytes(bytes.fromhex(text.partition(":")[0]), sys.byteorder)))


async def answer(waiting: list[Waiting], site_: Site) -> None:
    """Answer what is held when its time has come, until cancelled; without one never."""
    hosts = {one.host: one for one in waiting}
    async with asyncio.TaskGroup() as group:
        while True:
            _, request, answered = await site_.judge.asked.get()
            at = hosts[request.host].answer_at
            if at is not None:
                group.create_task(_answer(answered, at))


async def _answer(answered: asyncio.Future[Verdict], after: float) -> None:
    await asyncio.sleep(after)  # the user takes that long
    if not answered.done():
        answered.set_result(ALLOW)


async def round_of(bound: float, answers: Mapping[str, float], tools: Tools) -> list[Waiting]:
    """Run all clients side by side; `answers` say after how many seconds each gets one."""
    async with site(Limits(ask_s=bound + 60)) as site_:
        found: list[Waiting] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            for one in found:
                if f"host: {one.host}:" in head:
                    one.requests.append(time.monotonic())
            writer.write(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            await writer.drain()

        found += clients(await site_.serve(serve), tools)
        for one in found:
            site_.judge.verdicts[one.host] = verdict(action="ask")
            one.answer_at = answers.get(one.name)
        with tempfile.TemporaryDirectory() as name:
            await _side_by_side(found, site_, Path(name), bound)
    return found


async def _side_by_side(found: list[Waiting], site_: Site, folder: Path, bound: float) -> None:
    (folder / "resolv.conf").write_text(f"nameserver {IPv4Address(GATEWAY.ip)}\n")
    besides = [asyncio.create_task(watch(found, site_)), asyncio.create_task(answer(found, site_))]
    runs = [asyncio.create_task(run(one, site_, folder)) for one in found]
    try:
        await asyncio.wait(runs, timeout=bound)
    finally:
        for task in (*runs, *besides):
            task.cancel()
        await asyncio.gather(*runs, *besides, return_exceptions=True)


def row(one: Waiting, again: Waiting | None) -> dict[str, object]:
    """Return a client's figures."""
    spans = one.spans()
    over = one.ended is not None or len(spans) > 1
    went_on = again is not None and again.went_on()
    return {
        "waits_s": spans[0][1] if over and spans else None,
        "tries": spans,
        "ended": None if one.ended is None else round(one.ended - one.began, 1),
        "exit": one.status,
        "answered_s": None if again is None else again.answer_at,
        "went_on": went_on,
    }


async def measure(bound: float, tools: Tools) -> dict[str, object]:
    """Measure all clients twice: without an answer, and with one in time."""
    held = await round_of(bound, {}, tools)
    waits = {one.name: one.spans()[0][1] for one in held if one.tries}
    times = {name: round(min(ANSWER_MOST_S, ANSWER_AT * waits[name]), 1) for name in waits}
    answered = {one.name: one for one in await round_of(ANSWER_MOST_S + 45, times, tools)}
    rows = {one.name: row(one, answered.get(one.name)) for one in held}
    return {"bound_s": bound, **{name: rows.get(name) for name in CLIENTS}}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="the output is JSON in any case")
    parser.add_argument("--bound", type=float, default=BOUND_S)
    parser.add_argument("--client", action="append", default=[], choices=CLIENTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        go_http = build_go(Path(name)) if "go-http" in installed(given.client) else ""
        tools = Tools(frozenset(given.client), go_http)
        publish(asyncio.run(measure(given.bound, tools)))


if __name__ == "__main__":
    main()
