"""What a session's log says was refused, by target and reason: for those who could not be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from vm.egress.ledger import NAME, older, read_entries
from vm.egress.lookups import LookUps

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from vm.egress.kinds import Entry


class Refused(msgspec.Struct):
    """One target that was refused."""

    host: str
    """A name, or the address of what was no connection to a name."""
    port: int | None
    code: str
    reason: str
    count: int


def refused_in(folder: Path) -> tuple[Refused, ...]:
    """Return what a session's log says was refused, the most frequent first. Raises OSError."""
    path = folder / NAME
    if not path.exists() and not older(path).exists():
        return ()
    found = refused(read_entries(path))
    return tuple(sorted(found, key=lambda one: -one.count))


def refused(entries: Iterable[Entry]) -> list[Refused]:
    """Count refusals by target and reason; both questions of one look-up are one."""
    found: dict[tuple[str, int | None, str], Refused] = {}
    asked = LookUps()
    for entry in entries:
        if entry.verdict != "deny" or asked.again(entry):
            continue
        host = entry.host or entry.address
        one = found.setdefault(
            (host, entry.port, entry.code), Refused(host, entry.port, entry.code, "", 0)
        )
        one.reason, one.count = entry.reason or one.reason, one.count + max(1, entry.count)
    return list(found.values())
