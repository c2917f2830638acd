"""Go through what a session changed, hunk by hunk, and take home what was accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on

from app.ui.commit_screen import CommitScreen
from app.ui.review_facts import next_open, units_of
from app.ui.review_keys import REVIEW_BINDINGS
from app.ui.review_outside import ReviewOutside
from widgets.covered import CoveredColumn, CoveredRow
from widgets.file_list import FileList
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.line_list import LineList
from widgets.placard import Placard

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class ReviewScreen(ReviewOutside):
    """The changes of one session: what is where, and the keys that move in it."""

    AUTO_FOCUS = "DiffPane"
    BINDINGS: ClassVar[list[BindingType]] = REVIEW_BINDINGS

    def compose_body(self) -> ComposeResult:
        """Yield the files beside the diff."""
        yield InfoLine("surface", glyphs=self.glyphs, id="head")
        with CoveredRow(id="body"):
            with CoveredColumn(id="side"):
                yield InfoLine("surface", glyphs=self.glyphs, id="files-title")
                yield FileList(glyphs=self.glyphs, id="files")
            with CoveredColumn(id="main"):
                yield from self.compose_file()
        yield LineBar(id="line")

    def on_mount(self) -> None:
        """Connect to the session."""
        super().on_mount()
        self.query_one("#empty", Placard).say("Reading what it changed")
        self.pane.display = False
        self.connect()

    @on(LineList.Moved, "#files")
    def follow_files(self, message: LineList.Moved) -> None:
        """Show the file under the cursor of the list; a folder leaves the one that shows."""
        if message.key in self.by_path:
            self.open_file(message.key)

    @on(LineList.Chosen, "#files")
    def enter_file(self, message: LineList.Chosen) -> None:
        """Go into the file; a folder is closed or opened."""
        if message.key in self.by_path:
            self.open_file(message.key)
            self.go_to_pane()
        else:
            self.fold(FileList.FoldWanted(message.key, message.key not in self.closed))

    def action_other_side(self) -> None:
        """Go to the files, or back to the diff."""
        if self.files.has_focus:
            self.go_to_pane()
        else:
            self.add_class("-files")
            self.remove_class("-solo")
            self.set_focus(self.files)

    def action_commits(self) -> None:
        """Read the agent's commits one by one; comes back to the file that showed there."""
        if self.session is not None:
            screen = CommitScreen(self.glyphs, self.session, self.info, self.come_back)
            self.cloche.push_screen(screen)

    def come_back(self, path: str) -> None:
        """Show a file if it is part of the whole change."""
        if path in self.by_path:
            self.open_file(path)

    def action_file(self, step: int) -> None:
        """Go to the next or previous file."""
        files = self.listed
        paths = [file.path for file in files]
        if self.path not in paths:
            return
        position = paths.index(self.path) + step
        if 0 <= position < len(paths):
            change = files[position]
            self.open_file(change.path, 0 if step > 0 else len(units_of(change)) - 1)
        else:
            self.say("This is the last file." if step > 0 else "This is the first file.")

    def action_next_open(self, direction: int) -> None:
        """Go to the next or previous open thing; after a search, to a place of the text."""
        if self.pane.find:
            self.go_to_found(direction)
            return
        index = self.unit_index()
        at = -1 if index is None else index
        place = next_open(self.shown_files, self.path, at, self.taken, direction)
        if place is None:
            self.say("Everything is decided.", "M shows what a merge would write", "done")
        elif place[0] == self.path:
            self.go_to_unit(place[1])
        else:
            self.open_file(*place)

    def action_dismiss_notice(self) -> None:
        """End the choice of lines, then the search, then the filters, then close the notice."""
        busy = self.pane.choice_start is not None or self.pane.find or self.notice is not None
        if not busy and (self.text_filter or self.state_filter != "all"):
            self.text_filter, self.state_filter = "", "all"
            self.show_list()
        else:
            super().action_dismiss_notice()

    # Find

    def action_find(self) -> None:
        """Find a text in the file, or filter the list of files when that has the focus."""
        if self.files.has_focus:
            self.action_find_in_list()
        else:
            super().action_find()

    def action_find_in_list(self) -> None:
        """Filter the list by words of paths; a word after ! must not be there."""
        self.filtering = True
        self.query_one(LineBar).open("filter files", self.text_filter)

    def filter_typed(self) -> None:
        """List what the typed words leave."""
        self.show_list()

    def filter_ended(self, text: str) -> None:
        """Keep the words that the list is filtered by, and go to it."""
        self.text_filter = text
        self.show_list()
        self.set_focus(self.files)
