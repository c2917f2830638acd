"""Go through what a session changed, hunk by hunk, and take home what was accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Horizontal, Vertical

from app.ui.review_decide import ReviewDecide
from app.ui.review_facts import FILE_ORDERS, next_open, units_of
from app.ui.review_keys import REVIEW_BINDINGS
from widgets.diff_pane import DiffPane
from widgets.file_list import FileList
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.line_list import LineList
from widgets.placard import Placard

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

NARROW = 100
"""Below this width the list of files and the diff take turns."""


class ReviewScreen(ReviewDecide):
    """The changes of one session: what is where, and the keys that move in it."""

    AUTO_FOCUS = "DiffPane"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared on instances by the base class
        (0, "-narrow"),
        (NARROW, "-normal"),
        (160, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = REVIEW_BINDINGS

    def compose_body(self) -> ComposeResult:
        """Yield the files beside the diff."""
        yield InfoLine("surface", glyphs=self.glyphs, id="head")
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield InfoLine("surface", glyphs=self.glyphs, id="files-title")
                yield FileList(glyphs=self.glyphs, id="files")
            with Vertical(id="main"):
                yield InfoLine("panel", glyphs=self.glyphs, id="file")
                yield Placard(id="empty")
                yield DiffPane(glyphs=self.glyphs, id="diff")
                yield InfoLine("panel", glyphs=self.glyphs, id="unit")
        yield LineBar(id="line")

    def on_mount(self) -> None:
        """Connect to the session."""
        super().on_mount()
        self.query_one("#empty", Placard).say("Reading what it changed")
        self.pane.display = False
        self.connect()

    @on(DiffPane.CursorMoved)
    def follow_cursor(self) -> None:
        """Say which hunk the cursor is on."""
        self.show_place()

    @on(LineList.Moved, "#files")
    def follow_files(self, message: LineList.Moved) -> None:
        """Show the file under the cursor of the list."""
        self.open_file(message.key)

    @on(LineList.Chosen, "#files")
    def enter_file(self, message: LineList.Chosen) -> None:
        """Go into the file."""
        self.open_file(message.key)
        self.leave_files()

    @on(FileList.SortWanted)
    def sort_files(self) -> None:
        """List the files in the next order."""
        self.order = FILE_ORDERS[(FILE_ORDERS.index(self.order) + 1) % len(FILE_ORDERS)]
        if self.changes is not None:
            self.keep(self.changes)
            self.show_changes()

    def leave_files(self) -> None:
        """Go back from the list of files to the diff."""
        self.remove_class("-files")
        self.set_focus(self.pane)

    def action_other_side(self) -> None:
        """Go to the files, or back to the diff."""
        if self.files.has_focus:
            self.leave_files()
        else:
            self.add_class("-files")
            self.remove_class("-solo")
            self.set_focus(self.files)

    def action_solo(self) -> None:
        """Give the diff the whole width, or show the files again."""
        self.toggle_class("-solo")
        if self.files.has_focus:
            self.leave_files()

    def action_unit(self, step: int) -> None:
        """Go to the next or previous hunk, on into the next file."""
        at = self.pane.current_unit
        if at is not None and 0 <= at + step < self.pane.unit_count:
            self.pane.go_to_unit(at + step)
        else:
            self.action_file(step)

    def action_file(self, step: int) -> None:
        """Go to the next or previous file."""
        paths = [file.path for file in self.shown_files]
        if self.path not in paths:
            return
        position = paths.index(self.path) + step
        if 0 <= position < len(paths):
            change = self.shown_files[position]
            self.open_file(change.path, 0 if step > 0 else len(units_of(change)) - 1)
        else:
            self.say("This is the last file." if step > 0 else "This is the first file.")

    def action_next_open(self) -> None:
        """Go to the next thing that is undecided, in this file or a later one."""
        index = self.unit_index()
        place = next_open(self.shown_files, self.path, -1 if index is None else index, self.taken)
        if place is None:
            self.say("Everything is decided.", "M merges what is accepted", "done")
        elif place[0] == self.path:
            self.go_to_unit(place[1])
        else:
            self.open_file(*place)

    def action_split(self) -> None:
        """Show both sides beside each other, or one after the other."""
        self.layout_choice = "unified" if self.pane.layout_name == "split" else "split"
        self.choose_layout()

    def action_wrap(self) -> None:
        """Wrap long lines, or not."""
        if not self.pane.set_wrap(not self.pane.wrap_lines):
            self.say("This file has too many lines to wrap.", "h and l scroll to the side")

    def action_leave(self) -> None:
        """Go back to the fleet; decisions are kept."""
        self.cloche.pop_screen()

    # Find

    def action_find(self) -> None:
        """Find a text in the file, or filter the list of files when that has the focus."""
        self.filtering = self.files.has_focus
        self.query_one(LineBar).open("filter files" if self.filtering else "find", "")

    @on(LineBar.Changed)
    def apply_find(self, message: LineBar.Changed) -> None:
        """Show what was found as it is typed."""
        if self.filtering:
            self.show_changes()
            return
        self.pane.set_find(message.text)
        found = bool(message.text) and self.pane.find_next(here=True)
        self.query_one(LineBar).tell("" if found or not message.text else "not in this file")

    @on(LineBar.Stepped)
    def step_find(self, message: LineBar.Stepped) -> None:
        """Go to the next place; in a filter, into the file."""
        if self.filtering:
            self.query_one(LineBar).close(accepted=True)
        else:
            self.pane.find_next(message.direction)

    @on(LineBar.Closed)
    def end_find(self) -> None:
        """Show everything again."""
        if self.filtering:
            self.filtering = False
            self.show_changes()
            self.set_focus(self.files)
        else:
            self.pane.set_find("")
            self.set_focus(self.pane)
