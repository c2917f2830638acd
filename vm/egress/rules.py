"""One egress rule: its text, its canonical form, and why it is refused.

pkgs.example            the name; an allow means ports 443 and 80, a deny every port
*.pkgs.example:443      every name below it (not itself), on this port
git.example:443,22      two ports
db.example:8443/tls     port 8443, where a ClientHello must name the host as on 443
203.0.113.0/24:5432     literal addresses; a deny of them also holds for names that resolve there
[2001:db8::/32]         the same for IPv6 (deny only: guests have none)
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from vm.egress.addresses import PRIVATE, Network, Own, never_reachable
from vm.egress.names import (
    INTERNAL,
    BadName,
    canonical_pattern,
    covers,
    covers_pattern,
    quoted,
    specificity,
    too_wide,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.egress.kinds import Request

Effect = Literal["allow", "deny"]

DEFAULT_PORTS: Final = (443, 80)
"""What an allow without a port means."""

MAX_PORTS: Final = 16
"""Most ports of one rule."""

MAX_RULE: Final = 512
"""Longest text of a rule in characters."""

TLS: Final = "/tls"

LOCAL_NAMES: Final = ("localhost", "local", "invalid", "onion", "arpa")
"""Names and top levels that lead to no host of the internet: never asked about, never allowed."""


class BadRule(ValueError):
    """A rule that cannot be read, or that could never take effect: `reason` is one sentence."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule in canonical form."""

    effect: Effect
    host: str
    """A canonical name, `*.` before one, or a network as text."""
    ports: tuple[int, ...] = ()
    """Sorted; empty in a deny: every port. Never empty in an allow."""
    tls: tuple[int, ...] = ()
    """Those of `ports` on which a ClientHello must name the host, besides 443."""
    private: bool = False
    """It lets private addresses through; only in rules of the user's own files."""
    origin: str = ""
    """Where it stands, as `rules.yaml:7` or `pip.conf`."""
    until: float | None = None
    """When it ends, on the clock that `decide` is told (seconds); None: never."""

    @property
    def network(self) -> Network | None:
        """The network that the rule is about, None for one of names."""
        return _parsed(self.host) if "/" in self.host else None

    @property
    def text(self) -> str:
        """The shortest text that means this rule."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        if not self.ports or (self.effect == "allow" and set(self.ports) == set(DEFAULT_PORTS)):
            return host
        return f"{host}:{','.join(map(self._port, self.ports))}"

    def _port(self, port: int) -> str:
        return f"{port}{TLS}" if port in self.tls else str(port)

    def holds(self, now: float) -> bool:
        """Tell whether the rule has not ended yet."""
        return self.until is None or now < self.until

    def matches(self, request: Request) -> bool:
        """Tell whether the rule is about a request; without a port, whether about any or all.

        A DNS question names no port: an allow of any port matches it, a deny if it means all.
        """
        return self._matches_port(request.port) and self.matches_host(request)

    def _matches_port(self, port: int | None) -> bool:
        if port is None:
            return self.effect == "allow" or not self.ports
        return not self.ports or port in self.ports

    def matches_host(self, request: Request) -> bool:
        """Tell whether the rule is about a request's host, on whichever ports."""
        network = self.network
        if network is None:
            return covers(self.host, request.host)
        if self.effect == "allow" and not is_literal(request.host):
            return False
        return any(address in network for address in request.addresses)

    def covers(self, other: Rule) -> bool:
        """Tell whether everything that `other` is about is this rule's, too."""
        ports = not self.ports or (bool(other.ports) and set(other.ports) <= set(self.ports))
        return ports and self._covers_host(other)

    def _covers_host(self, other: Rule) -> bool:
        mine, theirs = self.network, other.network
        if mine is None or theirs is None:
            return mine is theirs and covers_pattern(self.host, other.host)
        return mine.version == theirs.version and theirs.subnet_of(mine)  # type: ignore[arg-type]  # of one version, as was just compared

    @property
    def order(self) -> tuple[int, bool, bool]:
        """What tells the deciding rule among those of one level: the greatest."""
        network = self.network
        if network is not None:
            return network.prefixlen, True, self.private
        return (*specificity(self.host), self.private)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Network:
    return ipaddress.ip_network(text)


def is_literal(host: str) -> bool:
    """Tell whether a request's host is an address; canonical names never end in a number."""
    return ":" in host or host.rpartition(".")[2].isdigit()


def parse_rule(text: str, effect: Effect, *, private: bool = False, origin: str = "") -> Rule:
    """Read a rule's text. Raises BadRule with the reason."""
    if len(text) > MAX_RULE:
        raise BadRule("rule-too-long", f"A rule has at most {MAX_RULE} characters.")
    host, port_text = _split(text.strip())
    ports, tls = _ports(port_text, text) if port_text is not None else ((), ())
    if not ports and effect == "allow":
        ports = tuple(sorted(DEFAULT_PORTS))
    return Rule(effect, _host(host, text), ports, tls, private, origin)


def check_effective(rule: Rule, own: Own, *, users: bool) -> None:
    """Refuse a rule that no order of rules could give effect.

    Of denies only those of Cloche's own names are refused: what they are about stays open, while
    any other one is at worst about what is refused anyway. `users`: it stands in the user's own
    files, where `private: true` means something. Raises BadRule.
    """
    _check_internal(rule.host)
    if rule.effect == "deny":
        return
    if rule.private and not users:
        reason = "Only a rule for this project or for always may open private addresses."
        raise BadRule("not-effective", reason)
    if rule.network is not None:
        _check_network(rule, rule.network, own)
    else:
        _check_name(rule.host)


def _check_network(rule: Rule, network: Network, own: Own) -> None:
    if network.version == 6:
        raise _no_effect(rule.host, "guests have no IPv6")
    found = never_reachable(network, own)
    if found is None or (found.code in PRIVATE and rule.private):
        return
    if found.code in PRIVATE:
        why = "private addresses need a rule of yours with private: true"
        raise _no_effect(rule.host, why, "needs-private")
    raise _no_effect(rule.host, f"{found.reason}, which is always refused")


def _check_internal(pattern: str) -> None:
    if covers_pattern(f"*.{INTERNAL}", pattern) or pattern.removeprefix("*.") == INTERNAL:
        why = f"names below {INTERNAL} are services of Cloche's credential broker"
        raise _no_effect(pattern, why, "internal-name")


def _check_name(pattern: str) -> None:
    name = pattern.removeprefix("*.")
    if is_local_name(name):
        raise _no_effect(pattern, "such names are always refused")
    if too_wide(pattern):
        raise BadRule("too-wide", f"{pattern} would allow a whole top-level domain.")


def _no_effect(host: str, why: str, code: str = "not-effective") -> BadRule:
    return BadRule(code, f"{host} never takes effect: {why}.")


def is_local_name(name: str) -> bool:
    """Tell whether a canonical name leads to no host of the internet."""
    return name.rpartition(".")[2] in LOCAL_NAMES


def deciding(
    rules: Iterable[Rule], request: Request, now: float, earlier: Iterable[Rule] = ()
) -> Rule | None:
    """Return the rule of one level that decides: a deny before an allow, then the longer name.

    `earlier`: the rules of the levels before. Where the request names no port they say, with this
    level's own, which ports of an allow are open: one without any decides nothing.
    """
    held = [rule for rule in rules if rule.holds(now)]
    found = [rule for rule in held if rule.matches(request)]
    if request.port is None:
        denies = [rule for rule in (*earlier, *held) if rule.effect == "deny" and rule.holds(now)]
        found = [rule for rule in found if _is_open(rule, request, denies)]
    return max(found, key=lambda rule: (rule.effect == "deny", *rule.order), default=None)


def _is_open(rule: Rule, request: Request, denies: list[Rule]) -> bool:
    """Tell whether a rule that is about a name counts on any port; a deny always does."""
    if rule.effect == "deny":
        return True
    asked = (replace(request, port=port) for port in rule.ports)
    return any(not any(deny.matches(one) for deny in denies) for one in asked)


def _split(text: str) -> tuple[str, str | None]:
    """Cut a rule's text into its host and the text of its ports (None without a colon)."""
    if "://" in text:
        raise BadRule("bad-rule", f"{quoted(text)} is a URL; a rule is NAME:PORT.")
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadRule("bad-rule", f"{quoted(text)} is no rule: a bracket is open.")
        return host, rest[1:] if rest else None
    if text.count(":") > 1:  # an IPv6 address without brackets has no port
        return text, None
    host, colon, ports = text.partition(":")
    return host, ports if colon else None


def _ports(text: str, whole: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    parts = text.split(",")
    if len(parts) > MAX_PORTS:
        raise BadRule("bad-port", f"A rule has at most {MAX_PORTS} ports.")
    found = [(part.strip().removesuffix(TLS), part.strip().endswith(TLS)) for part in parts]
    for number, _ in found:
        good = number.isascii() and number.isdigit() and len(number) <= 5
        if not good or not 1 <= int(number) <= 65535:
            raise BadRule("bad-port", f"{quoted(whole)}: a port is a number from 1 to 65535.")
    ports = tuple(sorted({int(number) for number, _ in found}))
    return ports, tuple(sorted({int(number) for number, tls in found if tls}))


def _host(text: str, whole: str) -> str:
    network = _network(text, whole)
    if network is not None:
        return str(network)
    try:
        return canonical_pattern(text)
    except BadName as error:
        if error.code == "literal":
            reason = f"{quoted(whole)} is no address in the usual notation (1.2.3.4)."
            raise BadRule("bad-address", reason) from None
        raise BadRule(error.code, error.reason) from None


def _network(text: str, whole: str) -> Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        if "/" not in text:
            return None
    try:
        meant = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise BadRule("bad-address", f"{quoted(whole)} is no network.") from None
    raise BadRule("bad-address", f"{quoted(whole)} has host bits set; did you mean {meant}?")
