"""What one more rule does to those that are there: pure, for the user's file and a session's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vm.egress.ledger import target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.egress.kinds import Request, Verdict
    from vm.egress.rules import BadRule, Rule


@dataclass(frozen=True, slots=True)
class Change:
    """What a change did."""

    rule: Rule
    added: bool
    """False where the same rule stood there already."""
    removed: tuple[Rule, ...] = ()
    """Rules that contradicted the new one, now gone."""


def is_same(old: Rule, rule: Rule) -> bool:
    """Tell whether two rules mean the same, wherever they stand."""
    return (old.effect, old.host, old.ports, old.tls, old.private) == (
        rule.effect,
        rule.host,
        rule.ports,
        rule.tls,
        rule.private,
    )


def contradicts(old: Rule, rule: Rule, *, beside: bool) -> bool:
    """Tell whether an old rule must go for a new one that stands `beside` it, or for more sessions.

    A deny takes out every allow that it hides. An allow takes out the deny of just its host (a
    wider deny was meant for more, so it stays) and its own earlier form.
    """
    if rule.effect == "deny":
        return old.effect == "allow" and rule.covers(old)
    if not beside or old.host != rule.host:
        return False
    if old.effect == "deny":
        return set(old.ports) <= set(rule.ports)
    return old.ports == rule.ports and not is_same(old, rule)


def way_out(error: BadRule, rule: Rule | None, option: str = "--project") -> str:
    """Return what to say next where a rule was refused; None: its text is no rule.

    `option` says for how long it was to hold.
    """
    if rule is None:
        return "Write it as NAME[:PORT], *.NAME or CIDR[:PORT]"
    if error.code == "needs-private" or rule.private:
        return f"Say that it is private: cloche egress allow {rule.text} {option} --private"
    if error.code == "internal-name":
        return f"See which sessions have it: cloche egress explain {rule.host} --session ID"
    return "See what holds: cloche egress rules"


def way_in(request: Request, verdict: Verdict) -> str:
    """Return the command that would let through what no rule is about; empty for all else."""
    settled = verdict.action == "allow" or verdict.level not in ("private", "default")
    if settled or ":" in request.host:  # guests have no IPv6
        return ""
    private = " --private" if verdict.level == "private" else ""
    rule = target(request.host, request.port)
    return f"Let it through: cloche egress allow {rule} --project{private}"


def hidden_by(rule: Rule, rules: Iterable[Rule]) -> Rule | None:
    """Return the deny because of which an allow would never take effect."""
    if rule.effect == "deny":
        return None
    return next((one for one in rules if one.effect == "deny" and one.covers(rule)), None)
