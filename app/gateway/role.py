"""The gateway's process: `_role gateway LINK NAMES CONTROL`, numbers of open descriptors.

LINK is connected to the machine's network socket, NAMES the session's file of names, open to be
read and appended to, CONTROL one end of a socket pair to the keeper. It ends with its link, or with
its keeper, and has nothing else of the session: no folder, no key, no other machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.gateway import wire
from vm.egress.broker.doors import DoorDialer
from vm.egress.dial import DirectDialer, SystemResolver
from vm.egress.dial_proxy import ProxyDialer
from vm.egress.gateway import Gateway
from vm.egress.judging import PolicyJudge
from vm.egress.kinds import Limits
from vm.egress.link import StreamLink
from vm.egress.questions import MAX_TIMEOUT_S
from vm.egress.table import NameTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vm.egress.kinds import Dialer, Entry

FILES: Final = 8192
"""Descriptors: one for each connection, and some for what is being made."""
BACKLOG: Final = 4 << 20
"""Bytes of reports that wait for a keeper that does not read; log lines beyond it are counted."""
LAST_WORDS_S: Final = 2.0
"""How long the last log lines may take."""
SLACK_S: Final = 5.0
"""The gateway's own bound on a question, in case the judge forgot it."""


def run(arguments: Sequence[str]) -> int:
    """Serve one link; returns when it, or the keeper, is gone."""
    link, names, control = (int(argument) for argument in arguments)
    _bounds()
    asyncio.run(_serve(link, names, control))
    return 0


def _bounds() -> None:
    """Leave no core dump, which would hold what guests send; have room for many connections."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(link: int, names: int, control: int) -> None:
    reader, writer = await asyncio.open_connection(
        sock=socket.socket(fileno=control), limit=wire.MAX_LINE
    )
    first = await reader.readline()
    if first:
        served = Served(socket.socket(fileno=link), names, writer, wire.beginning(first))
        await served.until_over(reader)
    writer.close()
    with contextlib.suppress(ConnectionError, TimeoutError):  # a keeper that is gone hears nothing
        async with asyncio.timeout(LAST_WORDS_S):
            await writer.wait_closed()


class Served:
    """The gateway with its judge and its keeper."""

    def __init__(
        self,
        link: socket.socket,
        names: int,
        keeper: asyncio.StreamWriter,
        first: wire.InForce,
    ) -> None:
        self._keeper = keeper
        self._names = names
        self._lost = 0
        self._resolver = SystemResolver()
        self._judge = PolicyJudge(first.policy, self._asks, first.timeout_s)
        self._gateway = Gateway(
            self._judge,
            self._dialer(first),
            self._happened,
            NameTable(wire.rows(_content(names)), self._named),
            Limits(ask_s=MAX_TIMEOUT_S + SLACK_S),
        )
        self._link = StreamLink(link, asyncio.get_running_loop())
        self._gateway.attach(self._link)
        self._link.start(self._gateway.take, self._gateway.drained)
        keeper.write(wire.line(wire.Holds()))

    def _dialer(self, first: wire.InForce) -> Dialer:
        direct = DirectDialer(self._judge, self._resolver)
        outside = ProxyDialer(first.proxies, direct, self._judge, self._resolver)
        return DoorDialer(Path(first.door) if first.door else None, outside)

    async def until_over(self, reader: asyncio.StreamReader) -> None:
        """Put in force what the keeper says until it, or the link, is gone."""
        orders = asyncio.create_task(self._obey(reader))
        await asyncio.wait((orders, self._link.closed), return_when=asyncio.FIRST_COMPLETED)
        orders.cancel()
        self._link.close()
        self._gateway.detach()
        self._judge.close()
        self._resolver.close()
        if orders.done() and not orders.cancelled() and (error := orders.exception()):
            raise error

    async def _obey(self, reader: asyncio.StreamReader) -> None:
        while raw := await reader.readline():
            order = wire.order(raw)
            if isinstance(order, wire.Typed):
                self._gateway.typed()
                continue
            self._judge.change(order.policy, order.timeout_s)
            self._keeper.write(wire.line(wire.Holds()))

    def _named(self, name: str, address: str) -> None:
        """Write a row down before the guest hears of it: it must mean the same ever after."""
        os.write(self._names, wire.row(name, address))

    def _happened(self, entry: Entry) -> None:
        if self._keeper.transport.get_write_buffer_size() > BACKLOG:
            self._lost += entry.count
            sys.stderr.write(f"{self._lost} log lines did not reach the keeper\n")
            return
        self._keeper.write(wire.line(wire.Happened(entry)))

    def _asks(self) -> None:
        self._keeper.write(wire.line(wire.Waits(self._judge.questions())))


def _content(descriptor: int) -> bytes:
    """Read a file from its beginning; it ends where a row does, or a crash cut the last one off."""
    raw = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    if raw and not raw.endswith(b"\n"):
        raw = raw[: raw.rfind(b"\n") + 1]
        os.ftruncate(descriptor, len(raw))
    return raw
