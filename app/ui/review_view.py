"""What a review shows: files, the diff of one, and what was decided about its hunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.services.documents import key_of
from app.ui.messages import (
    ChangesArrived,
    DecisionFailed,
    DecisionRecorded,
    FileLoaded,
    SessionEvent,
    SpansArrived,
    TaskFailed,
)
from app.ui.review_facts import file_row, progress_of, with_decisions
from app.ui.review_lines import file_facts, head_facts, unit_facts
from app.ui.review_work import ReviewWork
from widgets.diff_pane import SPLIT_FROM
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.placard import Placard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from app.protocol import SessionInfo
    from app.services.documents import LoadedFile
    from widgets.diff_model import Layout

WORDS_FROM = 100
"""Width from which on the signs of the first line have words beside them."""

KEPT_FILES = 16
"""How many loaded files are kept."""


class ReviewView(ReviewWork):
    """Handlers of what the workers gathered; they alone change what is shown."""

    filtering = False
    """The line above the keys filters the list of files."""

    @on(SessionEvent)
    def see_event(self, message: SessionEvent) -> None:
        """Read again what may have changed."""
        self.info = message.event.session
        if message.event.kind in ("changes", "decisions", "merge"):
            self.stale.set()
        self.show_head()

    @on(ChangesArrived)
    def take_changes(self, message: ChangesArrived) -> None:
        """Show the changes; a newer generation waits until it is asked for, decisions do not."""
        newer = message.changes
        self.taken -= self.recorded
        self.recorded = frozenset()
        if self.changes is None or message.wanted or newer.generation == self.changes.generation:
            self.pending = None
            self.keep(newer)
        else:
            self.pending = newer
            self.keep(with_decisions(self.changes, newer))
        self.show_changes()

    @on(FileLoaded)
    def take_file(self, message: FileLoaded) -> None:
        """Show a file that was asked for, unless another one is wanted by now."""
        loaded = message.loaded
        self.kept[loaded.key] = loaded
        while len(self.kept) > KEPT_FILES:
            del self.kept[next(iter(self.kept))]
        if self.change is not None and key_of(self.change) == loaded.key:
            self.show_file(loaded)

    @on(SpansArrived)
    def take_spans(self, message: SpansArrived) -> None:
        """Colour the file if it is still shown."""
        self.pane.set_spans(message.key, message.side, message.spans)

    @on(DecisionRecorded)
    def take_decision(self, message: DecisionRecorded) -> None:
        """Read what the keeper made of the decision."""
        self.recorded |= message.units
        self.stale.set()

    @on(DecisionFailed)
    def say_undecided(self, message: DecisionFailed) -> None:
        """Say why the keeper did not take a decision."""
        self.taken -= message.units
        self.stale.set()
        self.say(message.text, message.hint or "R fetches what the agent changed since", "error")

    @on(TaskFailed)
    def say_failure(self, message: TaskFailed) -> None:
        """Say what did not work."""
        if self.changes is None:
            placard = self.query_one("#empty", Placard)
            placard.say(message.text, [message.hint], [("q", "back")], tone="$error")
        self.say(message.text, message.hint, "error")

    # Showing

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Follow the session's own state."""
        self.info = next((i for i in sessions if i.id == self.session_id), self.info)
        self.show_head()

    def show_head(self) -> None:
        """Show whose changes these are and how far the review is."""
        progress = None if self.changes is None else progress_of(self.changes)
        left, right = head_facts(
            self.info,
            progress,
            self.conflicts,
            self.glyphs,
            pending=self.pending is not None,
            words=self.size.width >= WORDS_FROM,
        )
        self.query_one("#head", InfoLine).show(left, right)

    def show_merged_state(self) -> None:
        """Show numbers and marks again."""
        if self.changes is not None:
            self.show_changes()

    def show_changes(self) -> None:
        """Show files and decisions as they are now."""
        line = self.query_one(LineBar)
        needle = line.text.lower() if line.is_open and self.filtering else ""
        rows = [file_row(file, self.conflicts) for file in self.shown_files]
        self.files.empty = "no file holds that" if needle else ""
        self.files.set_items([row for row in rows if needle in row.path.lower()])
        title = [(" FILES", "muted*")]
        self.query_one("#files-title", InfoLine).show(title, [(f"{self.order} ", "muted")])
        self.show_head()
        self._show_nothing(not self.shown_files)
        if self.change is None and self.shown_files:
            self.open_file(self.shown_files[0].path)
        elif self.change is not None:
            self.files.select(self.path)
            if self.loaded is None or self.loaded.key != key_of(self.change):
                self.open_file(self.path)
        self.show_decisions()

    def _show_nothing(self, nothing: bool) -> None:
        self.query_one("#empty").display = nothing
        self.pane.display = not nothing
        if nothing:
            lines = ["When the agent changes a file, it is listed here."]
            keys = [("R", "look again"), ("q", "back")]
            self.query_one("#empty", Placard).say("It changed nothing yet", lines, keys)
        elif self.focused is None:
            self.set_focus(self.pane)

    def show_decisions(self) -> None:
        """Show what was decided in the file that is shown."""
        if self.loaded is not None:
            known = {unit.id: unit.decision for unit in self.units}
            self.pane.set_decisions([known.get(unit, "open") for unit in self.loaded.units])
        self.show_place()

    def show_place(self) -> None:
        """Show which file and which hunk the cursor is on."""
        left, right = file_facts(
            self.change, self.units, self.glyphs, conflict=self.path in self.conflicts
        )
        self.query_one("#file", InfoLine).show(left, right)
        at = self.pane.current_unit
        left, right = unit_facts(self.units, self.unit_index(), at, self.glyphs)
        self.query_one("#unit", InfoLine).show(left, right)

    def open_file(self, path: str, unit: int | None = None) -> None:
        """Show a file, with the cursor on one of its units."""
        self.path = path
        self.goal = unit
        self.files.select(path)
        change = self.change
        if change is None or self.session is None:
            return
        loaded = self.kept.get(key_of(change))
        if loaded is not None:
            self.show_file(loaded)
        else:
            self.load(self.session, change)

    def show_file(self, loaded: LoadedFile) -> None:
        """Show a loaded file."""
        if self.loaded is not loaded:
            self.loaded = loaded
            self.choose_layout()
            self.pane.show(loaded.document)
            self.colour(loaded)
        if self.goal is not None:
            self.go_to_unit(self.goal)
        self.goal = None
        self.show_decisions()

    def go_to_unit(self, unit: int) -> None:
        """Put the cursor on a unit, by its index in `units`."""
        ids = [info.id for info in self.units]
        if self.loaded is not None and 0 <= unit < len(ids) and ids[unit] in self.loaded.units:
            self.pane.go_to_unit(self.loaded.units.index(ids[unit]))

    def choose_layout(self) -> None:
        """Show both sides where there is room and both have lines, unless the user chose."""
        one_sided = self.loaded is not None and 0 in self.loaded.document.lines
        wide = self.size.width >= SPLIT_FROM and not one_sided
        chosen: Layout = "split" if wide else "unified"
        self.pane.set_layout(self.layout_choice or chosen)

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new width, unless the user chose one."""
        self.call_after_refresh(self.choose_layout)
        self.show_head()
