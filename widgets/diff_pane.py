"""The diff of one file: one scroll view for both sides, drawn line by line.

A cursor stands on a row; the hunk under it is the current one. Both sides scroll as one. The last
column is an overview of the whole file in place of a scrollbar. What the user decides is shown
here and decided elsewhere: the pane says where the cursor is and which marks were clicked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from widgets.diff_choice import ChosenLines
from widgets.diff_draw import EDGE
from widgets.diff_walk import DiffWalk

if TYPE_CHECKING:
    from textual import events

SPLIT_FROM = 120
"""Narrowest screen in cells that shows both sides beside each other by itself."""

WHEEL_ROWS = 3


class DiffPane(DiffWalk, can_focus=True):
    """Shows a `DiffDocument`."""

    BINDING_GROUP_TITLE = "Diff"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "next line", show=False, id="diff.down"),
        Binding("k,up", "move(-1)", "previous line", show=False, id="diff.up"),
        Binding("g,home", "edge(-1)", "first line", show=False, id="diff.first"),
        Binding("G,end", "edge(1)", "last line", show=False, id="diff.last"),
        Binding("pagedown,ctrl+d", "leaf(1)", "page down", show=False, id="diff.page-down"),
        Binding("pageup,ctrl+u", "leaf(-1)", "page up", show=False, id="diff.page-up"),
        Binding("l,right", "side(1)", "scroll right", show=False, id="diff.right"),
        Binding("h,left", "side(-1)", "scroll left", show=False, id="diff.left"),
        Binding(
            "v",
            "choose_lines",
            "choose lines",
            show=False,
            tooltip="Choose lines from here to the cursor; what you decide is about them alone",
            id="diff.choose",
        ),
        Binding(
            "S",
            "choose_block",
            "choose block",
            show=False,
            tooltip="Choose the changed lines around the cursor that stand together",
            id="diff.choose-block",
        ),
        Binding("enter", "unfold", "show folded lines", show=False, id="diff.unfold"),
        Binding(
            "Z",
            "unfold_all",
            "whole file",
            show=False,
            tooltip="Show the whole file, or fold it again",
            id="diff.unfold-all",
        ),
        Binding(
            "greater_than_sign",
            "context(1)",
            "more context",
            show=False,
            tooltip="Show more unchanged lines: of this fold, else around each hunk",
            id="diff.more",
        ),
        Binding(
            "less_than_sign",
            "context(-1)",
            "less context",
            show=False,
            tooltip="Show fewer unchanged lines around each hunk",
            id="diff.less",
        ),
    ]
    DEFAULT_CSS = """
    DiffPane { width: 1fr; height: 1fr; background: $background; }
    """

    @dataclass
    class MarkClicked(Message):
        """The user clicked a mark in the margin: a hunk's, or a line's."""

        lines: tuple[ChosenLines, ...]
        """What the mark stands for; a unit without `changes` is meant as a whole."""

    _pressed: int | None = None
    """Row where a button went down; None when it is up."""
    _dragged = False

    # Mouse

    def row_under(self, y: int) -> int | None:
        """Return the row on a line of the widget."""
        at = y + self.scroll_offset.y
        return self.place(at)[0] if 0 <= at < self.visual_rows else None

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember where a choice of lines may begin."""
        row = self.row_under(event.y) if self.document is not None and event.button == 1 else None
        code = event.x > self.margin_width and event.x < self.size.width - 1
        self._pressed = row if code else None
        self._dragged = False
        if self._pressed is not None:
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Choose the lines that the pointer is drawn over."""
        if self._pressed is None or not event.button:
            return
        row = self.row_under(max(0, min(event.y, self.size.height - 1)))
        if row is not None and (self._dragged or row != self._pressed):
            self._dragged = True
            self.choice_start = self._pressed
            self.go_to(row)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """End the drawing."""
        del event
        self.release_mouse()
        self._pressed = None

    @property
    def margin_width(self) -> int:
        """Cells left of the first side's code: edge, sign, number."""
        return EDGE + self.look.digits

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the pointer is; open a fold; say that a mark was clicked."""
        if self.document is None or self._dragged:
            self._dragged = False
            return
        if event.x == self.size.width - 1:
            y = event.y * max(1, self.visual_rows) // max(1, self.size.height)
            self.go_to(self.place(min(y, self.visual_rows - 1))[0], center=True)
            return
        row = self.row_under(event.y)
        if row is None:
            return
        self.choice_start = None
        self.go_to(row)
        model = self.row_at(row)
        if model is not None and model.kind == "fold":
            self.action_unfold()
        elif marks := self._marks_under(row, event.x):
            self.post_message(self.MarkClicked(marks))

    def _marks_under(self, row: int, x: int) -> tuple[ChosenLines, ...]:
        """Return what the margin stands for: a unit at its edge, a line at its number."""
        lines = self.lines_at(row, self._side_under(x))
        if x < EDGE and lines and self.letter_is_whole(row):
            return (ChosenLines(lines[0].unit, ()),)
        return tuple(lines) if self._on_number(x) or x < EDGE else ()

    def letter_is_whole(self, row: int) -> bool:
        """Return whether the sign at a row's edge speaks for its whole unit."""
        return self.decision_of(self.unit_at(row)) != "mixed"

    def _side_under(self, x: int) -> str:
        if x < EDGE or self.layout_name == "unified":
            return ""
        return "old" if x < EDGE + self.look.gutter + self.look.code_width("old") else "new"

    def _on_number(self, x: int) -> bool:
        look = self.look
        if self.layout_name == "unified":
            return EDGE <= x < EDGE + 2 * look.digits + 1
        right = EDGE + look.gutter + look.code_width("old") + 1
        return EDGE <= x < EDGE + look.digits or right <= x < right + look.digits

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Scroll without moving the cursor out of its hunk."""
        event.stop()
        self.roll(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Scroll back."""
        event.stop()
        self.roll(-WHEEL_ROWS)
