"""The broker's process: `_role broker DOOR CONTROL VARIABLES`, numbers of open descriptors.

DOOR is the listening socket at which the gateway hands connections over, CONTROL one end of a
socket pair to the keeper, VARIABLES the memory file with the user's. It ends with its keeper. It
alone has keys; it reads no frame of the guest's, no file of the session, and is read by nobody.
"""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from app.broker import handover, wire
from app.wire_text import text_path
from vm.egress.broker import secret, services
from vm.egress.broker.broker import Broker, prepare
from vm.egress.broker.doors import Door, ServiceJudge, connector
from vm.egress.dial import DirectDialer, SystemResolver
from vm.egress.dial_proxy import ProxyDialer
from vm.errors import BrokerRefused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vm.egress.broker.exchange import Record
    from vm.egress.broker.meter import Totals, Waiting
    from vm.egress.broker.services import Held


def run(arguments: Sequence[str]) -> int:
    """Serve one session; returns when its keeper is gone."""
    door, control, variables = (int(argument) for argument in arguments[:3])
    secret.harden()  # before a value is read
    env = handover.take_over(variables)
    os.close(variables)
    keep_helpers(env)
    asyncio.run(_serve(door, control, env))
    return 0


def keep_helpers(env: Mapping[str, str]) -> None:
    """Give programs that are asked for a key the user's helpers, and no key."""
    os.environ.clear()
    os.environ.update({name: env[name] for name in handover.HELPERS if name in env})


async def _serve(door: int, control: int, env: Mapping[str, str]) -> None:
    reader, writer = await asyncio.open_connection(
        sock=socket.socket(fileno=control), limit=wire.MAX_LINE
    )
    first = await reader.readline()
    if not first:
        return
    begin = wire.order(first)
    assert isinstance(begin, wire.Begin)
    served = Served(begin, writer)
    try:
        await served.prepare(env)
    except BrokerRefused as error:
        writer.write(wire.line(wire.Cannot(error.message, error.hint)))
        await writer.drain()
        return
    await served.until_over(socket.socket(fileno=door), reader)


class Served:
    """The broker with its keeper."""

    def __init__(self, begin: wire.Begin, keeper: asyncio.StreamWriter) -> None:
        self._begin, self._keeper = begin, keeper
        self._resolver = SystemResolver()
        self._broker: Broker | None = None

    async def prepare(self, env: Mapping[str, str]) -> None:
        """Fetch the keys and tell the keeper what is there. Raises BrokerRefused."""
        wanted = [services.parse(name, data) for name, data in self._begin.services.items()]
        folders = [Path(text_path(self._begin.workspace))] if self._begin.workspace else []
        held, missing, trust = await asyncio.to_thread(
            prepare, wanted, env, folders, self._begin.seed
        )
        judge = ServiceJudge(one.service for one in held)
        direct = DirectDialer(judge, self._resolver)
        dialer = ProxyDialer(self._begin.proxies, direct, judge, self._resolver)
        self._broker = Broker(
            held, connector(dialer), trust, self._log, self._begin.caps,
            self._over,
            totals=self._begin.totals, used=self._used,
        )  # fmt: skip
        gate = self._broker.gate
        gate.stopped, gate.ask = self._begin.stopped, self._begin.ask
        self._upstreams = {one.service.name: _upstream(one) for one in held}
        said = tuple(_missing(service, missing) for service in wanted if service.name in missing)
        self._say(wire.Ready(tuple(sorted(self._broker.hosts())), services.guest_env(held), said))

    async def until_over(self, door: socket.socket, reader: asyncio.StreamReader) -> None:
        """Serve until the keeper is gone."""
        assert self._broker is not None
        serving = asyncio.create_task(Door(door, self._broker.hosts(), self._broker.serve).run())
        try:
            while raw := await reader.readline():
                message = wire.order(raw)
                if isinstance(message, wire.Capped):
                    self._broker.gate.change(message.caps, stopped=message.stopped, ask=message.ask)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            self._resolver.close()

    def _say(self, report: wire.Report) -> None:
        self._keeper.write(wire.line(report))

    def _used(self, totals: Totals) -> None:
        self._say(wire.Used(totals))

    def _over(self, waiting: Waiting) -> None:
        """Tell the keeper, which asks the user."""
        self._say(wire.Over(waiting))

    def _log(self, record: Record) -> None:
        host, upstream = self._upstreams[record.service]
        self._say(
            wire.Asked(
                host, upstream, record.method, record.path, record.status, record.code,
                record.up, record.down, record.seconds, record.scrubbed,
            )
        )  # fmt: skip


def _upstream(held: Held) -> tuple[str, str]:
    service = held.service
    return service.internal, f"{service.host}:{service.port}"


def _missing(service: services.Service, missing: Mapping[str, BrokerRefused]) -> wire.Missing:
    error = missing[service.name]
    unset = service.credential.kind == "env" and "is not set" in error.message
    return wire.Missing(service.name, error.message, error.hint, unset)
