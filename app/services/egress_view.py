"""What the egress log viewer shows: entries of many sessions, filtered, grouped, place kept.

Pure: no clock, no disk, no screen. A connection is one row: what its end says (bytes, duration)
goes into the row of its beginning. Rows are numbered from the newest, which is 0. Filtering is done
in steps, so that nobody waits for 100,000 rows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vm.egress.lookups import paired

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vm.egress.kinds import Entry

MAX_ROWS: Final = 100_000
"""Most rows that are kept; the oldest go first."""

VERDICTS: Final = ("all", "deny", "allow", "ask", "drop")
"""What can be filtered by; `drop` is what was no connection at all (UDP, IPv6, ICMP)."""


@dataclass(slots=True, eq=False)
class Row:
    """One row: a question of names, a connection, or something that was dropped."""

    number: int
    """Its place among all rows that ever were; later ones have larger numbers."""
    session: str
    entry: Entry
    text: str
    """What the filter looks in, in small letters."""
    up: int = 0
    down: int = 0
    duration_ms: int = -1
    """-1 while the connection is open, or where there is none."""

    @property
    def host(self) -> str:
        """What it was about."""
        return self.entry.host or self.entry.address

    @property
    def verdict(self) -> str:
        """The verdict, or `drop`."""
        return "drop" if self.entry.kind == "drop" else self.entry.verdict


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows are shown; empty texts let everything through."""

    session: str = ""
    verdict: str = "all"
    text: str = ""

    def holds(self, row: Row) -> bool:
        """Tell whether a row is shown."""
        return (
            self.session in ("", row.session)
            and self.verdict in ("all", row.verdict)
            and (not self.text or self.text.lower() in row.text)
        )


@dataclass(slots=True, eq=False)
class Group:
    """All shown rows of one host."""

    host: str
    queries: int = 0
    connections: int = 0
    denied: int = 0
    up: int = 0
    down: int = 0
    last: Row | None = None
    """The newest of its rows."""
    rows: int = 0

    def count(self, row: Row, sign: int) -> None:
        """Count a row in (1) or out (-1)."""
        times = sign * max(1, row.entry.count)
        self.rows += sign
        self.queries += times * (row.entry.kind == "query")
        self.connections += times * (row.entry.kind == "open")
        self.denied += times * (row.verdict in ("deny", "drop"))
        self.up += sign * row.up
        self.down += sign * row.down
        if sign > 0 and (self.last is None or self.last.number < row.number):
            self.last = row


class EgressView:
    """All rows, those that the filter lets through, and their hosts."""

    def __init__(self, most: int = MAX_ROWS) -> None:
        self._most = most
        self._rows: deque[Row] = deque()
        self._made = 0
        self._open: dict[tuple[str, int], Row] = {}
        self._asked: dict[tuple[str, str], Row] = {}
        """The newest look-up of each name."""
        self.filter = Filter()
        self._older: list[Row] = []
        """Shown rows, newest first, that were there when the filter was set."""
        self._newer: list[Row] = []
        """Shown rows, newest last, that came since."""
        self._unread: deque[Row] = deque()
        """Rows that the filter did not look at yet, newest first."""
        self._groups: dict[str, Group] = {}
        """Hosts; the one with the newest row is last."""

    @property
    def total(self) -> int:
        """How many rows are kept."""
        return len(self._rows)

    @property
    def shown(self) -> int:
        """How many rows the filter let through so far."""
        return len(self._older) + len(self._newer)

    @property
    def filtering(self) -> bool:
        """True while older rows wait to be looked at."""
        return bool(self._unread)

    def row(self, index: int) -> Row:
        """Return a shown row, 0 being the newest."""
        newer = len(self._newer)
        return self._newer[newer - 1 - index] if index < newer else self._older[index - newer]

    def shown_rows(self) -> list[Row]:
        """Return all shown rows, the newest first."""
        return [*reversed(self._newer), *self._older]

    def groups(self) -> list[Group]:
        """Return the hosts of the shown rows, the one with the newest row first."""
        return list(reversed(self._groups.values()))

    def add(self, session: str, entry: Entry) -> bool:
        """Take an entry; tell whether it made a new row that is shown."""
        if entry.kind == "close":
            row = self._open.pop((session, entry.flow), None)
            if row is not None and row.entry.port == entry.port:
                self._close(row, entry)
                return False
        if self._joins(session, entry):
            return False
        row = Row(self._made, session, entry, _text(entry))
        self._made += 1
        if entry.kind == "close":
            row.up, row.down, row.duration_ms = entry.up, entry.down, entry.duration_ms
        elif entry.kind == "open" and entry.flow:
            self._open[session, entry.flow] = row
        elif entry.kind == "query":
            self._asked[session, entry.host] = row
        self._rows.append(row)
        shows = self.filter.holds(row)
        if shows:
            self._newer.append(row)
            self._count_in(row)
        self._trim()
        return shows

    def _joins(self, session: str, entry: Entry) -> bool:
        """Take a look-up's second question into the row of its first."""
        row = self._asked.get((session, entry.host)) if entry.kind == "query" else None
        both = None if row is None else paired(row.entry, entry)
        if row is None or both is None:
            return False
        row.entry = both
        return True

    def set_filter(self, wanted: Filter) -> None:
        """Begin to show other rows; `look` goes through those that are there."""
        self.filter = wanted
        self._older, self._newer, self._groups = [], [], {}
        self._unread = deque(reversed(self._rows))

    def look(self, most: int) -> bool:
        """Let the filter look at up to so many older rows; True when it is through."""
        for _ in range(min(most, len(self._unread))):
            row = self._unread.popleft()
            if self.filter.holds(row):
                self._older.append(row)
                self._count_in(row)
        if not self._unread:
            ordered = sorted(self._groups.values(), key=_last_number)
            self._groups = {group.host: group for group in ordered}
        return not self._unread

    def _close(self, row: Row, entry: Entry) -> None:
        group = self._groups.get(row.host) if self._is_counted(row) else None
        if group is not None:
            group.up += entry.up - row.up
            group.down += entry.down - row.down
        row.up, row.down, row.duration_ms = entry.up, entry.down, entry.duration_ms

    def _is_counted(self, row: Row) -> bool:
        waits = bool(self._unread) and row.number <= self._unread[0].number
        return not waits and self.filter.holds(row)

    def _count_in(self, row: Row) -> None:
        group = self._groups.get(row.host) or Group(row.host)
        newest = group.last is None or group.last.number < row.number
        group.count(row, 1)
        if newest:  # so that the newest host is last
            self._groups.pop(row.host, None)
        self._groups[row.host] = group

    def _trim(self) -> None:
        while len(self._rows) > self._most:
            gone = self._rows.popleft()
            self._open.pop((gone.session, gone.entry.flow), None)
            if self._asked.get((gone.session, gone.entry.host)) is gone:
                del self._asked[gone.session, gone.entry.host]
            if self._unread and self._unread[-1] is gone:
                self._unread.pop()
            elif self.filter.holds(gone):
                self._forget(gone)

    def _forget(self, gone: Row) -> None:
        if not self._older:
            self._older, self._newer = self._newer[::-1], []
        self._older.pop()
        group = self._groups[gone.host]
        group.count(gone, -1)
        if not group.rows:
            del self._groups[gone.host]


def _last_number(group: Group) -> int:
    return -1 if group.last is None else group.last.number


def _text(entry: Entry) -> str:
    where = f"{entry.host}:{entry.port}" if entry.port is not None else entry.host
    return f"{where} {entry.address} {entry.code} {entry.rule}".lower()


class Place:
    """Where the reader is in a list that grows at its top: cursor and first row that is seen.

    On the newest row the reader follows; anywhere else the same rows stay in sight, and what came
    is counted.
    """

    def __init__(self) -> None:
        self.cursor = 0
        self.top = 0
        self.unseen = 0
        """How many rows came above since the reader left the newest one."""

    def came(self, count: int) -> None:
        """So many rows came at the top."""
        if count and (self.cursor or self.top):
            self.cursor += count
            self.top += count
            self.unseen += count

    def go(self, cursor: int, count: int, height: int) -> None:
        """Put the cursor on a row of `count`, of which `height` are seen at once."""
        self.cursor = max(0, min(cursor, count - 1))
        self.top = max(min(self.top, self.cursor), self.cursor - max(1, height) + 1)
        self.top = max(0, min(self.top, count - height))
        self._look()

    def scroll(self, step: int, count: int, height: int) -> None:
        """Move what is seen; the cursor stays in sight."""
        self.top = max(0, min(self.top + step, count - height))
        self.cursor = max(self.top, min(self.cursor, self.top + height - 1, count - 1))
        self.cursor = max(0, self.cursor)
        self._look()

    def _look(self) -> None:
        self.unseen = min(self.unseen, self.top)


def bytes_of(rows: Iterable[Group]) -> tuple[int, int]:
    """Return the bytes of some hosts, up and down."""
    up = down = 0
    for group in rows:
        up, down = up + group.up, down + group.down
    return up, down
