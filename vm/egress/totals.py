"""What happened on a session's network, in numbers: who begins a new log file begins with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vm.egress.kinds import Entry

MAX_REFUSED: Final = 100
"""How many different refused targets are counted by name."""


def target(host: str, port: int | None) -> str:
    """Return a host and port as one text."""
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


@dataclass(slots=True)
class Totals:
    """What happened in all of a session's life."""

    entries: int = 0
    queries: int = 0
    allowed: int = 0
    """Connections that were let through and made."""
    denied: int = 0
    """Connections and names that were refused, by a rule, by an answer or for want of one."""
    dropped: int = 0
    """Frames of other kinds (UDP, IPv6, ICMP)."""
    up: int = 0
    down: int = 0
    unwritten: int = 0
    """Entries that were counted only: too many a second, or no room on the disk."""
    refused: dict[str, int] = field(default_factory=dict[str, int])
    """How often each target was refused, as `host:port` (names alone where DNS refused them)."""

    def add(self, entry: Entry, *, again: bool = False) -> None:
        """Count one entry, which may stand for several.

        One that asks `again`, for another type of the same name's addresses, is no second refusal.
        """
        count = max(1, entry.count)
        self.entries += count
        if entry.kind == "query":
            self.queries += count
            self._deny(entry, entry.host, count * (not again))
        elif entry.kind == "open":
            self.allowed += count * (entry.verdict == "allow" and not entry.failed)
            self._deny(entry, target(entry.host, entry.port), count)
        elif entry.kind == "close":
            self.up += entry.up
            self.down += entry.down
        elif entry.kind == "request":
            self._deny(entry, entry.host, count)
        else:
            self.dropped += count

    def _deny(self, entry: Entry, name: str, count: int) -> None:
        if entry.verdict != "deny" or not count:
            return
        self.denied += count
        if name in self.refused or len(self.refused) < MAX_REFUSED:
            self.refused[name] = self.refused.get(name, 0) + count
