"""What a review shows: files, the diff of one, and what was decided about its hunks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from textual import on

from app.services.documents import key_of
from app.ui.messages import (
    ChangesArrived,
    DecisionFailed,
    DecisionRecorded,
    FileLoaded,
    FoldersFound,
    SessionEvent,
    SteppedBack,
    TaskFailed,
    WorkspaceMoved,
)
from app.ui.review_facts import news, refreshed, step_words, with_decisions
from app.ui.review_lines import file_facts, head_facts, unit_facts
from app.ui.review_list import ReviewList
from app.wire_text import text_path
from snapshot.safe_text import safe_name
from widgets.placard import Placard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from app.protocol import SessionInfo
    from app.services.documents import LoadedFile
    from widgets.diff_model import Side

WORDS_FROM = 100
"""Width from which on the signs of the first line have words beside them."""


NOTHING_KEYS = (("r", "look again"), ("q", "back"))
"""What can be done where nothing changed."""


class ReviewView(ReviewList):
    """Handlers of what the workers gathered; they alone change what is shown."""

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
        shown = self.changes
        if shown is None or message.wanted or newer.generation == shown.generation:
            self.pending = None
            self.keep(newer)
        else:
            self.pending = newer
            self.keep(with_decisions(shown, newer))
        self.show_changes()
        self.watch_drift()
        self.look_for_conflicts()
        if message.wanted and shown is not None and shown.generation != newer.generation:
            self.say(refreshed(shown, newer), "n goes to what is open", "done")

    def look_for_conflicts(self) -> None:
        """Find out whether what is accepted fits what the user did; `ReviewConflicts` does."""

    def show_comments(self) -> None:
        """Mark the lines of the file that comments are about."""
        if self.loaded is None:
            return
        review = self.loaded.review
        marks: dict[tuple[Side, int], str] = {}
        for comment in self.comments:
            if comment.path == self.path and comment.start and not comment.outdated:
                lines = range(comment.start, max(comment.start, comment.end) + 1)
                text = safe_name(" ".join(comment.text.split())).text
                marks |= {(comment.side, review.line_index(comment.side, n)): text for n in lines}
        self.pane.set_remarks(marks)

    def watch_drift(self) -> None:
        """Watch the real files that this review is about, once for each set of their folders."""
        changes = self.changes
        if self.info is None or changes is None or self.watched_for == changes.generation:
            return
        self.watched_for = changes.generation
        paths = [file.old_path or file.path for file in changes.files]
        self.find_folders(Path(text_path(self.info.workspace)), paths)

    @on(FoldersFound)
    def watch_folders(self, message: FoldersFound) -> None:
        """Watch other folders than before."""
        if message.folders != self.watched:
            self.watched = message.folders
            self.watch_workspace(message.folders, message.names)

    @on(WorkspaceMoved)
    def see_drift(self) -> None:
        """Ask which files are no longer what the snapshot held."""
        self.stale.set()

    @on(FileLoaded)
    def take_file(self, message: FileLoaded) -> None:
        """Show a file that was asked for, unless another one is wanted by now."""
        loaded = message.loaded
        self.keep_loaded(loaded)
        if self.change is not None and key_of(self.change) == loaded.key:
            self.show_file(loaded)

    @on(DecisionRecorded)
    def take_decision(self, message: DecisionRecorded) -> None:
        """Read what the keeper made of the decision."""
        self.recorded |= message.units
        self.stale.set()

    @on(SteppedBack)
    def say_step(self, message: SteppedBack) -> None:
        """Say what was taken back, for not all of it is in sight."""
        self.stale.set()
        what, again = step_words(message.step), message.again
        if not what:
            self.say(f"There is nothing to {'decide again' if again else 'take back'}.")
        elif again:
            self.say(f"Again as it was: {what}.", "u takes it back", "done")
        else:
            self.say(f"Taken back: {what}.", "ctrl+r decides it again", "done")

    @on(DecisionFailed)
    def say_undecided(self, message: DecisionFailed) -> None:
        """Say why the keeper did not take a decision."""
        self.taken -= message.units
        self.stale.set()
        self.say(message.text, message.hint or "r fetches what the agent changed since", "error")

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
        progress = self.progress
        left, right = head_facts(
            self.info,
            progress,
            self.conflicts,
            self.glyphs,
            pending=news(self.changes, self.pending),
            words=self.size.width >= WORDS_FROM,
        )
        self.tell("head", left, right)

    def show_merged_state(self) -> None:
        """Show numbers and marks again."""
        if self.changes is not None:
            self.show_changes()

    def show_changes(self) -> None:
        """Show files and decisions as they are now."""
        self.show_list()
        self.show_head()
        self._show_nothing(not self.shown_files)
        if self.change is None and self.shown_files:
            self.open_file(self.shown_files[0].path)
        elif self.change is not None and (
            self.loaded is None or self.loaded.key != key_of(self.change)
        ):
            self.open_file(self.path)
        self.show_decisions()

    def _show_nothing(self, nothing: bool) -> None:
        self.query_one("#empty").display = nothing
        self.pane.display = not nothing
        if nothing:
            lines = ["When the agent changes a file, it is listed here."]
            keys = [(self.own_keys.get(key, key), what) for key, what in NOTHING_KEYS]
            self.query_one("#empty", Placard).say("It changed nothing yet", lines, keys)
        elif self.focused is None:
            self.set_focus(self.pane)

    def show_decisions(self) -> None:
        """Show what was decided in the file that is shown."""
        if self.loaded is not None:
            known = {unit.id: (unit.decision, unit.marks) for unit in self.units}
            found = [known.get(unit, ("open", "")) for unit in self.loaded.units]
            self.pane.set_decisions([word for word, _ in found], [marks for _, marks in found])
        self.show_place()

    def show_place(self) -> None:
        """Show which file and which hunk the cursor is on."""
        left, right = file_facts(
            self.change,
            self.units,
            self.glyphs,
            conflict=self.path in self.conflicts,
            no_space=self.pane.no_space,
            words=self.size.width >= WORDS_FROM,
        )
        self.tell("file", left, right)
        self.show_unit()

    def show_unit(self) -> None:
        """Show which hunk the cursor is on, or how many lines are chosen."""
        at = self.pane.current_unit
        chosen = sum(max(1, len(lines.changes)) for lines in self.pane.chosen())
        left, right = unit_facts(self.units, self.unit_index(), at, self.glyphs, chosen)
        remark = self.pane.remark_at(self.pane.cursor)
        if remark:
            left = [*left, (f"  {self.glyphs.comment} {remark}", "accent")]
        self.tell("unit", left, right)

    def open_file(self, path: str, unit: int | None = None) -> None:
        """Show a file, with the cursor on one of its units."""
        self.path = path
        self.goal = unit
        self.reveal(path)
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
            same = self.loaded is not None and self.loaded.path == loaded.path
            self.loaded = loaded
            self.choose_layout()
            place = self.pane.place_of_cursor() if same else None
            self.pane.show(loaded.document)
            if place is not None:
                self.pane.go_to_place(place)
            self.colour(loaded)
        if self.goal is not None:
            self.go_to_unit(self.goal)
        self.goal = None
        self.show_comments()
        self.show_decisions()

    def go_to_unit(self, unit: int) -> None:
        """Put the cursor on a unit, by its index in `units`."""
        units = self.units
        if self.loaded is not None and 0 <= unit < len(units):
            place = self.loaded.places.get(units[unit].id)
            if place is not None:
                self.pane.go_to_unit(place)

    def on_resize(self, event: events.Resize) -> None:
        """Show as many words as there is room for."""
        super().on_resize(event)
        self.show_head()
