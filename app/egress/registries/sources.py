"""What the parsers are given and what they return: configuration as text, registries as URLs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from vm.egress.addresses import Own
from vm.egress.rules import BadRule, Rule, check_effective, parse_rule

if TYPE_CHECKING:
    from collections.abc import Iterable

PORTS: Final = {"https": 443, "http": 80}
"""Schemes that a guest can reach, and their ports."""

MAX_FOUND: Final = 200
"""Most registries of one host; a configuration with more is none that anybody wrote."""


@dataclass(frozen=True, slots=True)
class Registry:
    """One place that packages come from."""

    host: str
    port: int
    tool: str
    origin: str
    """Where it is configured, as `pip.conf`."""

    def rule(self) -> Rule:
        """Return the rule that lets guests reach it, on a private network as well.

        Raises BadRule for a host that is none.
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return parse_rule(
            f"{host}:{self.port}", "allow", private=True, origin=f"from {self.origin}"
        )


def registry(url: str, tool: str, origin: str) -> Registry | None:
    """Return the registry at a URL; None where it leads to no host over HTTP.

    What else a URL holds (user, password, path) is dropped at once.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return None
    host, usual = parts.hostname, PORTS.get(parts.scheme.lower())
    if not host or usual is None:
        return None
    return Registry(host, port or usual, tool, origin)


def registries(urls: Iterable[str], tool: str, origin: str) -> tuple[Registry, ...]:
    """Return the registries at several URLs, each once."""
    found = (registry(url, tool, origin) for url in urls)
    return tuple(dict.fromkeys(one for one in found if one is not None))[:MAX_FOUND]


@dataclass(frozen=True, slots=True)
class Sorted:
    """What guests can be let to, and what not."""

    rules: tuple[Rule, ...]
    """One for each host and port."""
    refused: tuple[str, ...]
    """One sentence for each registry that no rule can open, as one on this machine."""


def sort_out(found: Iterable[Registry]) -> Sorted:
    """Return the rules of registries, and why some have none."""
    result: dict[tuple[str, tuple[int, ...]], Rule] = {}
    refused: list[str] = []
    for one in found:
        try:
            rule = one.rule()
            check_effective(rule, Own(), users=True)
        except BadRule as error:
            refused.append(f"From {one.origin}: {error.reason}")
        else:
            result.setdefault((rule.host, rule.ports), rule)
    return Sorted(tuple(result.values()), tuple(dict.fromkeys(refused)))
