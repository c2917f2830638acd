"""The network's logs and rules for the screens: what they need, and how this machine has it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from app.egress.compose import About, compose
from app.egress.rules_edit import ALWAYS, add_rule
from app.egress.session import add_session_rule, read_session_egress
from app.errors import AppError
from app.records import read_session
from app.services.egress_feed import EgressFeed
from app.wire_text import text_path
from vm.egress.addresses import Own
from vm.egress.policy import shadow
from vm.egress.questions import Choice, Question, choices
from vm.egress.rules import BadRule, check_effective, is_literal, parse_rule

if TYPE_CHECKING:
    from app.egress.adding import Change
    from app.paths import Paths
    from app.services.egress_feed import Piece
    from vm.egress.policy import RuleLevel
    from vm.egress.rules import Effect


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
        """Write a rule to the session's file or to the user's own."""
        folder = self.paths.session(session_id)
        try:
            workspace = read_session(folder).workspace
            check_effective(choice.rule, Own(), users=choice.scope != "session")
        except FileNotFoundError:
            text = f"There is no session '{session_id}' any more."
            raise AppError("not-found", text, "See them: cloche ps") from None
        except BadRule as error:
            raise AppError(error.code, error.reason, "See: docs/guide/network.md") from None
        self._refuse_shadow(session_id, choice)
        if choice.scope == "session":
            return add_session_rule(folder, choice.rule)
        scope = ALWAYS if choice.scope == "always" else workspace
        return add_rule(self.paths.config, choice.rule, scope)

    def _refuse_shadow(self, session_id: str, choice: Choice) -> None:
        """Refuse an allow that another file's deny decides before."""
        if choice.rule.effect == "deny" or choice.scope == "always":
            return
        folder = self.paths.session(session_id)
        record = read_session(folder)
        workspace = Path(text_path(record.workspace))
        about = About(record.agent.name, workspace, read_session_egress(folder))
        level: RuleLevel = "session" if choice.scope == "session" else "project"
        found = shadow(choice.rule, level, compose(self.paths, about).policy)
        if found is not None and found[0] in ("always", "project"):
            why = f"'deny {found[1].text}' ({found[1].origin}) decides first"
            text = f"{choice.rule.text} would never take effect: {why}."
            raise AppError("not-effective", text, "See: cloche egress rules")


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


def _fits(one: Choice, effect: Effect | None) -> bool:
    if one.scope == "once":
        return False
    return one.wide if effect is None else one.rule.effect == effect and not one.wide


def _as_read(one: Choice) -> Choice | None:
    """Return a choice with the rule that its text is read as; None for what is no rule.

    A log also holds what is no name, and addresses, which have no names beside them.
    """
    try:
        again = parse_rule(one.rule.text, one.rule.effect, origin=one.rule.origin)
    except BadRule:
        return None
    return None if one.wide and is_literal(one.rule.host[2:]) else replace(one, rule=again)
