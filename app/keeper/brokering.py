"""What a session makes of its broker: starts with it, without it, or not at all; use and caps."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from app.errors import AppError
from app.keeper.broker import BrokerKeeper
from app.keeper.outside import Outside
from app.protocol import CapWord, Meter
from app.wording import counted
from vm.egress.broker.meter import Caps, Totals, Waiting, raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from app.broker import wire
    from app.keeper.ledger import Ledger as Session
    from app.paths import Paths
    from app.protocol import CapChange
    from vm.egress.kinds import Entry

log = logging.getLogger(__name__)

WITHOUT: Final = "It runs without the service "
"""Begins the notice of a session that lacks one."""
AT_CAP: Final = "Its requests to models wait, for its cap is reached:"
"""Begins the notice of a session that asks for another cap."""
STOPPED: Final = "Its requests to models are refused, for its cap is reached:"
"""Begins the notice of one whose user said that it stays so."""
STAYS: Final = "stopped at the cap"
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
        caps = Caps(meter.cap_tokens, meter.cap_usd) if meter.changed else caps
        return BrokerKeeper(
            self._session.record, sockets, self.outside.variables, self.outside.proxies, totals,
            caps, ask=ask, stopped=meter.stopped, log=self._log, changed=self._changed,
            fault=self._fault,
        )  # fmt: skip

    async def stop(self) -> None:
        """End it: nobody has the keys any more."""
        keeper, self._keeper = self._keeper, None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if keeper is not None:
            await keeper.stop()
            keeper.waiting = Waiting()
            self._write(keeper)

    def asking(self, ask: bool) -> None:
        """Say whether somebody can be asked at a cap from now on."""
        if self._keeper is not None:
            self._keeper.asking(ask)

    def cap(self, change: CapChange) -> CapWord:
        """Put other caps in force and return what holds. Raises AppError.

        `no-such` where an answer comes to a question that is over: it was answered elsewhere.
        """
        keeper = self._keeper
        if keeper is None:
            raise AppError("usage", "This session has no broker that runs.", "See: cloche ps")
        if change.asked and change.asked != keeper.waiting.since:
            raise AppError("no-such", "Nobody asks about the session's cap (any more).")
        stopped = change.answer == "stop"
        caps = self._caps(keeper, change)
        if stopped and not keeper.totals.over(caps):
            raise AppError("usage", "The session has not reached a cap.", "See: cloche ps --json")
        keeper.cap(caps, stopped=stopped)
        self._tell()
        return CapWord(STAYS if stopped else cap_words(caps))

    def _caps(self, keeper: BrokerKeeper, change: CapChange) -> Caps:
        """Return the caps that a change means. Raises AppError for one that is used up already."""
        if change.answer == "raise":
            return raised(keeper.caps, self._step(), keeper.totals)
        if change.answer == "lift":
            return Caps()
        if change.answer == "stop":
            return keeper.caps
        tokens = keeper.caps.tokens if change.tokens is None else change.tokens
        usd = keeper.caps.dollars if change.usd is None else change.usd
        if keeper.totals.over(Caps(tokens, usd)):
            used = f"{counted(keeper.totals.tokens, 'token')} and ${keeper.totals.dollars:.2f}"
            text = f"The session has used {used} already."
            raise AppError("usage", text, "Name a cap above that.")
        return Caps(tokens, usd)

    def _step(self) -> Caps:
        broker = self._session.record.broker
        return Caps(broker.tokens, broker.usd)

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
            self._write(self._keeper)

    def _write(self, keeper: BrokerKeeper) -> None:
        name = self._session.record.id
        waits = bool(keeper.waiting.requests)
        try:
            self._session.change(meter=self._meter(keeper))
            hint = f"cloche egress cap {name} --more (or --none, --stop, --usd N, --tokens N)"
            self._note(AT_CAP, [f"{AT_CAP} {hint}"] if waits else [])
            refuses = keeper.stopped and keeper.totals.over(keeper.caps)
            self._note(STOPPED, [f"{STOPPED} cloche egress cap {name} --more"] if refuses else [])
        except OSError:  # nothing depends on it; the next telling says the same
            log.exception("what was used could not be written down")

    def _meter(self, keeper: BrokerKeeper) -> Meter:
        totals, caps, waiting = keeper.totals, keeper.caps, keeper.waiting
        more = raised(caps, self._step(), totals)
        return Meter(
            answers=totals.answers,
            tokens=totals.tokens,
            usd=totals.dollars,
            unpriced=totals.unpriced,
            silent=totals.silent,
            cap_tokens=caps.tokens,
            cap_usd=caps.dollars,
            asks=bool(waiting.requests),
            waiting=waiting.requests,
            asked=waiting.since,
            ends=waiting.ends,
            more_tokens=more.tokens,
            more_usd=more.dollars,
            changed=caps != self._step(),
            stopped=keeper.stopped,
        )


def cap_words(caps: Caps) -> str:
    """Say in one line what holds."""
    named = [f"${caps.dollars:,.2f}"] if caps.dollars is not None else []
    named += [counted(caps.tokens, "token")] if caps.tokens is not None else []
    return f"cap of {' and '.join(named)}" if named else "no cap for this session"
