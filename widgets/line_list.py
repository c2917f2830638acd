"""A list with a cursor, a filter and the same movement keys everywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textual.binding import Binding, BindingType
from textual.message import Message

from themes.glyphs import UNICODE, Glyphs
from widgets.cells import two_sided
from widgets.lines import LineView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.strip import Strip
    from textual.widget import Widget

Item = TypeVar("Item")


class LineList(LineView, Generic[Item], can_focus=True):
    """Items of one or more lines each; some (headings) cannot be chosen.

    A subclass says how an item looks; what it means is told by the messages.
    """

    BINDING_GROUP_TITLE = "List"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "move(1)", "down", show=False, id="list.down"),
        Binding("k,up", "move(-1)", "up", show=False, id="list.up"),
        Binding("g,home", "edge(-1)", "first", show=False, id="list.first"),
        Binding("G,end", "edge(1)", "last", show=False, id="list.last"),
        Binding("pagedown,ctrl+d", "leaf(1)", "page down", show=False, id="list.page-down"),
        Binding("pageup,ctrl+u", "leaf(-1)", "page up", show=False, id="list.page-up"),
        Binding("enter", "choose", "open", show=False, id="list.open"),
    ]

    @dataclass
    class Moved(Message):
        """The user moved the cursor to an item."""

        view: Widget
        key: str

        @property
        def control(self) -> Widget:
            """The list, so that `@on` can select it."""
            return self.view

    @dataclass
    class Chosen(Message):
        """The user opened an item (enter or a second click)."""

        view: Widget
        key: str

        @property
        def control(self) -> Widget:
            """The list, so that `@on` can select it."""
            return self.view

    def __init__(self, *, glyphs: Glyphs = UNICODE, id: str | None = None) -> None:
        super().__init__(glyphs=glyphs, id=id)
        self.items: tuple[Item, ...] = ()
        self.empty = ""
        """What is said when there are no items."""
        self.cursor = -1
        self._rows: list[tuple[int, int]] = []
        self._first_row: list[int] = []

    # What a subclass says

    def item_key(self, item: Item) -> str | None:
        """Return the name of an item that can be chosen, or None."""
        raise NotImplementedError

    def item_height(self, item: Item) -> int:
        """Return how many lines the item takes."""
        return 1

    def draw_item(self, item: Item, line: int, width: int, *, selected: bool) -> Strip:
        """Draw one line of an item."""
        raise NotImplementedError

    # State

    @property
    def current(self) -> Item | None:
        """The item under the cursor."""
        return self.items[self.cursor] if 0 <= self.cursor < len(self.items) else None

    @property
    def current_key(self) -> str | None:
        """The key of the item under the cursor."""
        item = self.current
        return None if item is None else self.item_key(item)

    def set_items(self, items: Sequence[Item]) -> None:
        """Show other items; the cursor stays on the item with the same key where there is one."""
        before, position = self.current_key, self.cursor
        self.items = tuple(items)
        self._rows = [(i, n) for i, item in enumerate(items) for n in range(self.item_height(item))]
        self._first_row = []
        for row, (_, line) in enumerate(self._rows):
            if line == 0:
                self._first_row.append(row)
        self.cursor = self._position_of(before)
        if self.cursor < 0:
            self.cursor = self._nearest(max(0, min(position, len(self.items) - 1)))
        self.set_row_count(len(self._rows))
        self.forget_items()

    def forget_items(self) -> None:
        """Draw other items than before."""
        self.redraw()

    def _position_of(self, key: str | None) -> int:
        if key is None:
            return -1
        return next((i for i, item in enumerate(self.items) if self.item_key(item) == key), -1)

    def _nearest(self, start: int) -> int:
        start = max(0, start)
        order = [*range(start, len(self.items)), *range(start - 1, -1, -1)]
        return next((i for i in order if self.item_key(self.items[i]) is not None), -1)

    def select(self, key: str) -> bool:
        """Put the cursor on an item without telling anybody; False when it is not there."""
        position = self._position_of(key)
        if position < 0:
            return False
        self._go(position, tell=False)
        return True

    def _go(self, position: int, *, tell: bool = True) -> None:
        if position < 0 or position == self.cursor:
            return
        before, self.cursor = self.cursor, position
        self._refresh_item(before)
        self._refresh_item(position)
        self._show_cursor()
        key = self.current_key
        if tell and key is not None:
            self.post_message(self.Moved(self, key))

    def _refresh_item(self, position: int) -> None:
        if 0 <= position < len(self.items):
            self.refresh_lines(self._first_row[position], self.item_height(self.items[position]))

    def _show_cursor(self) -> None:
        if self.cursor < 0 or not self.size.height:
            return
        top = self._first_row[self.cursor]
        bottom = top + self.item_height(self.items[self.cursor]) - 1
        if top < self.scroll_offset.y:
            self.scroll_to(y=0 if self.cursor == self._nearest(0) else top, animate=False)
        elif bottom >= self.scroll_offset.y + self.size.height:
            self.scroll_to(y=bottom - self.size.height + 1, animate=False)

    # Drawing

    def strip_of(self, row: int, width: int) -> Strip:
        """Say what an empty list means."""
        if row == 0 and not self.items and self.empty:
            paint, on = self.paint, self.blank_style_token()
            pieces = [(f"  {self.empty}", paint("muted", on))]
            return self.filtered(two_sided(pieces, [], width, paint(on=on), self.glyphs.ellipsis))
        return super().strip_of(row, width)

    def row_key(self, row: int) -> object:
        """Tell rows under the cursor apart, and lists with the focus."""
        return (row, self._rows[row][0] == self.cursor, self.has_focus)

    def draw_row(self, row: int, width: int) -> Strip:
        """Draw one line of the item that the row belongs to."""
        index, line = self._rows[row]
        return self.draw_item(self.items[index], line, width, selected=index == self.cursor)

    def on_focus(self) -> None:
        """Show where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that the keys go elsewhere."""
        self.refresh()

    # What the user does

    def action_move(self, step: int) -> None:
        """Go to the next item that can be chosen."""
        position = self.cursor + step
        while 0 <= position < len(self.items):
            if self.item_key(self.items[position]) is not None:
                self._go(position)
                return
            position += step

    def action_edge(self, side: int) -> None:
        """Go to the first or the last item."""
        self._go(self._nearest(0 if side < 0 else len(self.items) - 1))

    def action_leaf(self, direction: int) -> None:
        """Go a screen further."""
        if self.cursor < 0:
            return
        row = self._first_row[self.cursor] + direction * max(1, self.size.height - 1)
        row = max(0, min(row, len(self._rows) - 1))
        self._go(self._nearest(self._rows[row][0]))

    def action_choose(self) -> None:
        """Open the item under the cursor."""
        key = self.current_key
        if key is not None:
            self.post_message(self.Chosen(self, key))

    def on_click(self, event: events.Click) -> None:
        """Select with one click, open with the second."""
        row = event.y + self.scroll_offset.y
        if not 0 <= row < len(self._rows):
            return
        index = self._rows[row][0]
        if self.item_key(self.items[index]) is None:
            return
        if event.chain > 1:
            self.action_choose()
        else:
            self._go(index)
