"""What every screen with a diff has: layouts, colours, a text to find, and copying."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING

from textual import on

from app.ui.messages import SpansArrived
from app.ui.work_screen import WorkScreen
from app.ui.workers import work
from app.wording import plural
from widgets.diff_pane import SPLIT_FROM, DiffPane
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.placard import Placard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from app.services.documents import LoadedFile
    from themes.glyphs import Glyphs
    from widgets.diff_model import Layout, Side
    from widgets.info_line import Fact

SIDES: tuple[Side, Side] = ("new", "old")
"""The order in which the sides of a file are coloured."""

KEPT_FILES = 16
"""How many loaded files are kept."""

NARROW = 100
"""Below this width the lists and the diff take turns."""


class ReadingScreen(WorkScreen):
    """A screen that shows one file at a time in a `DiffPane`."""

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared on instances by the base class
        (0, "-narrow"),
        (NARROW, "-normal"),
        (160, "-wide"),
    ]
    filtering = False
    """The line above the keys filters a list; else it finds a text in the file."""
    everywhere = False
    """What is being typed there is searched for in all files."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self.loaded: LoadedFile | None = None
        self.layout_choice: Layout | None = None
        self.kept: dict[str, LoadedFile] = {}
        """Loaded files by what names their contents."""

    def compose_file(self) -> ComposeResult:
        """Yield what shows one file: its line, its diff or why there is none, its hunk's line."""
        yield InfoLine("panel", glyphs=self.glyphs, id="file")
        yield Placard(id="empty")
        yield DiffPane(glyphs=self.glyphs, id="diff")
        yield InfoLine("panel", glyphs=self.glyphs, id="unit")

    @property
    def pane(self) -> DiffPane:
        """The diff."""
        return self.query_one(DiffPane)

    def keep_loaded(self, loaded: LoadedFile) -> None:
        """Keep a file for when it is shown again; the oldest one goes."""
        self.kept[loaded.key] = loaded
        while len(self.kept) > KEPT_FILES:
            del self.kept[next(iter(self.kept))]

    def tell(self, name: str, left: Sequence[Fact], right: Sequence[Fact] = ()) -> None:
        """Show a line of facts, with the user's own keys in it."""
        line = self.query_one(f"#{name}", InfoLine)
        line.show([self.own_fact(fact) for fact in left], [self.own_fact(fact) for fact in right])

    def show_place(self) -> None:
        """Say which file and which hunk the cursor is on."""

    def show_unit(self) -> None:
        """Say which hunk the cursor is on; the file is the same as before."""
        self.show_place()

    @on(DiffPane.CursorMoved)
    def follow_cursor(self) -> None:
        """Say which hunk the cursor is on."""
        self.show_unit()

    @on(InfoLine.Pressed)
    async def press_fact(self, message: InfoLine.Pressed) -> None:
        """Do what a clicked fact says."""
        await self.run_action(message.action)

    # Colours

    @work("colours", exclusive=True)
    async def colour(self, loaded: LoadedFile) -> None:
        """Colour both sides of a file; its text is shown already."""
        name = os.fsencode(loaded.path)
        for side in SIDES:
            if loaded.is_coloured(side):
                continue
            text, first = loaded.text_of(side)
            async with aclosing(self.cloche.colours.spans(name, text)) as parts:
                async for lines in parts:
                    spans = {number + first: line for number, line in lines.items()}
                    self.post_message(SpansArrived(loaded.key, side, spans))

    @on(SpansArrived)
    def take_spans(self, message: SpansArrived) -> None:
        """Colour the file if it is still shown."""
        self.pane.set_spans(message.key, message.side, message.spans)

    # Layout

    def choose_layout(self) -> None:
        """Show both sides where there is room and both have lines, unless the user chose."""
        one_sided = self.loaded is not None and 0 in self.loaded.document.lines
        wide = self.size.width >= SPLIT_FROM and not one_sided
        chosen: Layout = "split" if wide else "unified"
        self.pane.set_layout(self.layout_choice or chosen)

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new width, unless the user chose one."""
        del event
        self.call_after_refresh(self.choose_layout)

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

    def action_solo(self) -> None:
        """Give the diff the whole width, or show the lists beside it again."""
        self.toggle_class("-solo")
        if not self.pane.has_focus:
            self.go_to_pane()

    def go_to_pane(self) -> None:
        """Go from the lists to the diff."""
        self.remove_class("-files")
        self.set_focus(self.pane)

    def action_copy(self) -> None:
        """Copy the chosen lines, or what the hunk under the cursor becomes."""
        pane, unit = self.pane, self.pane.current_unit
        if pane.document is None or unit is None:
            return
        text = pane.text_of(pane.chosen_rows or pane.rows_of_unit(unit))
        if text:
            self.cloche.copy_to_clipboard(text.encode("utf-8", "replace").decode())
            count = text.count("\n") + 1
            self.say(f"Copied {count} {plural(count, 'line')}.", "", "done")

    def action_leave(self) -> None:
        """Go back to the screen below."""
        self.cloche.pop_screen()

    # Moving

    def action_unit(self, step: int) -> None:
        """Go to the next or previous hunk, on into the next file."""
        at = self.pane.current_unit
        if at is not None and 0 <= at + step < self.pane.unit_count:
            self.pane.go_to_unit(at + step)
        else:
            self.action_file(step)

    def action_file(self, step: int) -> None:
        """Go to the next or previous file."""

    # Find

    def action_find(self) -> None:
        """Find a text in the file."""
        self.query_one(LineBar).open("find", "")

    @on(LineBar.Changed)
    def apply_find(self, message: LineBar.Changed) -> None:
        """Show what was found as it is typed."""
        if self.filtering:
            self.filter_typed()
        if self.filtering or self.everywhere:
            return
        self.pane.set_find(message.text)
        found = bool(message.text) and self.pane.find_next(here=True)
        none = "" if found or not message.text else "not in this file"
        self.query_one(LineBar).tell(none)

    @on(LineBar.Stepped)
    def step_find(self, message: LineBar.Stepped) -> None:
        """Go to the next place; `enter` is through with typing and keeps the marks."""
        if self.everywhere:
            if message.entered:
                self.find_everywhere(self.query_one(LineBar).text)
        elif self.filtering or (message.entered and self.pane.find):
            self.query_one(LineBar).close(accepted=True)
        else:
            self.pane.find_next(message.direction)

    @on(LineBar.Closed)
    def end_find(self, message: LineBar.Closed) -> None:
        """Go back to the diff; with `enter` the text stays marked, for `n` and `N`."""
        if self.filtering:
            self.filtering = False
            self.filter_ended(message.text.strip() if message.accepted else "")
            return
        self.set_focus(self.pane)
        if not message.accepted and not self.everywhere:
            self.pane.set_find("")
        self.everywhere = False

    def go_to_found(self, direction: int) -> None:
        """Go to another place of the text."""
        self.pane.find_next(direction)

    def find_everywhere(self, text: str) -> None:
        """Search in all files for what was typed."""

    def filter_typed(self) -> None:
        """Show the list as what is being typed filters it."""

    def filter_ended(self, text: str) -> None:
        """Show the list as `text` filters it; nothing shows all of it."""

    def action_dismiss_notice(self) -> None:
        """End the choice of lines, then the search, then close the notice."""
        if self.pane.choice_start is not None:
            self.pane.choose(None)
        elif self.pane.find:
            self.pane.set_find("")
        else:
            super().action_dismiss_notice()
