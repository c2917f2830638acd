"""The egress log of all sessions as it is shown: live, in slices, filtered, with details."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content
from textual.widgets import Static

from app.services.egress_view import Filter, bytes_of
from app.ui.egress_facts import ROW_COLUMNS, details, size
from app.ui.egress_rows import EgressRows
from app.ui.failures import told
from app.ui.messages import TaskFailed
from app.ui.work_screen import WorkScreen
from app.ui.workers import work
from snapshot.safe_text import safe_name
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.log_table import LogTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from app.protocol import SessionInfo
    from app.services.egress_feed import Piece
    from app.services.egress_rules import Feed
    from themes.glyphs import Glyphs
    from widgets.info_line import Fact

POLL_SECONDS = 0.25
"""How often is looked for new lines once all are read."""

SLICE = 400
"""Entries that are taken, and four times as many that are filtered, before keys get their turn."""


class EgressLog(WorkScreen):
    """Follows the logs while it is open; `EgressScreen` has its keys."""

    def __init__(self, glyphs: Glyphs, session_id: str = "") -> None:
        """`session_id`: begin with this session alone."""
        super().__init__(glyphs)
        self.rows = EgressRows(glyphs)
        self.rows.view.filter = Filter(session_id)

    def compose_body(self) -> ComposeResult:
        """Yield the table between what is shown and the details."""
        yield InfoLine("surface", glyphs=self.glyphs, id="head")
        yield LogTable(self.rows, glyphs=self.glyphs, id="log")
        yield Static("", id="details", markup=False)
        yield LineBar(id="line")

    def on_mount(self) -> None:
        """Begin to follow."""
        self.table_view.columns = ROW_COLUMNS
        self.follow()

    @property
    def table_view(self) -> LogTable:
        """The table."""
        return self.query_one("#log", LogTable)

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Know what sessions are called."""
        self.rows.names = {info.id: safe_name(info.name or info.id).text for info in sessions}
        self.show_rows()

    # Following

    @work("egress", exclusive=True)
    async def follow(self) -> None:
        """Read what comes, and filter what is there, in slices."""
        feed = await asyncio.to_thread(self.cloche.egress.follow)
        try:
            while True:
                await self._step(feed)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        finally:
            feed.close()

    async def _step(self, feed: Feed) -> None:
        pieces, more = await asyncio.to_thread(feed.read)
        for piece in pieces:
            await self._take(piece)
        while self.rows.view.filtering:
            if self.rows.view.look(4 * SLICE):
                self.rows.order_hosts(anew=not self.rows.at.cursor)
            self.show_rows()
            await asyncio.sleep(0)  # a turn for the keys and the screen
        if pieces:
            self.show_rows()
        await asyncio.sleep(0 if more else POLL_SECONDS)

    async def _take(self, piece: Piece) -> None:
        session, entries = piece
        for start in range(0, len(entries), SLICE):
            part = entries[start : start + SLICE]
            self.rows.came(sum(self.rows.view.add(session, entry) for entry in part))
            await asyncio.sleep(0)  # a turn for the keys and the screen

    # Showing

    def show_rows(self) -> None:
        """Show what is there now."""
        if not self.is_mounted:
            return
        if self.rows.grouped:
            self.rows.order_hosts()
        table = self.table_view
        table.empty = self._empty()
        table.refresh_rows()
        self.query_one("#head", InfoLine).show(*self._head())
        self._show_details()

    def _empty(self) -> str:
        view = self.rows.view
        if view.filtering:
            return "looking …"
        if view.total:
            return "nothing here: v all verdicts, s all agents, / another text"
        return "no agent used the network yet; what one tries stands here"

    def _head(self) -> tuple[list[Fact], list[Fact]]:
        view, wanted = self.rows.view, self.rows.view.filter
        who = self.rows.names.get(wanted.session, wanted.session) or "all agents"
        verdict = "all verdicts" if wanted.verdict == "all" else wanted.verdict
        left: list[Fact] = [(" egress  ", "foreground*"), (who, "accent"), ("  ", "muted")]
        left += [(verdict, "accent"), ("  ", "muted")]
        if wanted.text:
            left.append((f"/{safe_name(wanted.text).text}  ", "accent"))
        if self.rows.at.unseen:
            left.append((f"{self.glyphs.back} {self.rows.at.unseen:,} new (g)", "warning*"))
        noun = "hosts" if self.rows.grouped else "rows"
        right: list[Fact] = [(f"{self.rows.count():,} {noun} of {view.total:,} ", "muted")]
        if self.rows.grouped:
            up, down = bytes_of(view.groups())
            right.insert(0, (f"{size(up)} up {size(down)} down  ", "muted"))
        return left, right

    def _show_details(self) -> None:
        row = self.rows.current
        if not self.has_class("-details"):
            return
        facts = [] if row is None else details(row, self.rows.names)
        parts: list[tuple[str, str]] = []
        for label, text in facts:
            parts += [(f"{label:<6} ", "$muted"), (f"{text}\n", "$foreground")]
        self.query_one("#details", Static).update(Content.assemble(*parts) if parts else "")

    @on(LogTable.Moved)
    def follow_cursor(self, message: LogTable.Moved) -> None:
        """Show the details of the row."""
        message.stop()
        self.show_rows()

    @on(LogTable.Chosen)
    def open_details(self, message: LogTable.Chosen) -> None:
        """Show the details, or take them away."""
        message.stop()
        self.action_details()

    def action_details(self) -> None:
        """Show the details, or take them away."""
        self.toggle_class("-details")
        self.call_after_refresh(self.keep_in_sight)

    def keep_in_sight(self) -> None:
        """Show what is there now, with the cursor in sight."""
        self.rows.go(self.rows.at.cursor, self.table_view.seen)
        self.show_rows()

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self.call_after_refresh(self.keep_in_sight)

    # Filtering

    def set_filter(self, wanted: Filter) -> None:
        """Show other rows."""
        if wanted == self.rows.view.filter:
            return
        self.rows.view.set_filter(wanted)
        self.rows.reset()
        self.rows.view.look(4 * SLICE)  # the first screenful at once
        self.show_rows()
        self.follow_on()

    @work("egress-look", exclusive=True)
    async def follow_on(self) -> None:
        """Look at the rest without waiting for the next piece."""
        while self.rows.view.filtering:
            self.rows.view.look(4 * SLICE)
            await asyncio.sleep(0)  # a turn for the keys and the screen
        self.rows.order_hosts(anew=not self.rows.at.cursor)
        self.show_rows()
