"""What to say next where a rule was refused, or where none lets a host through: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.egress.totals import target

if TYPE_CHECKING:
    from vm.egress.kinds import Request, Verdict
    from vm.egress.policy import RuleLevel
    from vm.egress.rules import BadRule, Rule


def way_out(error: BadRule, rule: Rule | None, option: str = "--project") -> str:
    """Return what to say next where a rule was refused; None: its text is no rule.

    `option` says for how long it was to hold.
    """
    if rule is None:
        return "Write it as NAME[:PORT], *.NAME or CIDR[:PORT]"
    if error.code == "needs-private" or rule.private:
        return f"Say that it is private: cloche egress allow {rule.text} {option} --private"
    if error.code == "internal-name":
        return "See an agent's services: cloche agents inspect NAME"
    return "See what holds: cloche egress rules"


def way_in(request: Request, verdict: Verdict, session: str = "") -> str:
    """Return the command that would let through what no rule is about; empty for all else.

    `session`: the one that was asked about; no rule of a session opens a private address.
    """
    settled = verdict.action == "allow" or verdict.level not in ("private", "default")
    if settled or ":" in request.host:  # guests have no IPv6
        return ""
    option = f"--session {session}" if session else "--project"
    option = "--project --private" if verdict.level == "private" else option
    rule = target(request.host, request.port)
    return f"Let it through: cloche egress allow {rule} {option}"


def lifting(level: RuleLevel, deny: Rule, rule: Rule) -> str:
    """Return what takes a deny out that is in the way of an allow."""
    if level == "project":
        return "It is the workspace's own: take it out of its .cloche.yaml"
    if deny.host != rule.host:
        return f"It is about more names: take it out of rules.yaml by hand ({deny.origin})"
    option = "--always" if level == "always" else "--project"
    return f"Allow it there, which takes the deny out: cloche egress allow {rule.text} {option}"
