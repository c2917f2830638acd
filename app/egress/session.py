"""A session's own part of the network: how it was started, and the rules it got since.

`egress.json` in the session's folder; it goes with the session. Rules of a session are for names
and public addresses: what opens private ones stands in the user's own files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from app.egress.adding import Change, contradicts, hidden_by, is_same
from app.egress.hints import way_out
from app.errors import AppError
from app.files import read_regular, write_atomic
from app.locking import locked
from vm.egress.addresses import Own
from vm.egress.rules import BadRule, Effect, Rule, check_effective, parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from app.protocol import Network

FILE: Final = "egress.json"
MAX_RULES: Final = 500
"""Most rules of one session."""

MAX_FILE: Final = 1 << 20

Profile = Literal["", "locked", "standard", "permissive"]


class StoredRule(msgspec.Struct, frozen=True):
    """One rule as it is written."""

    effect: Effect
    rule: str
    origin: str


class SessionEgress(msgspec.Struct, frozen=True):
    """What a session may reach besides what the user's files say."""

    profile: Profile = ""
    """Empty: the agent's, else the user's."""
    closed: bool = False
    """Nothing is let through (`--deny-egress`)."""
    network: bool = True
    """Whether the machine has a network card at all."""
    ask: bool = True
    """Whether somebody can answer; headless runs deny what would be asked, until they are resumed
    or somebody takes their terminal."""
    rules: tuple[StoredRule, ...] = ()
    registries: tuple[StoredRule, ...] | None = None
    """Package registries as the host had them configured when the session began, each at the
    user's level and on private networks as well; None: they were not looked for."""
    notes: tuple[str, ...] = ()
    """One sentence for each registry that no rule can open."""

    @property
    def word(self) -> Network:
        """How the session's network is, in one word."""
        if not self.network:
            return "off"
        return "closed" if self.closed else "on"

    def parsed(self) -> tuple[Rule, ...]:
        """Return the rules; they were checked when they were written."""
        return tuple(parse_rule(one.rule, one.effect, origin=one.origin) for one in self.rules)

    def registry_rules(self) -> tuple[Rule, ...]:
        """Return the registries' rules."""
        return tuple(
            parse_rule(one.rule, one.effect, private=True, origin=one.origin)
            for one in self.registries or ()
        )


def read_session_egress(folder: Path) -> SessionEgress:
    """Read the file in a session's folder; the defaults where there is none.

    Raises AppError `damaged`: what a session may reach is not guessed.
    """
    path = folder / FILE
    try:
        found = msgspec.json.decode(read_regular(path, MAX_FILE), type=SessionEgress)
        found.parsed()
        found.registry_rules()
    except FileNotFoundError:
        return SessionEgress()
    except (msgspec.MsgspecError, BadRule) as error:
        raise AppError(
            "damaged", f"{path} does not hold what it must ({error}).", f"Remove it: rm '{path}'"
        ) from error
    return found


def write_session_egress(folder: Path, egress: SessionEgress) -> None:
    """Replace the file. Raises OSError."""
    write_atomic(folder / FILE, msgspec.json.encode(egress) + b"\n")


def ask_from_now_on(folder: Path) -> None:
    """Have a session that was begun headless ask like any other. Raises AppError `damaged`."""
    with locked(folder / f"{FILE}.lock"):
        egress = read_session_egress(folder)
        if not egress.ask:
            write_session_egress(folder, msgspec.structs.replace(egress, ask=True))


def add_session_rule(folder: Path, rule: Rule) -> Change:
    """Add a rule for this session and take out what contradicts it.

    Raises AppError `not-effective` for a rule that could never decide, `usage` for too many.
    """
    check_session_rule(rule)
    with locked(folder / f"{FILE}.lock"):
        egress = read_session_egress(folder)
        change, kept = _added(egress.parsed(), rule)
        if len(kept) > MAX_RULES:
            raise AppError("usage", f"A session has at most {MAX_RULES} rules.", "Use a wider one.")
        if change.added or change.removed:
            stored = tuple(StoredRule(one.effect, one.text, one.origin) for one in kept)
            write_session_egress(folder, msgspec.structs.replace(egress, rules=stored))
        return change


def check_session_rule(rule: Rule) -> None:
    """Refuse an allow that no session's rule could be. Raises AppError."""
    try:
        check_effective(rule, Own(), users=False)
    except BadRule as error:
        raise AppError(error.code, error.reason, way_out(error, rule)) from None


def _added(rules: tuple[Rule, ...], rule: Rule) -> tuple[Change, tuple[Rule, ...]]:
    gone = tuple(one for one in rules if contradicts(one, rule, beside=True))
    kept = tuple(one for one in rules if one not in gone)
    hiding = hidden_by(rule, kept)
    if hiding is not None:
        raise AppError(
            "not-effective",
            f"{rule.text} would never take effect: this session has 'deny {hiding.text}'.",
            f"Allow just that again: cloche egress allow {hiding.text} --session ID",
        )
    same = next((one for one in kept if is_same(one, rule)), None)
    if same is not None:
        return Change(same, False, gone), kept
    return Change(rule, True, gone), (*kept, rule)


def started_with(
    profile: Profile,
    names: Iterable[str],
    networks: Iterable[str],
    *,
    closed: bool = False,
    network: bool = True,
    ask: bool = True,
) -> SessionEgress:
    """Return what a new session's options mean; each is checked before anything is made.

    `names` are hosts (`--allow-host`), `networks` literal addresses (`--allow-cidr`). Raises
    AppError `usage` for what contradicts itself, and for a rule that is none or has no effect.
    """
    hosts, cidrs = list(names), list(networks)
    if (closed or not network) and (hosts or cidrs or profile):
        option = "--deny-egress" if network else "--no-network"
        raise AppError(
            "usage", f"{option} lets nothing through.", f"Leave out {option}, or the rest."
        )
    rules = [_option(text, "--allow-host", names=True) for text in hosts]
    rules += [_option(text, "--allow-cidr", names=False) for text in cidrs]
    stored = tuple(StoredRule(one.effect, one.text, one.origin) for one in rules)
    return SessionEgress(profile, closed, network, ask, stored)


def _option(text: str, option: str, *, names: bool) -> Rule:
    try:
        rule = parse_rule(text, "allow", origin=f"run {option}")
    except BadRule as error:
        raise AppError("usage", f"{option}: {error.reason}", "See: cloche run --help") from None
    if names != (rule.network is None):
        other = "--allow-cidr" if names else "--allow-host"
        reason = "an address, not a name" if names else "a name, not an address"
        raise AppError("usage", f"{option}: {rule.host} is {reason}.", f"Say: {other} {rule.text}")
    check_session_rule(rule)
    return rule
