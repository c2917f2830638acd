"""The network's logs and rules for the screens: what they need, and how this machine has it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from app.client.egress import reload_rules
from app.egress.hints import way_out
from app.egress.writing import write_choice
from app.errors import AppError
from app.services.egress_feed import EgressFeed
from vm.egress.addresses import Own
from vm.egress.questions import Choice, Question, choices
from vm.egress.rules import BadRule, check_effective, is_literal, parse_rule
from vm.egress.totals import target

if TYPE_CHECKING:
    from app.egress.adding import Change
    from app.paths import Paths
    from app.services.egress_feed import Piece
    from vm.egress.rules import Effect, Rule


class Feed(Protocol):
    """What follows logs."""

    def read(self) -> tuple[list[Piece], bool]:
        """Return what is new, and whether more is there already; may wait for the disk."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class EgressPort(Protocol):
    """The logs and the rules; every call may wait for the disk and is made in a thread."""

    def follow(self) -> Feed:
        """Begin to read all logs from their beginning."""
        ...

    def write(self, session_id: str, choice: Choice) -> Change:
        """Write a rule as it was shown. Raises AppError, also where it could have no effect."""
        ...


@dataclass(frozen=True, slots=True)
class LocalEgress:
    """Those of this machine."""

    paths: Paths

    def follow(self) -> EgressFeed:
        """Begin to read all logs from their beginning."""
        return EgressFeed(self.paths.sessions)

    def write(self, session_id: str, choice: Choice) -> Change:
        """Write a rule to the session's file or to the user's own, and have it hold."""
        change = write_choice(self.paths, session_id, choice)
        only = session_id if choice.scope == "session" else ""
        asyncio.run(reload_rules(self.paths, only))
        return change


class NoEgress:
    """No logs and no rules."""

    def follow(self) -> NoEgress:
        """Return what never has anything."""
        return self

    def read(self) -> tuple[list[Piece], bool]:
        """Return nothing."""
        return [], False

    def close(self) -> None:
        """Do nothing."""

    def write(self, session_id: str, choice: Choice) -> Change:
        """Refuse it."""
        text = f"There is no place to write '{choice.rule.text}' to."
        raise AppError("usage", text, "See: cloche egress --help")


def offered(host: str, port: int | None, effect: Effect | None) -> tuple[Choice, ...]:
    """Return the rules that a row of the log can be answered by.

    `effect` None: the wider ones of both kinds. `once` is none of them, for nothing waits for it.
    Without a port an allow is about 443 and 80. Nothing is offered for what no rule can name.
    """
    ports = () if port is None else (port,)
    question = Question(host, ports, first_seen=0.0, ends=0.0, waiting=0)
    fitting = (one for one in choices(question) if _fits(one, effect))
    return tuple(again for one in fitting if (again := _as_read(one)) is not None)


def unoffered(host: str, port: int | None) -> tuple[str, str]:
    """Return why no rule would open a host, and what can be done; empty where one would."""
    rule: Rule | None = None
    try:
        rule = parse_rule(target(host, port), "allow")
        check_effective(rule, Own(), users=True)
    except BadRule as error:
        return error.reason, way_out(error, rule) if rule is not None else ""
    return "", ""


def _fits(one: Choice, effect: Effect | None) -> bool:
    if one.scope == "once":
        return False
    return one.wide if effect is None else one.rule.effect == effect and not one.wide


def _as_read(one: Choice) -> Choice | None:
    """Return a choice with the rule that its text is read as; None for what is no rule.

    A log also holds what is no name, addresses, which have no names beside them, and Cloche's own
    services and private addresses, about which such a rule would have no effect.
    """
    try:
        again = parse_rule(one.rule.text, one.rule.effect, origin=one.rule.origin)
        check_effective(again, Own(), users=one.scope != "session")
    except BadRule:
        return None
    return None if one.wide and is_literal(one.rule.host[2:]) else replace(one, rule=again)
