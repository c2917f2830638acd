"""The rows of the egress log's table: single ones or one a host, and where the reader is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.services.egress_view import EgressView, Place
from app.ui.egress_facts import group_cells, row_cells

if TYPE_CHECKING:
    from app.services.egress_view import Group, Row
    from themes.glyphs import Glyphs
    from widgets.log_table import Cell


MAX_PINNED = 100
"""Most hosts that are kept at the top."""


class EgressRows:
    """A `Source` of the table over an `EgressView`."""

    def __init__(self, glyphs: Glyphs) -> None:
        self.view = EgressView()
        self.names: dict[str, str] = {}
        """What sessions are called, safe to print."""
        self.grouped = False
        self._glyphs = glyphs
        self._rows, self._hosts = Place(), Place()
        self._order: list[Group] = []
        """Hosts as they are listed; the order stands while the reader is not at the top."""
        self.pinned: set[str] = set()
        """Hosts that stay above the others."""

    @property
    def at(self) -> Place:
        """Where the reader is."""
        return self._hosts if self.grouped else self._rows

    @property
    def current(self) -> Row | None:
        """The row under the cursor; of a host its newest."""
        if not 0 <= self.at.cursor < self.count():
            return None
        if self.grouped:
            return self._order[self.at.cursor].last
        return self.view.row(self.at.cursor)

    def came(self, rows: int) -> None:
        """So many shown rows came."""
        self._rows.came(rows)

    def reset(self) -> None:
        """Go to the newest row: others are shown."""
        self._rows, self._hosts = Place(), Place()
        self._order = []

    def order_hosts(self, *, anew: bool = False) -> None:
        """List the hosts anew, unless the reader is among them: then count what is new."""
        groups = self.view.groups()
        if self.pinned:
            groups.sort(key=lambda group: group.host not in self.pinned)
        if anew or not (self._hosts.cursor or self._hosts.top):
            self._order, self._hosts.unseen = groups, 0
        else:
            self._hosts.unseen = max(0, len(groups) - len(self._order))

    def pin(self, host: str) -> bool:
        """Keep a host at the top, or let it go; whether it is kept now."""
        if host in self.pinned:
            self.pinned.discard(host)
        elif len(self.pinned) < MAX_PINNED:
            self.pinned.add(host)
        self.order_hosts(anew=True)
        return host in self.pinned

    # Source

    def count(self) -> int:
        """Return how many rows there are."""
        return len(self._order) if self.grouped else self.view.shown

    def cells(self, index: int) -> tuple[Cell, ...]:
        """Return a row's columns."""
        if self.grouped:
            group = self._order[index]
            return group_cells(group, self._glyphs, pinned=group.host in self.pinned)
        return row_cells(self.view.row(index), self.names, self._glyphs)

    def place(self) -> tuple[int, int]:
        """Return the cursor and the first row that is seen."""
        return self.at.cursor, self.at.top

    def go(self, cursor: int, height: int) -> None:
        """Put the cursor on a row."""
        self.at.go(cursor, self.count(), height)

    def scroll(self, step: int, height: int) -> None:
        """Move what is seen."""
        self.at.scroll(step, self.count(), height)
