"""What a request may ask for: one spelling of its target, and rules of method and path. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vm.egress.kinds import Refused
from vm.errors import BrokerRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_TARGET: Final = 8192
"""Bytes of path and query; servers commonly take as much."""

METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"))
"""TRACE would send the credential back, CONNECT and OPTIONS have no use here."""

_PATH: Final = re.compile(rb"/[A-Za-z0-9._~!$&'()*+,=:@%/-]*\Z")
_QUERY: Final = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*\Z")
_HIDDEN: Final = re.compile(rb"%(?:2[ef5]|5c|3b|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})", re.IGNORECASE)
"""Escapes of what another server might read as structure: . / % \\ ; and controls."""
_KEYS: Final = re.compile(
    rb"(?:\A|[&;])(?:[^=&;]*%[^=&;]*|key|api[_-]?key|access_token|token|auth)=", re.IGNORECASE
)
_LINE: Final = re.compile(rb"([A-Z]{1,32}) ([\x21-\x7e]+) HTTP/1\.[01]")
_BEHIND: Final = re.compile(rb"[?#;&]|%(?:3f|23|3b|26)", re.IGNORECASE)
_RULE: Final = re.compile(r"([A-Z]+) (/[A-Za-z0-9._~!$&'()*+,=:@/-]*)\Z")


@dataclass(frozen=True, slots=True)
class Target:
    """A request's path and its query, as they came."""

    path: str
    query: str


def parse(raw: bytes) -> Target:
    """Read a request's target; Refused for each spelling that two servers may read differently."""
    if len(raw) > MAX_TARGET:
        raise Refused("target-too-long")
    path, _, query = raw.partition(b"?")
    if not _PATH.match(path) or not _QUERY.match(query):
        raise Refused("target-not-plain")
    if b"//" in path or _HIDDEN.search(path):
        raise Refused("target-not-plain")
    if any(part in (b".", b"..") for part in path.split(b"/")):
        raise Refused("target-not-plain")
    if _KEYS.search(query):
        raise Refused("credential-in-query")
    return Target(path.decode("ascii"), query.decode("ascii"))


def named(line: bytes) -> tuple[str, str]:
    """Return method and path in a request's first line for the log, in whatever spelling.

    Whatever could begin a query, escaped or not, ends the path: a key may stand behind it. Both
    are empty where the line is none of HTTP/1.
    """
    match = _LINE.fullmatch(line)
    if match is None:
        return "", ""
    path = _BEHIND.split(match[2], maxsplit=1)[0] if match[2].startswith(b"/") else b""
    return match[1].decode("ascii"), path[:MAX_TARGET].decode("ascii")


@dataclass(frozen=True, slots=True)
class Rule:
    """`METHOD /path`: `*` is one or more characters of a segment, `**` any number of segments."""

    method: str
    pattern: str

    def passes(self, method: str, path: str) -> bool:
        """Tell whether a request is meant."""
        return method == self.method and re.fullmatch(_regex(self.pattern), path) is not None


def _regex(pattern: str) -> str:
    parts = re.split(r"(\*\*|\*)", pattern)
    words = {"**": ".+", "*": "[^/]+"}
    return "".join(words.get(part, re.escape(part)) for part in parts)


def parse_rule(text: str) -> Rule:
    """Read a rule; BrokerRefused for what could never mean a request."""
    match = _RULE.match(text)
    if match is None or match[1] not in METHODS or "***" in text:
        methods = ", ".join(sorted(METHODS))
        raise BrokerRefused(
            f"{text[:200]!r} is no rule for requests.",
            f"Write METHOD /path with one of {methods}; * is a part of a segment, ** several",
        )
    return Rule(match[1], match[2])


def passes(rules: Iterable[Rule], method: str, path: str) -> bool:
    """Tell whether one of the rules means a request."""
    return any(rule.passes(method, path) for rule in rules)
