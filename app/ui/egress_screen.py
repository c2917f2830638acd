"""What the keys of the egress log do: filter, group, pin, export, and a rule for any row."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on

from app.services.egress_export import default_path, export
from app.services.egress_rules import offered, unoffered
from app.services.egress_view import VERDICTS
from app.ui.egress_dialog import RuleDialog
from app.ui.egress_facts import GROUP_COLUMNS, ROW_COLUMNS, where
from app.ui.egress_keys import EGRESS_BINDINGS
from app.ui.egress_log import EgressLog
from app.ui.failures import told
from app.ui.messages import TaskDone, TaskFailed
from app.ui.workers import work
from app.wording import counted
from snapshot.safe_text import safe_name
from widgets.line_bar import LineBar

if TYPE_CHECKING:
    from textual.binding import BindingType

    from app.services.egress_view import Row
    from vm.egress.questions import Choice
    from vm.egress.rules import Effect


class EgressScreen(EgressLog):
    """The keys of the log: what is shown, what is kept, which rule is written."""

    AUTO_FOCUS = "LogTable"
    BINDINGS: ClassVar[list[BindingType]] = EGRESS_BINDINGS
    _typing = "filter"
    """What the line is open for."""

    # What is shown

    def action_group(self) -> None:
        """Show rows, or one line a host."""
        self.rows.grouped = not self.rows.grouped
        self.rows.order_hosts(anew=True)
        self.table_view.columns = GROUP_COLUMNS if self.rows.grouped else ROW_COLUMNS
        self.keep_in_sight()

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
                path = Path.home() / os.path.expanduser(message.text.strip())
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
        self.keep_in_sight()

    def action_export(self) -> None:
        """Ask for the file to write what is shown to."""
        if self.rows.view.filtering:
            self.say("The filter still looks at older rows; try again in a moment.")
            return
        self._typing = "export"
        path = default_path(Path.home(), time.time())
        rows = counted(self.rows.view.shown, "row")
        line = self.query_one(LineBar)
        line.open(f"{rows} to", str(path))
        line.tell("enter writes   esc leaves ")

    @work("egress-write")
    async def write_export(self, path: Path, rows: list[Row]) -> None:
        """Write rows to a new file, and say how many they were."""
        try:
            count = await asyncio.to_thread(export, path, rows)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(TaskDone(f"{counted(count, 'row')} in {safe_name(str(path)).text}"))

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
            self._say_none(row, kind)
            return
        name = self.rows.names.get(row.session, row.session)
        session = row.session
        dialog = RuleDialog(f"{where(row)}  wanted by {name}", rules, self.glyphs)
        self.cloche.push_screen(dialog, lambda chosen: self._write(session, chosen))

    def _say_none(self, row: Row, kind: str) -> None:
        """Say why no rule can be written for a row."""
        word = "widened" if kind == "widen" else "allowed or denied by a rule"
        reason, hint = unoffered(row.host, row.entry.port) if kind != "widen" else ("", "")
        self.say(reason or f"{where(row) or 'This'} cannot be {word}.", hint)

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
        """Close a notice, else the details, else the log."""
        if self.notice is not None:
            self.action_dismiss_notice()
        else:
            self.action_leave()

    def action_leave(self) -> None:
        """Close the details, else the log, whatever notice there is."""
        if self.has_class("-details"):
            self.action_details()
        else:
            self.dismiss(None)
