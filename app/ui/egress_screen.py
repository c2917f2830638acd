"""The egress log of all sessions: live, filtered, by host, a rule one key away from any row."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.content import Content
from textual.widgets import Static

from app.services.egress_export import default_path, export
from app.services.egress_rules import offered
from app.services.egress_view import VERDICTS, Filter, bytes_of
from app.ui.egress_dialog import RuleDialog
from app.ui.egress_facts import GROUP_COLUMNS, ROW_COLUMNS, details, size, where
from app.ui.egress_keys import EGRESS_BINDINGS
from app.ui.egress_rows import EgressRows
from app.ui.failures import told
from app.ui.messages import TaskDone, TaskFailed
from app.ui.work_screen import WorkScreen
from app.ui.workers import work
from snapshot.safe_text import safe_name
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.log_table import LogTable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from app.protocol import SessionInfo
    from app.services.egress_feed import Piece
    from app.services.egress_rules import Feed
    from app.services.egress_view import Row
    from themes.glyphs import Glyphs
    from vm.egress.questions import Choice
    from vm.egress.rules import Effect
    from widgets.info_line import Fact

POLL_SECONDS = 0.25
"""How often is looked for new lines once all are read."""

SLICE = 400
"""Entries that are taken, and four times as many that are filtered, before keys get their turn."""


class EgressScreen(WorkScreen):
    """Follows the logs while it is open."""

    AUTO_FOCUS = "LogTable"
    BINDINGS: ClassVar[list[BindingType]] = EGRESS_BINDINGS

    def __init__(self, glyphs: Glyphs, session_id: str = "") -> None:
        """`session_id`: begin with this session alone."""
        super().__init__(glyphs)
        self.rows = EgressRows(glyphs)
        self.rows.view.filter = Filter(session_id)
        self._typing = "filter"
        """What the line is open for."""

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
        self.call_after_refresh(self._keep_in_sight)

    def _keep_in_sight(self) -> None:
        self.rows.go(self.rows.at.cursor, self.table_view.seen)
        self.show_rows()

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self.call_after_refresh(self._keep_in_sight)

    # What is shown

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

    def action_group(self) -> None:
        """Show rows, or one line a host."""
        self.rows.grouped = not self.rows.grouped
        self.rows.order_hosts(anew=True)
        self.table_view.columns = GROUP_COLUMNS if self.rows.grouped else ROW_COLUMNS
        self._keep_in_sight()

    def action_verdict(self) -> None:
        """Show the next verdict only."""
        wanted = self.rows.view.filter
        step = VERDICTS[(VERDICTS.index(wanted.verdict) + 1) % len(VERDICTS)]
        self.set_filter(replace(wanted, verdict=step))

    def action_session(self) -> None:
        """Show the next session only."""
        wanted = self.rows.view.filter
        keys = ["", *self.rows.names]
        at = keys.index(wanted.session) if wanted.session in keys else -1
        self.set_filter(replace(wanted, session=keys[(at + 1) % len(keys)]))

    def action_filter(self) -> None:
        """Type a text that rows must hold."""
        self._typing = "filter"
        self.query_one(LineBar).open("filter", self.rows.view.filter.text)

    @on(LineBar.Changed)
    def apply_filter(self, message: LineBar.Changed) -> None:
        """Show the rows that hold it."""
        if self._typing == "filter":
            self.set_text(message.text)

    def set_text(self, text: str) -> None:
        """Show the rows that hold a text."""
        self.set_filter(replace(self.rows.view.filter, text=text.strip()[:256]))

    @on(LineBar.Stepped)
    def keep_filter(self, message: LineBar.Stepped) -> None:
        """Go back to the table; the filter stays."""
        self.query_one(LineBar).close(accepted=True)

    @on(LineBar.Closed)
    def end_filter(self, message: LineBar.Closed) -> None:
        """Show all texts again, unless the filter was kept."""
        if self._typing == "export":
            if message.accepted:
                path = self.cloche.workspace / os.path.expanduser(message.text.strip())
                self.write_export(path, self.rows.view.shown_rows())
        elif not message.accepted:
            self.set_filter(replace(self.rows.view.filter, text=""))
        self.set_focus(self.table_view)

    # Pins and exports

    def action_pin(self) -> None:
        """Keep the row's host at the top of the list by host, or let it go."""
        row = self.rows.current
        if row is None:
            return
        stays = self.rows.pin(row.host)
        word = "stays above the others" if stays else "is not kept at the top any more"
        self.say(f"{safe_name(row.host).text} {word} in the list by host.")
        self._keep_in_sight()

    def action_export(self) -> None:
        """Ask for the file to write what is shown to."""
        if self.rows.view.filtering:
            self.say("The filter still looks at older rows; try again in a moment.")
            return
        self._typing = "export"
        path = default_path(self.cloche.workspace, time.time())
        self.query_one(LineBar).open(f"{self.rows.view.shown:,} rows to", str(path))

    @work("egress-write")
    async def write_export(self, path: Path, rows: list[Row]) -> None:
        """Write rows to a new file, and say how many they were."""
        try:
            count = await asyncio.to_thread(export, path, rows)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(TaskDone(f"{count:,} rows are in {safe_name(str(path)).text}."))

    @on(TaskDone)
    def show_done(self, message: TaskDone) -> None:
        """Say what was done."""
        self.say(message.text, message.hint, "done")

    # Rules

    def action_rule(self, kind: str) -> None:
        """Ask which rule to write for the row's host."""
        row = self.rows.current
        if row is None:
            return
        effects: dict[str, Effect] = {"allow": "allow", "deny": "deny"}
        effect = effects.get(kind)
        rules = offered(row.host, row.entry.port, effect) if row.host else ()
        if not rules:
            word = "widened" if kind == "widen" else "allowed or denied by a rule"
            self.say(f"{where(row) or 'This'} cannot be {word}.")
            return
        name = self.rows.names.get(row.session, row.session)
        session = row.session
        dialog = RuleDialog(f"{where(row)}  wanted by {name}", rules, self.glyphs)
        self.cloche.push_screen(dialog, lambda chosen: self._write(session, chosen))

    @work("egress-write")
    async def write_rule(self, session_id: str, choice: Choice) -> None:
        """Write a rule, and say what it did."""
        try:
            change = await asyncio.to_thread(self.cloche.egress.write, session_id, choice)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
            return
        gone = "".join(f"; took out: {one.effect} {one.text}" for one in change.removed)
        word = "written" if change.added else "was there already"
        text = safe_name(f"{choice.text}: {word}{gone}").text
        deaf = await self._reload(session_id, choice)
        if deaf:
            hint = f"Its keeper did not answer: cloche logs {deaf[0]}"
            names = ", ".join(self.rows.names.get(one, one) for one in deaf)
            self.post_message(TaskFailed(f"{text}, but not yet in force in {names}.", hint))
        else:
            self.post_message(TaskDone(text))

    async def _reload(self, session_id: str, choice: Choice) -> list[str]:
        """Have the sessions decide by the new rule; those that could not be told."""
        running = [info.id for info in self.cloche.sessions if info.state in ("running", "paused")]
        concerned = [one for one in running if choice.scope != "session" or one == session_id]
        told_them = await asyncio.gather(*map(self._reload_one, concerned))
        return [one for one, fine in zip(concerned, told_them, strict=True) if not fine]

    async def _reload_one(self, session_id: str) -> bool:
        try:
            session = await self.cloche.fleet.open(session_id)
            try:
                await session.egress_reload()
            finally:
                await session.close()
        except self.cloche.failures:
            return False
        return True

    def _write(self, session_id: str, choice: Choice | None) -> None:
        if choice is not None:
            self.write_rule(session_id, choice)

    def action_back(self) -> None:
        """Close the details, the filter, or the log."""
        if self.notice is not None:
            self.action_dismiss_notice()
        elif self.has_class("-details"):
            self.action_details()
        else:
            self.dismiss(None)
