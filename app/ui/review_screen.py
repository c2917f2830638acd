"""Go through what a session changed, hunk by hunk, and take home what was accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Horizontal, Vertical

from app.ui.review_conflicts import ReviewConflicts
from app.ui.review_facts import next_open, units_of
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


class ReviewScreen(ReviewConflicts):
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

    @on(InfoLine.Pressed)
    async def press_fact(self, message: InfoLine.Pressed) -> None:
        """Do what a clicked fact says."""
        await self.run_action(message.action)

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
            self.leave_files()
        else:
            self.fold(FileList.FoldWanted(message.key, message.key not in self.closed))

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
            self.say("Everything is decided.", "M merges what is accepted", "done")
        elif place[0] == self.path:
            self.go_to_unit(place[1])
        else:
            self.open_file(*place)

    def action_dismiss_notice(self) -> None:
        """End the choice of lines, then the search, then close the notice."""
        if self.pane.choice_start is not None:
            self.pane.choose(None)
        elif self.pane.find:
            self.pane.set_find("")
        elif self.notice is None and (self.text_filter or self.state_filter != "all"):
            self.text_filter, self.state_filter = "", "all"
            self.show_list()
        else:
            super().action_dismiss_notice()

    def action_copy(self) -> None:
        """Copy the chosen lines, or what the hunk under the cursor becomes."""
        pane, unit = self.pane, self.pane.current_unit
        if pane.document is None or unit is None:
            return
        rows = pane.chosen_rows or pane.rows_of_unit(unit)
        text = pane.text_of(rows)
        if text:
            self.cloche.copy_to_clipboard(text.encode("utf-8", "replace").decode())
            count = text.count("\n") + 1
            self.say(f"Copied {count} {'line' if count == 1 else 'lines'}.", "", "done")

    def action_split(self) -> None:
        """Show both sides beside each other, or one after the other."""
        self.layout_choice = "unified" if self.pane.layout_name == "split" else "split"
        self.choose_layout()

    def action_wrap(self) -> None:
        """Wrap long lines, or not."""
        self.pane.set_wrap(not self.pane.wrap_lines)

    def action_white_space(self) -> None:
        """Show changes of white space alone, or not."""
        self.pane.set_no_space(not self.pane.no_space)
        self.show_place()

    def action_leave(self) -> None:
        """Go back to the fleet; decisions are kept."""
        self.cloche.pop_screen()

    # Find

    def action_find(self) -> None:
        """Find a text in the file, or filter the list of files when that has the focus."""
        if self.files.has_focus:
            self.action_find_in_list()
        else:
            self.query_one(LineBar).open("find", "")

    def action_find_in_list(self) -> None:
        """Filter the list by words of paths; a word after ! must not be there."""
        self.filtering = True
        self.query_one(LineBar).open("filter files", self.text_filter)

    @on(LineBar.Changed)
    def apply_find(self, message: LineBar.Changed) -> None:
        """Show what was found as it is typed."""
        if self.filtering:
            self.show_list()
            return
        self.pane.set_find(message.text)
        found = bool(message.text) and self.pane.find_next(here=True)
        none = "" if found or not message.text else "not in this file"
        self.query_one(LineBar).tell(none)

    @on(LineBar.Stepped)
    def step_find(self, message: LineBar.Stepped) -> None:
        """Go to the next place; `enter` is through with typing and keeps the marks."""
        if self.filtering or (message.entered and self.pane.find):
            self.query_one(LineBar).close(accepted=True)
        else:
            self.pane.find_next(message.direction)

    @on(LineBar.Closed)
    def end_find(self, message: LineBar.Closed) -> None:
        """Show everything again; with `enter` the text stays marked, for `n` and `N`."""
        if self.filtering:
            self.filtering = False
            self.text_filter = message.text.strip() if message.accepted else ""
            self.show_list()
            self.set_focus(self.files)
            return
        self.set_focus(self.pane)
        if not message.accepted:
            self.pane.set_find("")

    def go_to_found(self, direction: int) -> None:
        """Go to another place of the text in the file that shows."""
        self.pane.find_next(direction)
