"""What a session makes of its broker: starts with it, without it, or not at all; use and caps."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from app.errors import AppError
from app.keeper.broker import BrokerKeeper
from app.keeper.outside import Outside
from app.protocol import Meter
from vm.egress.broker.meter import Caps, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from app.broker import wire
    from app.keeper.ledger import Ledger as Session
    from app.paths import Paths
    from vm.egress.kinds import Entry

log = logging.getLogger(__name__)

WITHOUT: Final = "It runs without the service "
"""Begins the notice of a session that lacks one."""
AT_CAP: Final = "Its requests to models wait, for its cap is reached:"
"""Begins the notice of a session that asks for another cap."""
METER_S: Final = 0.5
"""Least time between two tellings of what was used."""


class SessionBroker:
    """The broker of one session. All methods run on the keeper's loop."""

    def __init__(self, paths: Paths, session: Session, log_entry: Callable[[Entry], None]) -> None:
        self._paths, self._session, self._log = paths, session, log_entry
        self.outside = Outside()
        self._keeper: BrokerKeeper | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The internal names that it serves."""
        return self._keeper.ready.hosts if self._keeper is not None else ()

    @property
    def env(self) -> Mapping[str, str]:
        """What programs in the guest are given: addresses and placeholders."""
        return self._keeper.ready.env if self._keeper is not None else {}

    @property
    def door(self) -> str:
        """Where the gateway hands connections over; empty without a broker."""
        return str(self._keeper.door) if self._keeper is not None else ""

    async def start(self, *, ask: bool, adopted: bool = False) -> None:
        """Start it, where the session has services.

        Raises AppError where a key that the agent needs is not there; a machine that runs already
        (`adopted`) goes on without it, and a notice says so.
        """
        wanted = self._session.record.broker.services
        if not wanted or self._keeper is not None:
            return
        sockets = self._paths.sockets(self._session.record.id)
        self._keeper = self._made(sockets, ask)
        try:
            ready = await self._keeper.start()
            if not adopted:
                self._demand(ready.missing)
            self._note(WITHOUT, self._lacks(ready.missing, everything=adopted))
        except (AppError, OSError) as error:
            keeper, self._keeper = self._keeper, None
            await keeper.stop()
            if not adopted:
                raise
            self._note(WITHOUT, [f"{WITHOUT}broker: {error}"])
        self._tell()

    def _made(self, sockets: Path, ask: bool) -> BrokerKeeper:
        broker, meter = self._session.record.broker, self._session.state.meter
        totals = Totals(meter.answers, meter.tokens, meter.usd, meter.unpriced, meter.silent)
        caps = Caps(meter.cap_tokens or broker.tokens, meter.cap_usd or broker.usd)
        return BrokerKeeper(
            self._session.record, sockets, self.outside.variables, self.outside.proxies, totals,
            caps, ask=ask, log=self._log, changed=self._changed, fault=self._fault,
        )  # fmt: skip

    async def stop(self) -> None:
        """End it: nobody has the keys any more."""
        keeper, self._keeper = self._keeper, None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if keeper is not None:
            await keeper.stop()
            self._write(keeper, asks=False)

    def cap(self, tokens: int | None, usd: float | None) -> None:
        """Put other caps in force; None leaves one as it is. Raises AppError."""
        keeper = self._keeper
        if keeper is None:
            raise AppError("usage", "This session has no broker that runs.", "See: cloche ps")
        new = Caps(
            keeper.caps.tokens if tokens is None else tokens,
            keeper.caps.dollars if usd is None else usd,
        )
        if keeper.totals.over(new):
            used = f"{keeper.totals.tokens:,} tokens and ${keeper.totals.dollars:.2f}"
            text = f"The session has used {used} already."
            raise AppError("usage", text, "Name a cap above that.")
        keeper.cap(new)

    def _demand(self, missing: Iterable[wire.Missing]) -> None:
        """Refuse to start without a key that the agent cannot do without."""
        wanted = self._session.record.broker.services
        agent = self._session.record.agent.name
        for one in missing:
            if wanted[one.name].need == "required":
                text = f"{agent} needs the service {one.name}. {one.message}"
                raise AppError("no-credential", text, one.hint)

    def _lacks(self, missing: Iterable[wire.Missing], *, everything: bool) -> list[str]:
        """Return what is to be said: a key that nobody ever gave is missed only by its owner."""
        wanted = self._session.record.broker.services
        told = [one for one in missing if everything or not one.unset]
        models = {name for name, one in wanted.items() if not one.data.get("git")}
        if models and not models & {host.partition(".")[0] for host in self.hosts}:
            told = [one for one in missing if one.name in models or one in told]
        return [f"{WITHOUT}{one.name}: {one.message} {one.hint}" for one in told]

    def _note(self, beginning: str, texts: Iterable[str]) -> None:
        """Have exactly these notices that begin so."""
        others = [one for one in self._session.state.notices if not one.startswith(beginning)]
        self._session.change(notices=(*others, *texts))

    # What the broker says. None of it may wait.

    def _fault(self, sentence: str) -> None:
        log.warning("%s", sentence)
        self._session.journal.write("broker", sentence)

    def _changed(self) -> None:
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(METER_S, self._tell)

    def _tell(self) -> None:
        self._alarm = None
        if self._keeper is not None:
            self._write(self._keeper, asks=self._keeper.asks)

    def _write(self, keeper: BrokerKeeper, *, asks: bool) -> None:
        totals, caps = keeper.totals, keeper.caps
        meter = Meter(
            totals.answers, totals.tokens, totals.dollars, totals.unpriced, totals.silent,
            caps.tokens, caps.dollars, asks,
        )  # fmt: skip
        hint = f"cloche egress cap {self._session.record.id} --usd N (or --tokens N)"
        try:
            self._session.change(meter=meter)
            self._note(AT_CAP, [f"{AT_CAP} {hint}"] if asks else [])
        except OSError:  # nothing depends on it; the next telling says the same
            log.exception("what was used could not be written down")
