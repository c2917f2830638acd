"""Keeps the log readable and short: what happens again and again becomes one line with a count."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from vm.egress.kinds import Entry, Log

BURST: Final = 5
"""Lines of one kind and target in a minute before they are merged."""
PERIOD_S: Final = 60.0
MAX_KEYS: Final = 2048
"""Targets that are told apart at a time; the one seen longest ago makes room."""

Key = tuple[str, str, int | None, str, str]


@dataclass(slots=True)
class Seen:
    """How often a kind of line came in the minute that began at `since`."""

    since: float
    last: Entry
    lines: int = 0
    merged: int = 0


def _is_made(entry: Entry) -> bool:
    """Tell whether a connection was let through and made."""
    return entry.kind == "open" and entry.verdict == "allow" and not entry.failed


class Merging:
    """Passes entries on to a log. `open` and `close` of connections that were made always pass."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._seen: OrderedDict[Key, Seen] = OrderedDict()

    def __call__(self, entry: Entry) -> None:
        """Take an entry; it passes now, or counts in one that passes later."""
        if entry.kind == "close" or _is_made(entry):
            self._log(entry)
            return
        seen = self._find(entry)
        seen.last = entry
        if seen.lines < BURST:
            seen.lines += 1
            self._log(entry)
        else:
            seen.merged += entry.count

    def _find(self, entry: Entry) -> Seen:
        key = (entry.kind, entry.host, entry.port, entry.code, entry.qtype)
        seen = self._seen.get(key)
        if seen is not None and entry.at - seen.since >= PERIOD_S:
            self._tell(seen)
            seen.since, seen.lines = entry.at, 0
        if seen is None:
            seen = self._seen[key] = Seen(entry.at, entry)
            if len(self._seen) > MAX_KEYS:
                self._tell(self._seen.popitem(last=False)[1])
        self._seen.move_to_end(key)
        return seen

    def _tell(self, seen: Seen) -> None:
        if seen.merged:
            self._log(replace(seen.last, count=seen.merged))
            seen.merged = 0

    def flush(self) -> None:
        """Tell what was merged and not yet told."""
        for seen in self._seen.values():
            self._tell(seen)
