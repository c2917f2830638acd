"""Which DNS questions are one look-up: a program asks for A and AAAA of a name at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vm.egress.kinds import Entry

PAIR_S: Final = 5.0
"""Seconds within which questions of several types about one name are one look-up of a program."""

MAX_NAMES: Final = 256
"""How many names are remembered; the second question comes a moment after the first."""


def paired(before: Entry, entry: Entry) -> Entry | None:
    """Return both as one where a program looked one name up.

    None where the second is another look-up, was decided otherwise, or is none at all.
    """
    same = (before.kind, before.host, before.verdict, before.code, before.rule) == (
        *("query", entry.host, entry.verdict, entry.code, entry.rule),
    )
    if entry.kind != "query" or not same or not 0 <= entry.at - before.at <= PAIR_S:
        return None
    if not entry.qtype or entry.qtype in before.qtype.split():
        return None
    return replace(before, qtype=f"{before.qtype} {entry.qtype}")


class LookUps:
    """Remembers the names that were asked for last."""

    def __init__(self) -> None:
        self._asked: dict[str, Entry] = {}

    def again(self, entry: Entry) -> bool:
        """Tell whether an entry is a further question of a look-up that was seen before."""
        if entry.kind != "query":
            return False
        before = self._asked.pop(entry.host, None)
        both = None if before is None or entry.count > 1 else paired(before, entry)
        self._asked[entry.host] = both or entry  # the newest stands last
        if len(self._asked) > MAX_NAMES:
            del self._asked[next(iter(self._asked))]
        return both is not None
