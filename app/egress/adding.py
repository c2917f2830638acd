"""What one more rule does to those that are there: pure, for the user's file and a session's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.egress.rules import Rule


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


def hidden_by(rule: Rule, rules: Iterable[Rule]) -> Rule | None:
    """Return the deny because of which an allow would never take effect."""
    if rule.effect == "deny":
        return None
    return next((one for one in rules if one.effect == "deny" and one.covers(rule)), None)
