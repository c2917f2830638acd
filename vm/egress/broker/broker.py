"""The broker of one session: which services it has, and one task for each guest's connection."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import h11

from vm.egress.broker import reference, refusals, secret, services, trust
from vm.egress.broker.exchange import Around, Exchange, Record
from vm.egress.broker.meter import Caps, Totals
from vm.egress.broker.pipes import CHUNK, GuestPipe, Limits
from vm.egress.kinds import Dialled, DialRefused, Refused

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from vm.egress.broker.exchange import Connect
    from vm.egress.broker.services import Held, Service
    from vm.egress.broker.usage import Usage
    from vm.egress.kinds import Request, Verdict

    OverCap = Callable[[Totals, Caps], Awaitable[Caps | None]]
    """Asks the user: the caps that hold from now on, or None to stop."""


def prepare(
    wanted: Iterable[Service], env: Mapping[str, str], workspaces: Sequence[Path]
) -> tuple[tuple[Held, ...], ssl.SSLContext]:
    """Fetch what a broker needs, in the process that will hold it. BrokerRefused says what lacks.

    Blocks: a keyring may ask its user first.
    """
    secret.harden()
    context = trust.context(trust.bundle(env))
    held = [services.hold(s, reference.read(s.credential, env, workspaces)) for s in wanted]
    return tuple(held), context


async def nobody(_totals: Totals, _caps: Caps) -> Caps | None:
    """Answer for a session that nobody can be asked about: a cap ends it."""
    return None


class Broker:
    """Serves a session's guest; lives in an asyncio loop."""

    def __init__(
        self,
        held: Iterable[Held],
        connect: Connect,
        trusted: ssl.SSLContext,
        log: Callable[[Record], None],
        caps: Caps = Caps(),  # noqa: B008 - a frozen value
        over_cap: OverCap = nobody,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
    ) -> None:
        self._held = {one.service.internal: one for one in held}
        self._limits, self._log = limits, log
        self.caps, self.totals = caps, Totals()
        self._over_cap = over_cap
        self._asking = asyncio.Lock()
        self._turns = asyncio.Semaphore(limits.connections)
        self._around = Around(connect, trusted, limits, self._may_meter, self._used)

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
                while await self._next(self._held[host], guest):
                    pass
            except OSError:
                pass  # the guest hung up, which it may at any time
            finally:
                await guest.close()

    async def _next(self, held: Held, guest: GuestPipe) -> bool:
        """Serve one request; False when the connection is at its end."""
        exchange = Exchange(held, guest, self._around)
        try:
            request = await guest.request(self._limits)
            if request is None:
                return False
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
            if exchange.record.method or exchange.record.code != "answered":
                self._log(exchange.record)

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

    async def _may_meter(self) -> None:
        """Let a request pass, or ask once for all that wait. Raises Refused."""
        async with self._asking:
            while self.totals.over(self.caps):
                try:
                    async with asyncio.timeout(self._limits.ask_s):
                        caps = await self._over_cap(self.totals, self.caps)
                except TimeoutError:
                    caps = None
                if caps is None:
                    raise Refused("cap")
                self.caps = replace(caps)

    def _used(self, usage: Usage | None) -> None:
        self.totals = self.totals.with_answer(usage)


class BrokerDialer:
    """A `Dialer` for the internal names: the other end of its sockets is the broker itself."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: set[asyncio.Task[None]] = set()

    async def dial(self, request: Request, verdict: Verdict) -> Dialled:
        """Connect the guest to a service. Raises DialRefused."""
        if request.host not in self._broker.hosts() or request.port != 80:
            raise DialRefused("internal-name", f"{request.host} is no service of Cloche.")
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        task = asyncio.create_task(self._broker.serve(request.host, ours))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return Dialled(theirs, "broker")

    async def close(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
