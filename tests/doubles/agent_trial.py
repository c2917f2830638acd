"""Try an agent's real program against the broker, without a machine and without a network.

    python -m tests.doubles.agent_trial AGENT --path DIR [--home DIR] [--work DIR] [-- ARGUMENT…]

DIR has the program. It is started as in a guest, in namespaces of its own in which nothing else can
be reached: the services' internal names lead to a real broker, which asks `tests.doubles.models`.
Each request and, at the end, the names that it looked up are written to `--log`, an object a line.
Needs root, for namespaces and the agent's user.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dns.exception
import dns.message
import dns.rcode

from app.agents import Agent, builtin
from tests.doubles import models
from tests.vm.broker_lab import Upstream
from vm.egress.broker import services
from vm.egress.broker.broker import Broker
from vm.egress.broker.secret import Secret
from vm.egress.broker.trust import context

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from vm.egress.broker.services import Held

KEY: Final = "sk-trial-key-0123456789abcdef"
ENTERED: Final = "CLOCHE_TRIAL_ENTERED"
AGENT_ID: Final = 1000
"""Agents refuse or change things as root."""

HOME, WORKSPACE = "/home/agent", "/workspace"


class Trial:
    """One run of a program."""

    def __init__(self, arguments: argparse.Namespace, folder: Path) -> None:
        self.agent: Agent = builtin()[arguments.agent]
        self.folder = folder
        self.path: str = arguments.path
        self.home, self.work = arguments.home or str(folder), arguments.work or str(folder)
        self.rest: tuple[str, ...] = tuple(arguments.rest)
        self.log = Path(arguments.log).open("w")  # noqa: SIM115 - open as long as the process
        self.names: set[str] = set()
        self.got: list[models.Asked] = []
        self.tasks: set[asyncio.Task[None]] = set()

    def tell(self, **row: object) -> None:
        """Write a line of the log."""
        self.log.write(json.dumps(row) + "\n")
        self.log.flush()

    async def run(self) -> int:
        """Start everything, then the program; its status."""
        async with Upstream(self.folder, models.handler(KEY, self.got), "127.0.0.1") as upstream:
            known = services.builtin()
            secret = Secret(KEY.encode(), "none")
            held = [services.hold(known[name], secret) for name in self.agent.services]
            trust = context(upstream.cert)
            trust.check_hostname = False  # one server stands for all
            broker = Broker(held, upstream.connect, trust, lambda row: self.tell(asked=str(row)))
            self._serve(broker, held)
            self._write_first()
            status = await self._program(held)
        for asked in self.got:
            self.tell(target=f"{asked.method} {asked.target}", headers=asked.headers)
        self.tell(used=str(broker.gate.totals), names=sorted(self.names), status=status)
        return status

    def _serve(self, broker: Broker, held: Iterable[Held]) -> None:
        hosts = ["127.0.0.1 localhost"]
        for number, one in enumerate(held, 2):
            hosts.append(f"127.0.0.{number} {one.service.internal}")
            listener = socket.create_server((f"127.0.0.{number}", 80))
            self._begin(self._door(broker, one.service.internal, listener))
        own_file(self.folder, "hosts", "\n".join(hosts))
        own_file(self.folder, "resolv.conf", "nameserver 127.0.0.1")
        self._begin(self._name_server())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _door(self, broker: Broker, host: str, listener: socket.socket) -> None:
        listener.setblocking(False)
        while True:
            sock, _ = await asyncio.get_running_loop().sock_accept(listener)
            self._begin(broker.serve(host, sock))

    async def _name_server(self) -> None:
        """Note each name that is looked up; there is none."""
        loop = asyncio.get_running_loop()
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", 53))
        sock.setblocking(False)
        while True:
            data, whence = await loop.sock_recvfrom(sock, 4096)
            with contextlib.suppress(dns.exception.DNSException):
                query = dns.message.from_wire(data)
                self.names.add(str(query.question[0].name).rstrip("."))
                reply = dns.message.make_response(query)
                reply.set_rcode(dns.rcode.NXDOMAIN)
                await loop.sock_sendto(sock, reply.to_wire(), whence)

    def _here(self, text: str) -> str:
        return text.replace(HOME, self.home).replace(WORKSPACE, self.work)

    def _write_first(self) -> None:
        for name, text in self.agent.first_files().items():
            place = Path(self._here(name))
            if not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(self._here(text))
                os.chown(place, AGENT_ID, AGENT_ID)
                os.chown(place.parent, AGENT_ID, AGENT_ID)

    async def _program(self, held: Iterable[Held]) -> int:
        world = {
            "HOME": self.home,
            "LANG": "C.UTF-8",
            "TERM": os.environ.get("TERM", "xterm"),
            "PATH": f"{self.path}:/usr/bin:/bin",
            "SHELL": "/bin/bash",
            **services.guest_env(held),
        }
        words = [self._here(word) for word in self.agent.argv("trial", self.rest)]
        as_agent = [f"--reuid={AGENT_ID}", f"--regid={AGENT_ID}", "--clear-groups", "--"]
        process = await asyncio.create_subprocess_exec(
            "setpriv", *as_agent, *words, env=self.agent.variables(world), cwd=self.work
        )
        return await process.wait()


def own_file(folder: Path, name: str, text: str) -> None:
    """Give this namespace a file of /etc of its own."""
    (folder / name).write_text(text + "\n")
    (folder / name).chmod(0o644)
    target = os.path.realpath(f"/etc/{name}")
    subprocess.run(["mount", "--bind", str(folder / name), target], check=True)


def main() -> int:
    """Enter the namespaces, then try."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agent")
    for flag in ("--path", "--home", "--work"):
        parser.add_argument(flag, default="")
    parser.add_argument("--log", default="trial.jsonl")
    mark = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments = parser.parse_args(sys.argv[1:mark])
    arguments.rest = sys.argv[mark + 1 :]
    if ENTERED not in os.environ:
        own = ["unshare", "--net", "--mount", sys.executable, "-m", "tests.doubles.agent_trial"]
        os.execvpe(own[0], [*own, *sys.argv[1:]], {**os.environ, ENTERED: "1"})
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    folder = Path(tempfile.mkdtemp(prefix="trial-"))
    folder.chmod(0o777)
    try:
        return asyncio.run(Trial(arguments, folder).run())
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    raise SystemExit(main())
