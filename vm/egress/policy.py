"""Who may reach what: one pure function for the enforcer, for `egress explain` and for the screen.

The order, and why:

1. *absolute*: this machine, the link, metadata and their like; no rule can open them
2. *always* and *workspace*: what the user denied for good, everywhere or in this workspace's
   sessions, beats every later answer
3. *session*: answers and options of this session
4. *project*: what the workspace's own `.cloche.yaml` denies; it is not trusted to allow
5. *user*: what the user allows, for this project and for always, and the registries of this host
6. *profile*: `locked`, `standard` or `permissive`
7. *private*: what would be let through must not lead to a private address, unless the deciding rule
   is the user's and says `private: true`
8. *default*: what nobody said anything about is asked, denied or allowed, as the profile says

The first level with a matching rule decides; inside it a deny beats an allow, then the longer name.
Where no port is named (a DNS question), an allow matches while no deny before it, or beside it, has
taken all of its ports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from vm.egress.addresses import Blocked, Own, check_all, literal
from vm.egress.kinds import Action, Inspect, Level, Request, Verdict
from vm.egress.names import INTERNAL, covers
from vm.egress.rules import Rule, deciding, is_literal, is_local_name

if TYPE_CHECKING:
    from collections.abc import Iterator

RuleLevel = Literal["always", "workspace", "session", "project", "user", "profile"]

DNS_PORTS: Final = frozenset((53, 853))
"""DNS of others, plain or over TLS: denied, and not asked about, unless a rule names the port."""

LINK: Final = Own()
"""What is refused even where nobody said which addresses this machine has: the link's own."""

HTTP_PORT: Final = 80
TLS_PORT: Final = 443


@dataclass(frozen=True, slots=True)
class Profile:
    """What holds where no rule of anybody says otherwise."""

    name: str
    rules: tuple[Rule, ...]
    unlisted: Action
    """What happens to a name that no rule is about."""
    hidden: bool = True
    """Whether a ClientHello may hide its true name (ECH)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """All rules of one session, by level."""

    profile: Profile
    always: tuple[Rule, ...] = ()
    """Denies; an allow in here has no effect."""
    workspace: tuple[Rule, ...] = ()
    """The user's denies for this workspace's sessions; an allow in here has no effect."""
    session: tuple[Rule, ...] = ()
    project: tuple[Rule, ...] = ()
    """Denies; an allow in here has no effect."""
    user: tuple[Rule, ...] = ()
    ask: bool = True
    """Whether somebody can be asked; else what would be asked is denied."""
    closed: bool = False
    """Everything is denied, whatever the rules say (`--deny-egress`)."""
    internal: tuple[str, ...] = ()
    """Services of the session's broker, by their internal names: allowed on port 80."""

    def levels(self) -> Iterator[tuple[RuleLevel, tuple[Rule, ...]]]:
        """Yield the levels in the order in which they decide, with the rules that count there."""
        yield "always", _denies(self.always)
        yield "workspace", _denies(self.workspace)
        yield "session", self.session
        yield "project", _denies(self.project)
        yield "user", self.user
        yield "profile", self.profile.rules


def _denies(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.effect == "deny")


def decide(request: Request, policy: Policy, own: Own = LINK, now: float = 0.0) -> Verdict:
    """Decide about a request; the host must be canonical, or a literal address.

    Asked up to three times: for the name alone (`port` None: a DNS question; `deny` only if every
    port is), with the port, and with all addresses that the name resolved to. `now` is a reading of
    the clock on which rules end.
    """
    request = _with_address(request)
    return (
        _absolute(request, own, policy)
        or _closed(policy)
        or _internal(request, policy)
        or _by_rule(request, policy, own, now)
        or _unlisted(request, policy, own, now)
    )


def shadow(rule: Rule, level: RuleLevel, policy: Policy) -> tuple[RuleLevel, Rule] | None:
    """Return the rule because of which `rule` would never decide, None when it can.

    Levels that come earlier decide whatever their effect; in its own level a deny hides an allow.
    """
    for name, rules in policy.levels():
        for other in rules:
            hides = name != level or (other.effect == "deny" and rule.effect == "allow")
            if hides and other.until is None and other.covers(rule):
                return name, other
        if name == level:
            return None
    return None


def _with_address(request: Request) -> Request:
    """Return the request with a literal's own address among its addresses."""
    if not is_literal(request.host) or request.addresses:
        return request
    address = literal(request.host)
    return request if address is None else replace(request, addresses=(address,))


def _absolute(request: Request, own: Own, policy: Policy) -> Verdict | None:
    """Return the deny that no rule can lift, if one holds."""
    found = check_all(request.addresses, private=True, own=own)
    if found is not None:
        return _deny("absolute", found.code, _leads_to(request, found))
    if not is_literal(request.host):
        return _local_name(request, policy)
    if not request.addresses:
        return _deny("absolute", "bad-address", f"{request.host} is no address.")
    return None


def _local_name(request: Request, policy: Policy) -> Verdict | None:
    name = request.host
    if name in policy.internal and request.port in (None, HTTP_PORT):
        return None
    if name == INTERNAL or covers(f"*.{INTERNAL}", name):
        port = f" on port {request.port}" if name in policy.internal else ""
        return _deny("absolute", "internal-name", f"{name} is no service of this session{port}.")
    if is_local_name(name):
        reason = f"{name} names a machine or service nearby, never a host of the internet."
        return _deny("absolute", "local-name", reason)
    return None


def _internal(request: Request, policy: Policy) -> Verdict | None:
    """Let the session's own services through; each of their requests is decided by the broker."""
    if request.host not in policy.internal:
        return None
    reason = f"{request.host} is a service of this session's credential broker."
    return Verdict("allow", "session", "", "broker", "allowed", reason)


def _closed(policy: Policy) -> Verdict | None:
    if not policy.closed:
        return None
    reason = "This session was started with --deny-egress."
    return _deny("session", "closed", reason, origin="run --deny-egress")


def _by_rule(request: Request, policy: Policy, own: Own, now: float) -> Verdict | None:
    earlier: list[Rule] = []
    for level, rules in policy.levels():
        rule = deciding(rules, request, now, earlier)
        if rule is None:
            earlier += rules
            continue
        if rule.effect == "deny":
            reason = f"Denied by '{rule.text}' ({rule.origin})."
            return _deny(level, "denied", reason, rule.text, rule.origin)
        private = rule.private and level == "user"
        found = check_all(request.addresses, private, own)
        if found is not None:
            return _not_private(request, found, rule)
        reason = f"Allowed by '{rule.text}' ({rule.origin})."
        allowed = Verdict("allow", level, rule.text, rule.origin, "allowed", reason)
        return _inspected(replace(allowed, private=private), request, policy, rule.tls)
    return None


def _unlisted(request: Request, policy: Policy, own: Own, now: float) -> Verdict:
    """Decide about what no rule is about."""
    profile = policy.profile
    origin = f"profile {profile.name}"
    found = check_all(request.addresses, private=False, own=own)
    if found is not None:
        return _not_private(request, found, None)
    if request.port in DNS_PORTS:
        reason = f"Port {request.port} is another DNS server's; names are answered here."
        return _deny("default", "foreign-dns", reason, origin=origin)
    if is_literal(request.host) and profile.unlisted != "allow":
        none = _undecided(request, policy, now, "is about")
        reason = f"{none}, which is a bare address."
        return _deny("default", "literal-address", reason, origin=origin)
    if profile.unlisted == "allow":
        none = _undecided(request, policy, now, "is about")
        reason = f"{none}; the {origin} allows it."
        verdict = Verdict("allow", "default", "", origin, "allowed", reason)
        return _inspected(verdict, request, policy, ())
    return _asked(request, policy, origin, now)


def _other_ports(request: Request, policy: Policy, now: float) -> Rule | None:
    """Return an allow of the host that is about other ports than the request's."""
    if request.port is None:
        return None
    rules = [rule for _, level in policy.levels() for rule in level if rule.holds(now)]
    allows = (rule for rule in rules if rule.effect == "allow" and rule.matches_host(request))
    return next(allows, None)


def _undecided(request: Request, policy: Policy, now: float, verb: str) -> str:
    """Begin a sentence that no rule decided, and name the one that looks as if it did."""
    other = _other_ports(request, policy, now)
    if other is None:
        return f"No rule {verb} {request.host}"
    *most, last = map(str, other.ports)
    ports = f"ports {', '.join(most)} and {last}" if most else f"port {last}"
    near = f"'{other.text}' ({other.origin}) is about {ports} alone"
    return f"{near}; no rule {verb} {request.host} on port {request.port}"


def _asked(request: Request, policy: Policy, origin: str, now: float) -> Verdict:
    none = f"{_undecided(request, policy, now, 'allows')} ({origin})"
    if policy.profile.unlisted == "deny":
        return _deny("default", "not-listed", f"{none}.", origin=origin)
    if not policy.ask:
        return _deny("default", "not-listed", f"{none}, and nobody can be asked.", origin=origin)
    verdict = Verdict("ask", "default", "", origin, "not-listed", f"{none}: you are asked.")
    return _inspected(verdict, request, policy, ())


def _inspected(verdict: Verdict, request: Request, policy: Policy, tls: tuple[int, ...]) -> Verdict:
    """Add what must be seen in the first bytes. An address has no name that could be checked."""
    inspect: Inspect = "none"
    if not is_literal(request.host):
        if request.port == TLS_PORT or request.port in tls:
            inspect = "tls"
        elif request.port == HTTP_PORT:
            inspect = "http"
    return replace(verdict, inspect=inspect, hidden=policy.profile.hidden)


def _not_private(request: Request, found: Blocked, rule: Rule | None) -> Verdict:
    reason = f"{_leads_to(request, found)[:-1]}, and the rule does not say private: true."
    if rule is None:
        return _deny("private", found.code, _leads_to(request, found))
    return _deny("private", found.code, reason, rule.text, rule.origin)


def _leads_to(request: Request, found: Blocked) -> str:
    if is_literal(request.host):
        return f"{found.reason}."
    return f"{request.host} leads to {found.reason}."


def _deny(level: Level, code: str, reason: str, rule: str = "", origin: str = "") -> Verdict:
    return Verdict("deny", level, rule, origin, code, reason)
