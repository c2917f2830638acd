"""A session's network: its policy in force, its gateway, its log, and the questions it asks.

The truth lies in files: rules where `app.egress` has them, names and log in the session's folder.
So a gateway that dies is started anew with all of it, and so is the keeper. Only an answer for
`once`, which holds for a minute, is in memory.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.client.launch import role_command
from app.egress.compose import Composed, compose
from app.egress.edits import LOOK_S, MISTAKE, Edits, fingerprint
from app.egress.session import ask_from_now_on
from app.egress.writing import about_session, write_choice
from app.errors import AppError
from app.keeper.brokering import SessionBroker
from app.keeper.gateway import GatewayKeeper
from app.keeper.threads import end_tasks, in_thread, looked_at
from app.protocol import EgressInfo, EgressRule
from app.wire_text import text_path
from vm.egress.kinds import Request
from vm.egress.ledger import NAME, Ledger
from vm.egress.policy import Policy, Profile, decide
from vm.egress.questions import choice, rule_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.egress.edits import Print
    from app.keeper.ledger import Ledger as Session
    from app.paths import Paths
    from app.protocol import EgressAnswer
    from vm.egress.kinds import Entry
    from vm.egress.questions import Choice, Question
    from vm.egress.rules import Rule

log = logging.getLogger(__name__)

ASKS_S: Final = 0.2
"""Least time between two tellings of the questions; a guest may open connections as it likes."""

COUNTS_S: Final = 1.0
"""The same for the counts of connections."""

WAIT_S: Final = 60
NOTHING: Final = Composed(Policy(Profile("locked", (), "deny")), WAIT_S)
"""What holds where the rules cannot be read: nothing is let through."""

SHUT: Final = "The network refuses everything, for its rules cannot be read:"
"""Begins the notice of a session whose rules were damaged while it ran."""


class GuestNetwork:
    """The network of one session's machine. All methods run on the keeper's loop."""

    def __init__(self, paths: Paths, session: Session) -> None:
        self._paths = paths
        self._session = session
        self._composed: Composed | None = None
        self._once: tuple[Rule, ...] = ()
        self._gateway: GatewayKeeper | None = None
        self._book: Ledger | None = None
        self._questions: tuple[Question, ...] = ()
        self._changing = asyncio.Lock()
        self._edits = Edits()
        self._following: asyncio.Task[None] | None = None
        self._attended = False
        self._attending: set[asyncio.Task[None]] = set()
        self._alarm: asyncio.TimerHandle | None = None
        self._told = 0.0
        self.broker = SessionBroker(paths, session, self._happened)

    @property
    def on(self) -> bool:
        """Whether the machine has a network card."""
        return self._session.state.egress.network != "off"

    async def prepare(self) -> None:
        """Compose the policy and start the broker.

        Raises AppError for a file with a mistake in it, and for a key that the agent needs.
        """
        if self.on:
            self._composed = await self._compose()
            await self._start_broker(self._composed)

    async def _start_broker(self, composed: Composed, *, adopted: bool = False) -> None:
        if not composed.policy.closed:
            await self.broker.start(ask=self._asks(composed), adopted=adopted)

    def _asks(self, composed: Composed) -> bool:
        """Whether somebody can be asked: a headless session has only who is at its terminal."""
        return composed.policy.ask or self._attended

    async def resumed(self) -> None:
        """Ask from now on: whoever resumes a session, a headless one as well, is there."""
        await in_thread(partial(ask_from_now_on, self._session.folder))
        if self._composed is not None and not self._composed.policy.ask:
            policy = replace(self._composed.policy, ask=True)
            self._composed = replace(self._composed, policy=policy)
            await self._tell_asking()

    def attended(self, there: bool) -> asyncio.Task[None]:
        """Somebody took the agent's terminal, or nobody has it; the task ends when that holds.

        It changes what a session does that was begun headless, and no other one.
        """
        self._attended = there
        task = asyncio.create_task(self._tell_asking())
        self._attending.add(task)
        task.add_done_callback(self._attending.discard)
        return task

    def typed(self) -> None:
        """Somebody types into the machine, which emulates its processors: bytes come after keys."""
        if self._gateway is not None:
            self._gateway.typed()

    async def _tell_asking(self) -> None:
        """Have gateway and broker ask, or not, as it is now."""
        async with self._changing:
            if self._composed is not None and self._gateway is not None:
                self.broker.asking(self._asks(self._composed))
                await self._gateway.change(self._policy(self._composed), self._composed.wait)

    async def take_up(self, link: Path) -> None:
        """Start unless it runs already; rules that cannot be read let nothing through."""
        if self.on and self._composed is None:
            try:
                self._composed = await self._compose()
                await self._start_broker(self._composed, adopted=True)
            except AppError as error:
                log.warning("%s %s", SHUT, error.message)
                self._composed = NOTHING
                self._notice(f"{SHUT} {error.message}")
        self.start(link)

    def start(self, link: Path) -> None:
        """Begin to serve the machine that listens at `link`; `prepare` came before."""
        if not self.on or self._gateway is not None or self._composed is None:
            return
        self._book = Ledger(self._session.folder / NAME)
        self._gateway = GatewayKeeper(
            role_command("gateway"),
            self._session.folder,
            link,
            self._policy(self._composed),
            log=self._happened,
            asked=self._asked,
            fault=self._fault,
            timeout_s=self._composed.wait,
            proxies=self.broker.outside.proxies,
            door=self.broker.door,
        )
        self._gateway.start()
        self._following = asyncio.create_task(self._follow_edits())
        self._following.add_done_callback(looked_at)
        self._tell()

    async def stop(self) -> None:
        """End the gateway and write down what it said last."""
        following, self._following = self._following, None
        await end_tasks([*self._attending, *([following] if following else [])])
        gateway, self._gateway = self._gateway, None
        if gateway is not None:
            await gateway.stop()
        await self.broker.stop()
        self._questions, self._once = (), ()
        if self._book is not None:
            self._tell()
            self._book.close()
            self._book = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    async def answer(self, given: EgressAnswer) -> EgressRule:
        """Answer an open question: its rule is written where it belongs, and holds from now on.

        Raises AppError: `no-such` where nobody asks about that host, `not-effective` where another
        rule decides before, `usage` for an answer that the question does not have.
        """
        async with self._changing:
            asked = self._asked_about(given)
            try:
                chosen = choice(asked, given.answer, wide=given.wide)
            except ValueError as error:
                raise AppError("usage", f"There is {error}.") from None
            await self._write(chosen)
            self._refuse_idle(chosen, asked)
        return EgressRule(chosen.text)

    def _asked_about(self, given: EgressAnswer) -> Question:
        """Return the open question that is answered, with no port that was not shown."""
        asked = next((one for one in self._questions if one.host == given.host), None)
        ports = () if asked is None else asked.ports
        shown = tuple(port for port in ports if not given.ports or port in given.ports)
        if asked is None or not shown:
            hint = "See what it tried: cloche egress log ID"
            raise AppError("no-such", f"Nobody asks about {given.host} (any more).", hint)
        return replace(asked, ports=shown)

    async def reload(self) -> None:
        """Compose the policy anew and put it in force. Raises AppError; then the old one stays."""
        async with self._changing:
            await self._renew()

    async def _write(self, chosen: Choice) -> None:
        if chosen.scope == "once":
            now = time.time()
            held = tuple(rule for rule in self._once if rule.holds(now))
            self._once = (*held, rule_of(chosen, now))
        else:
            write = partial(write_choice, self._paths, self._session.record.id, chosen)
            await in_thread(write)
        await self._renew()

    def _refuse_idle(self, chosen: Choice, asked: Question) -> None:
        """Say so where a rule that was written does not decide about what was asked."""
        assert self._composed is not None
        policy = self._policy(self._composed)
        for port in asked.ports:
            found = decide(Request(asked.host, port), policy, now=time.time())
            if found.action != chosen.rule.effect:
                text = f"'{chosen.text}' does not take effect: {found.reason}"
                raise AppError("not-effective", text, "See: cloche egress rules --session ID")

    async def _renew(self) -> None:
        if not self.on or self._gateway is None:
            return
        self._composed = await self._compose()
        await self._gateway.change(self._policy(self._composed), self._composed.wait)
        self._notice("")

    async def _compose(self) -> Composed:
        self._edits.read(await self._files())  # first: an edit from now on is another one
        about = await in_thread(partial(about_session, self._paths, self._session.record))
        return await in_thread(partial(compose, self._paths, about))

    async def _files(self) -> Print:
        record = self._session.record
        workspace = Path(text_path(record.workspace)) if record.workspace else None
        return await in_thread(partial(fingerprint, self._paths.config, workspace))

    async def _follow_edits(self) -> None:
        """Put what the user edits by hand in force; a mistake changes nothing, and is told."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._edits.rests(await self._files()):
                try:
                    await self.reload()
                except (AppError, OSError) as error:
                    why = error.message if isinstance(error, AppError) else str(error)
                    self._fault(f"{MISTAKE} {why}")
                    self._notice(f"{MISTAKE} {why}")

    def _policy(self, composed: Composed) -> Policy:
        session = (*composed.policy.session, *self._once)
        return replace(
            composed.policy,
            session=session,
            internal=self.broker.hosts,
            ask=self._asks(composed),
        )

    def _notice(self, text: str) -> None:
        """Have exactly this notice about the rules, or none; nothing in force is told first."""
        before = self._session.state.notices
        if text.startswith(MISTAKE) and any(one.startswith(SHUT) for one in before):
            return
        others = tuple(one for one in before if not one.startswith((SHUT, MISTAKE)))
        self._session.change(notices=(*others, text) if text else others)

    # What the gateway says. None of it may wait.

    def _happened(self, entry: Entry) -> None:
        if self._book is not None:
            self._book(entry)
            self._tell_in(COUNTS_S)

    def _asked(self, questions: Sequence[Question]) -> None:
        self._questions = tuple(questions)
        self._tell_in(self._told + ASKS_S - asyncio.get_running_loop().time())

    def _fault(self, sentence: str) -> None:
        log.warning("%s", sentence)
        self._session.journal.write("gateway", sentence)

    def _tell_in(self, delay_s: float) -> None:
        """Tell of questions and counts after a while, or earlier where that is planned already."""
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0.0, delay_s)
        if self._alarm is not None:
            if self._alarm.when() <= at:
                return
            self._alarm.cancel()
        self._alarm = loop.call_at(at, self._tell)

    def _tell(self) -> None:
        self._alarm = None
        self._told = asyncio.get_running_loop().time()
        egress = self._session.state.egress
        if self._book is not None:
            totals = self._book.totals
            egress = EgressInfo(egress.network, totals.allowed, totals.denied)
        try:
            self._session.change(asks=self._questions, egress=egress)
        except OSError:  # nothing depends on it; the next telling says the same
            log.exception("questions and counts could not be written down")
