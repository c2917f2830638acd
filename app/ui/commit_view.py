"""How the screen of commits shows what its workers gathered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual import on

from app.services.documents import key_of
from app.ui.commit_facts import (
    branch_key,
    commit_facts,
    commit_rows,
    file_line,
    head_facts,
    total_of,
    unit_line,
)
from app.ui.commit_work import CommitWork
from app.ui.messages import (
    CommitChangeArrived,
    CommitsArrived,
    CommitsTaken,
    FileLoaded,
    LookEnded,
    TaskFailed,
)
from app.ui.review_tree import Shape
from app.ui.review_view import WORDS_FROM
from widgets.line_bar import LineBar
from widgets.placard import Placard

if TYPE_CHECKING:
    from textual import events

    from app.protocol_commits import CommitChange
    from app.services.documents import LoadedFile

KEPT_CHANGES = 32
"""How many commits' changes are kept."""

UNDECIDED = "shown"
"""The decision of every hunk here: none, and no place for one."""


class CommitView(CommitWork):
    """Handlers of what the workers gathered; they alone change what is shown."""

    @on(CommitsArrived)
    def take_commits(self, message: CommitsArrived) -> None:
        """List the commits; the cursor stays on its own."""
        self.found = message.found
        known = self.by_id  # a commit never changes, a branch may have grown
        self.changes = {key: one for key, one in self.changes.items() if key in known}
        self.show_commits()
        if self.wanted not in {row.key for row in self.commits.items}:
            self.wanted = self.commits.current_key or ""
        self.show_change()

    @on(LookEnded)
    def end_look(self) -> None:
        """Say that this is all."""
        self.looking, self.through = False, True
        self.show_commits()

    @on(CommitChangeArrived)
    def take_change(self, message: CommitChangeArrived) -> None:
        """Show a change that was asked for, unless another one is wanted by now."""
        self.changes[message.key] = message.change
        while len(self.changes) > KEPT_CHANGES:
            del self.changes[next(iter(self.changes))]
        if message.key == self.wanted:
            self._put(message.key, message.change)

    @on(FileLoaded)
    def take_file(self, message: FileLoaded) -> None:
        """Show a file that was asked for, unless another one is wanted by now."""
        self.keep_loaded(message.loaded)
        if self.file is not None and key_of(self.file) == message.loaded.key:
            self.show_file(message.loaded)

    @on(CommitsTaken)
    def say_taken(self, message: CommitsTaken) -> None:
        """Say which refs there are now."""
        self.found = message.found
        refs = [branch.ref for branch in message.found.branches if branch.ref]
        self.say(f"Written: {', '.join(refs)}.", f"git log -p {refs[0]}" if refs else "", "done")
        self.show_commits()

    @on(TaskFailed)
    def say_failure(self, message: TaskFailed) -> None:
        """Say what did not work."""
        self.say(message.text, message.hint, "error")
        self.show_commits()

    # Showing

    def show_commits(self) -> None:
        """Show the list as it is now."""
        line = self.query_one(LineBar)
        text = line.text if line.is_open and self.filtering else self.text_filter
        rows = [] if self.found is None else commit_rows(self.found, text, time.time())
        self.commits.empty = "no commit is so" if text else ""
        self.commits.set_items(rows)
        if self.wanted:
            self.commits.select(self.wanted)
        title = "  /" + text if text else ""
        self.tell("commits-title", [(" COMMITS", "muted*"), (title, "accent*", "find")])
        self._show_nothing()
        self.show_place()

    def _show_nothing(self) -> None:
        """Say why there is no diff; take the words away where there is one."""
        placard = self.query_one("#empty", Placard)
        placard.display = self.file is None
        self.pane.display = not placard.display
        if self.found is not None and not self.found.commits and not self.looking:
            lines = ["What it commits in its machine is listed here, for you to read."]
            placard.say(
                "It made no new commits", lines, self._keys(("r", "look again"), ("q", "back"))
            )
        elif self.shown and self.shown == self.wanted:
            lines = ["It is empty, or a merge that changes nothing of its own."]
            placard.say("No file changed", lines, self._keys((".", "next commit"), ("q", "back")))
        elif self.found is None and self.through:
            lines = ["The line below says why."]
            keys = self._keys(("r", "look again"), ("q", "back"))
            placard.say("Its commits cannot be read", lines, keys, tone="$error")
        elif placard.display:
            placard.say("Reading its commits")

    def _keys(self, *keys: tuple[str, str]) -> list[tuple[str, str]]:
        """Return keys and what they do, with the user's own."""
        return [(self.own_keys.get(key, key), what) for key, what in keys]

    def show_change(self) -> None:
        """Show what the wanted commit changed, once it is there."""
        known = self.changes.get(self.wanted)
        if known is not None:
            self._put(self.wanted, known)
            return
        commit, whole = self._named(self.wanted)
        if commit:
            self.read_change(self.wanted, commit, whole=whole)

    def _named(self, key: str) -> tuple[str, bool]:
        """Return the commit that a row is about, and whether all that led to it is meant."""
        for branch in () if self.found is None else self.found.branches:
            if key == branch_key(branch.name):
                return branch.commit, True
        return (key if key in self.by_id else ""), False

    def _put(self, key: str, change: CommitChange) -> None:
        """Show the files of a change, and the first of them or the one that showed before."""
        if key != self.shown:
            self.closed = frozenset()
        self.shown, self.change = key, change
        self.ordered = self.kept_rows.ordered(change.files, self.order)
        self.show_files()
        paths = [file.path for file in self.ordered]
        if self.path not in paths:
            self.path = paths[0] if paths else ""
            self.goal = 0
        self.open_file(self.path)

    def show_files(self) -> None:
        """Show the files of the commit; nothing is decided about them here."""
        rows = self.kept_rows.rows(self.ordered, Shape(self.order, self.closed))
        self.files.set_items([row._replace(decision="", total=0) for row in rows])
        self.files.empty = "it changed no file" if self.shown else ""
        total = total_of(self.ordered, self.glyphs) if self.ordered else ""
        self.tell(
            "files-title",
            [(" FILES", "muted*"), (f"  {total}", "muted")],
            [(f"{self.order} ", "muted", "sort_files")],
        )

    def open_file(self, path: str, unit: int | None = None) -> None:
        """Show a file, with the cursor on one of its hunks."""
        self.path = path
        self.goal = unit if unit is not None else self.goal
        self.files.select(path)
        change = self.file
        self._show_nothing()
        if change is None:
            self.loaded = None
            self.show_place()
            return
        loaded = self.kept.get(key_of(change))
        if loaded is not None:
            self.show_file(loaded)
        else:
            self.load(change)

    def show_file(self, loaded: LoadedFile) -> None:
        """Show a loaded file."""
        if self.loaded is not loaded:
            self.loaded = loaded
            self.choose_layout()
            self.pane.show(loaded.document)
            self.pane.set_decisions([UNDECIDED] * len(loaded.units))
            self.colour(loaded)
        if self.goal is not None and loaded.units:
            self.pane.go_to_unit(self.goal % len(loaded.units))
        self.goal = None
        self.show_place()

    def show_place(self) -> None:
        """Show which commit, which file and which hunk the cursor is on."""
        wide = self.size.width >= WORDS_FROM
        branch = self.shown.removeprefix("branch ") if self.shown not in self.by_id else ""
        commit = self.by_id.get(self.shown)
        self.tell("head", *head_facts(self.info, self.found, self.glyphs, looking=self.looking))
        self.tell("commit", *commit_facts(commit, branch, self.change, self.glyphs))
        self.tell("file", *file_line(self.file, self.glyphs))
        count = 0 if self.file is None else self.pane.unit_count
        at = self.pane.current_unit if count else None
        self.tell("unit", *unit_line(at, count, words=wide))

    def on_resize(self, event: events.Resize) -> None:
        """Show as many words as there is room for."""
        super().on_resize(event)
        self.show_place()
