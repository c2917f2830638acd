"""The keeper's side of the gateway: starts it on the machine's network, and again if it dies.

The gateway is given three descriptors and nothing else. What it says is read in lines of a bounded
length; one that is none of ours ends it. While it is away the guest's packets go nowhere; its
connections are over, its names are not.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING, Final

from app.gateway import wire
from app.keeper.children import END_S, PAUSE_S, end_child, next_pause, start_child
from app.keeper.threads import end_tasks
from vm.egress.proxy import Proxies
from vm.egress.questions import TIMEOUT_S, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from vm.egress.kinds import Entry
    from vm.egress.policy import Policy

NAMES: Final = "names.jsonl"
"""The session's file of names and their addresses, in its folder."""
TYPED_S: Final = 0.5
"""Least time between two tellings that somebody types, each of which holds four times as long."""
PAUSE_MAX_S: Final = 5.0
"""Between two starts, at the most."""


class GatewayKeeper:
    """One session's gateway, for as long as its machine runs.

    `log` gets each line, `asked` all open questions whenever they change, `fault` a sentence when
    the gateway died or could not be started. None of them may wait. `proxies` is this host's way
    out, which the gateway hears of in no other way: it has no environment. `door` is where the
    session's credential broker takes connections.
    """

    def __init__(
        self,
        argv: Sequence[str],
        folder: Path,
        network_socket: Path,
        policy: Policy,
        *,
        log: Callable[[Entry], None],
        asked: Callable[[Sequence[Question]], None],
        fault: Callable[[str], None],
        timeout_s: float = TIMEOUT_S,
        proxies: Proxies = Proxies(),  # noqa: B008 - a frozen value
        door: str = "",
    ) -> None:
        self.policy = policy
        self._proxies, self._door = proxies, door
        self._argv = (*argv,)
        self._folder = folder
        self._network_socket = network_socket
        self._log, self._asked, self._fault = log, asked, fault
        self._timeout_s = timeout_s
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self._ends = False
        self._due = 0
        """How many policies were sent that are not in force yet."""
        self._settled = asyncio.Event()
        self._typed = 0.0
        self.process: asyncio.subprocess.Process | None = None
        """The child, while there is one."""

    def start(self) -> None:
        """Begin to keep a gateway running."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End the gateway, and with it every connection of the guest; hear its last words."""
        task, self._task = self._task, None
        if task is None:
            return
        self._ends = True
        if self._writer is None:
            task.cancel()
        else:
            self._writer.write_eof()
            await asyncio.wait({task}, timeout=END_S)
        await end_tasks([task])

    async def change(self, policy: Policy, timeout_s: float) -> None:
        """Put another policy in force; what waits for an answer is decided again.

        Questions wait `timeout_s` from now on.

        Returns when it holds. One that is starting, or that dies meanwhile, begins with it.
        """
        self.policy, self._timeout_s = policy, timeout_s
        if self._writer is None:
            return
        self._send(self._writer)
        with contextlib.suppress(TimeoutError):  # a gateway that hangs lets nothing through either
            async with asyncio.timeout(END_S):
                await self._settled.wait()

    def typed(self) -> None:
        """Have the network leave room: somebody types. One that hangs need not know."""
        now = asyncio.get_running_loop().time()
        writer = self._writer
        if writer is None or now < self._typed + TYPED_S:
            return
        if not writer.transport.get_write_buffer_size():
            self._typed = now
            writer.write(wire.line(wire.Typed()))

    def _in_force(self) -> wire.InForce:
        return wire.InForce(self.policy, self._timeout_s, self._proxies, self._door)

    def _send(self, writer: asyncio.StreamWriter) -> None:
        self._due += 1
        self._settled.clear()
        writer.write(wire.line(self._in_force()))

    def _holds(self, left: int) -> None:
        self._due = left
        if not left:
            self._settled.set()

    async def _keep(self) -> None:
        pause = PAUSE_S
        loop = asyncio.get_running_loop()
        while not self._ends:
            began = loop.time()
            try:
                await self._run()
            except (OSError, ValueError) as error:
                self._fault(f"The session's network gateway failed: {error}.")
            self._asked(())
            if self._ends:
                return
            pause = next_pause(pause, loop.time() - began, PAUSE_MAX_S)
            await asyncio.sleep(pause)

    async def _run(self) -> None:
        """Start a gateway and listen to it until it ends."""
        link = await _connected(self._network_socket)
        names = -1
        ours, theirs = socket.socketpair()
        try:
            names = os.open(
                self._folder / NAMES, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            await self._spawn(link.fileno(), names, theirs.fileno())
        except BaseException:  # a start that was broken off leaves no descriptor behind either
            ours.close()
            raise
        finally:
            link.close()
            theirs.close()
            if names >= 0:
                os.close(names)
        await self._listen(ours)

    async def _spawn(self, link: int, names: int, control: int) -> None:
        numbers = (link, names, control)
        self.process = await start_child(self._argv, numbers)

    async def _listen(self, ours: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=ours, limit=wire.MAX_LINE)
        self._writer = writer
        try:
            self._send(writer)
            with contextlib.suppress(ConnectionError):
                while raw := await reader.readline():
                    self._hear(wire.report(raw))
        finally:
            self._writer = None
            self._holds(0)
            writer.close()
            await self._reap()

    def _hear(self, report: wire.Report) -> None:
        if isinstance(report, wire.Happened):
            self._log(report.entry)
        elif isinstance(report, wire.Holds):
            self._holds(self._due - 1)
        else:
            self._asked(report.questions)

    async def _reap(self) -> None:
        """Wait for the child's end, which follows the keeper's; help it where it does not come."""
        process, self.process = self.process, None
        if process is None:
            return
        await end_child(process)
        if process.returncode:
            self._fault(f"The session's network gateway ended with {process.returncode}.")


async def _connected(path: Path) -> socket.socket:
    """Connect to where QEMU listens. Raises OSError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, str(path))
    except BaseException:  # nor does an attempt that was broken off
        sock.close()
        raise
    return sock
