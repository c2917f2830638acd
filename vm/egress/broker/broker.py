"""The broker of one session: which services it has, and one task for each guest's connection."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import h11

from vm.egress.broker import oauth, reference, refusals, secret, services, target, trust
from vm.egress.broker.cap_gate import CapGate
from vm.egress.broker.exchange import Around, Exchange, Record
from vm.egress.broker.meter import Caps, Totals
from vm.egress.broker.pipes import CHUNK, GuestPipe, Limits
from vm.egress.kinds import DialRefused, Refused
from vm.errors import BrokerRefused

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from vm.egress.broker.exchange import Connect
    from vm.egress.broker.meter import Waiting
    from vm.egress.broker.services import Held, Service
    from vm.egress.broker.usage import Usage


def prepare(
    wanted: Iterable[Service], env: Mapping[str, str], workspaces: Sequence[Path], seed: str = ""
) -> tuple[tuple[Held, ...], dict[str, BrokerRefused], ssl.SSLContext]:
    """Fetch what a broker needs, in the process that will hold it.

    Returns the services that it has, why it lacks the others by name, and whom to believe. Raises
    BrokerRefused where nothing could be held. Blocks: a keyring may ask its user first.
    """
    secret.harden()
    context = trust.context(trust.bundle(env))
    held: list[Held] = []
    missing: dict[str, BrokerRefused] = {}
    for service in wanted:
        try:
            held.append(_held(service, env, workspaces, seed))
        except BrokerRefused as error:
            missing[service.name] = error
    return tuple(held), missing, context


def _held(service: Service, env: Mapping[str, str], workspaces: Sequence[Path], seed: str) -> Held:
    if service.oauth is None:
        value = reference.read(service.credential, env, workspaces)
        return services.hold(service, value, seed)
    token = oauth.read(Path(service.credential.target), service.oauth, workspaces)
    return replace(services.hold(service, token.secret, seed), until=token.until)


def _unheard(_: Waiting) -> None:
    """Take what waits at a cap where nobody listens."""


class Broker:
    """Serves a session's guest; lives in an asyncio loop.

    `waiting` hears of requests that wait at a cap; without it, and while the gate's `ask` is off,
    they are refused at once.
    """

    def __init__(
        self,
        held: Iterable[Held],
        connect: Connect,
        trusted: ssl.SSLContext,
        log: Callable[[Record], None],
        caps: Caps = Caps(),  # noqa: B008 - a frozen value
        waiting: Callable[[Waiting], None] | None = None,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
        *,
        totals: Totals = Totals(),  # noqa: B008 - a frozen value
        used: Callable[[Totals], None] = lambda totals: None,
    ) -> None:
        self._held = {one.service.internal: one for one in held}
        self._limits, self._log = limits, log
        self._tell = used
        self.gate = CapGate(
            caps, totals, limits.ask_s, waiting or _unheard, ask=waiting is not None
        )
        self._renewing: dict[str, asyncio.Task[Held]] = {}
        self._turns = asyncio.Semaphore(limits.connections)
        self._around = Around(connect, trusted, limits, self.gate.enter, self._used)

    def hosts(self) -> frozenset[str]:
        """Return the internal names that it serves, on port 80."""
        return frozenset(self._held)

    async def serve(self, host: str, sock: socket.socket) -> None:
        """Serve one connection of the guest to its end. Closes the socket."""
        sock.setblocking(False)
        async with self._turns:
            reader, writer = await asyncio.open_connection(sock=sock, limit=CHUNK)
            writer.transport.set_write_buffer_limits(high=CHUNK)
            guest = GuestPipe(reader, writer, self._limits.body_s, "guest-timeout")
            try:
                while await self._next(host, guest):
                    pass
            except OSError:
                pass  # the guest hung up, which it may at any time
            finally:
                await guest.close()

    async def _next(self, host: str, guest: GuestPipe) -> bool:
        """Serve one request; False when the connection is at its end."""
        exchange = Exchange(self._held[host], guest, self._around)
        try:
            request = await guest.request(self._limits)
            if request is None:
                return False
            exchange.held = await self._fresh(host)
            again = await exchange.run(request)
            return again and guest.parser.our_state is h11.DONE
        except (Refused, DialRefused) as refusal:
            exchange.record.code = refusal.code
            await self._refuse(exchange, guest, refusal)
            return False
        except h11.ProtocolError:
            exchange.record.code = "not-http"
            await self._refuse(exchange, guest, Refused("not-http"))
            return False
        finally:
            record = exchange.record
            if not record.method and record.code != "answered":  # refused before it was understood
                record.method, record.path = target.named(guest.line)
            if record.method or record.code != "answered":
                self._log(record)

    async def _fresh(self, host: str) -> Held:
        """Return a service whose token has not run out, renewed where it must be. Raises Refused.

        A renewal goes on without the request that wanted it: a token that was given out once has
        to be written down.
        """
        held = self._held[host]
        if held.until - time.time() > oauth.EARLY_S:
            return held
        if host not in self._renewing or self._renewing[host].done():
            self._renewing[host] = asyncio.create_task(self._renew(host))
        try:
            return await asyncio.shield(self._renewing[host])
        except Refused:
            if held.until > time.time():
                return held  # it is good for the moment
            raise

    async def _renew(self, host: str) -> Held:
        held = self._held[host]
        assert held.service.oauth is not None
        path = Path(held.service.credential.target)
        around = self._around
        token = await oauth.renew(path, held.service.oauth, around.connect, around.trust)
        self._held[host] = replace(held, secret=token.secret, until=token.until)
        return self._held[host]

    async def _refuse(
        self, exchange: Exchange, guest: GuestPipe, refusal: Refused | DialRefused
    ) -> None:
        if exchange.begun:
            return  # the answer stays without its end, which is how the guest learns of it
        if guest.parser.our_role is h11.CLIENT:  # no head was read yet
            guest.parser = h11.Connection(h11.SERVER)
        reason = refusal.reason if isinstance(refusal, DialRefused) else ""
        status, headers, body = refusals.words(refusal.code, reason)
        exchange.record.status = status
        try:
            await guest.send(h11.Response(status_code=status, headers=headers))
            await guest.send(h11.Data(data=body))
            await guest.send(h11.EndOfMessage())
        except (h11.LocalProtocolError, Refused):
            return  # a HEAD has no body, and a guest that reads nothing is told nothing

    def _used(self, usage: Usage) -> None:
        self.gate.totals = self.gate.totals.with_answer(usage)
        self._tell(self.gate.totals)
