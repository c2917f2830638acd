"""The list of files of a review: its order, its folders, what is filtered, what was viewed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.ui.failures import told
from app.ui.messages import TaskFailed
from app.ui.review_tree import ALL, FILE_ORDERS, FILTERS, passes
from app.ui.review_work import ReviewWork
from app.ui.workers import work
from widgets.file_list import FileList
from widgets.line_bar import LineBar

if TYPE_CHECKING:
    from app.protocol import FileChange
    from app.services.ports import SessionPort
    from widgets.info_line import Fact


class ReviewList(ReviewWork):
    """What the list shows; what its rows decide is said by `ReviewDecide`."""

    state_filter = "all"
    """One of `FILTERS`."""
    text_filter = ""

    @property
    def needle(self) -> str:
        """The text that paths must hold: what is being typed, else what was."""
        line = self.query_one(LineBar)
        return line.text if line.is_open and self.filtering else self.text_filter

    @property
    def listed(self) -> list[FileChange]:
        """The files that pass the filters, and the one that is shown."""
        state, text, conflicts = self.state_filter, self.needle, self.conflicts
        if state == "all" and not text:
            return self.shown_files
        return [
            file
            for file in self.shown_files
            if passes(file, state, text, conflicts)
            or (file.path == self.path and not text and not self.filtering)
        ]

    def show_list(self) -> None:
        """Show the files as they are now."""
        listed = self.listed
        self.files.empty = "no file is so" if self.shown_files else ""
        self.files.set_items(self.kept_rows.rows(listed, self.shape))
        self.tell("files-title", *self._title(len(listed)))
        if self.files.current_key is None and self.path:
            self.files.select(self.path)

    def _title(self, count: int) -> tuple[list[Fact], list[Fact]]:
        left: list[Fact] = [(" FILES", "muted*")]
        if self.state_filter != "all":
            left.append((f"  {self.state_filter}", "accent*", "filter"))
        if self.text_filter:
            left.append((f"  /{self.text_filter}", "accent*", "find_in_list"))
        if len(left) > 1:
            left.append((f" {count}/{len(self.shown_files)}", "muted"))
        order: Fact = (f"{self.order} ", "muted", "sort_files")
        return left, [("L commits  ", "muted", "commits"), order]

    def reveal(self, path: str) -> None:
        """Open the folders around a file and put the list's cursor on it."""
        around = {folder for folder in self.closed if path.startswith(folder)}
        if around:
            self.closed -= around
            self.show_list()
        self.files.select(path)

    @on(FileList.FoldWanted)
    def fold(self, message: FileList.FoldWanted) -> None:
        """Close or open a folder; the row of everything closes and opens all of them."""
        if message.key == ALL:
            return
        self.closed = self.closed ^ {message.key}
        self.show_list()

    def action_filter(self) -> None:
        """List only what is open, risky, in conflict, …: the next of them that holds a file."""
        states = list(FILTERS)
        at = states.index(self.state_filter)
        for state in (*states[at + 1 :], "all"):
            found = any(passes(file, state, "", self.conflicts) for file in self.shown_files)
            if found or state == "all":
                self.state_filter = state
                break
        self.show_list()

    @on(FileList.SortWanted)
    def action_sort_files(self) -> None:
        """List the files in the next order."""
        self.order = FILE_ORDERS[(FILE_ORDERS.index(self.order) + 1) % len(FILE_ORDERS)]
        if self.changes is not None:
            self.keep(self.changes)
            self.show_list()

    def action_viewed(self) -> None:
        """Mark the file as viewed, or take the mark away."""
        if self.session is None or self.change is None:
            return
        self.send_viewed(self.session, self.path, viewed=not self.change.viewed)

    @work("decide")
    async def send_viewed(self, session: SessionPort, path: str, *, viewed: bool) -> None:
        """Tell the keeper; its event shows the mark."""
        try:
            async with self.in_turn:
                await session.view(path, viewed=viewed)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
