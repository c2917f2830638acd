"""The stage: panes side by side and below each other, each in its place of the grid.

Panes are pooled: a pane that is no longer needed waits without a terminal for the next session.
Opening a terminal's view takes some milliseconds, so a turn of the program opens one; the pane that
the user is about comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import on
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region
from textual.layout import Layout, WidgetPlacement
from textual.message import Message
from textual.widget import Widget

from app.ui.grid import Places, Shape, boxes, shape_of
from app.ui.pane_slot import PaneSlot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual.app import ComposeResult
    from textual.geometry import Size
    from textual.layout import ArrangeResult

    from app.protocol import SessionInfo
    from app.ui.pane_news import PaneNews
    from themes.glyphs import Glyphs
    from widgets.session_rail import SessionRow

AT_ONCE = 2
"""Panes that appear in one turn: each has a page to draw."""

AT_FIRST = 2
"""Panes that are made with the screen; more are made one by one when they are needed."""


@dataclass(frozen=True, slots=True)
class PaneValue:
    """What a pane shows."""

    info: SessionInfo
    row: SessionRow
    news: PaneNews
    current: bool = False


class Tiles(Layout):
    """Places panes where the stage says."""

    name = "tiles"

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> ArrangeResult:
        """Return where each pane stands."""
        if not isinstance(parent, PaneStage):
            return []
        found = parent.boxes_in(size)
        return [
            WidgetPlacement(Region(*found[child.session_id]), NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if isinstance(child, PaneSlot) and child.session_id in found
        ]


class PaneStage(Widget):
    """Shows sessions in a grid, or one of them alone."""

    DEFAULT_CSS = """
    PaneStage { width: 1fr; height: 1fr; }
    """

    class Unfinished(Message):
        """Not everything was shown in one turn: `show` is to be called again."""

    def __init__(
        self, view_of: Callable[[str], Widget], glyphs: Glyphs, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self._view_of = view_of
        self.glyphs = glyphs
        self.places: Places = ()
        """What is to be seen: the grid, or one session alone."""
        self._shape = Shape(1, 1)
        self._growing = False
        self._again = False
        self._tiles = Tiles()

    @property
    def layout(self) -> Layout:
        """How the panes are placed; Textual's own name for it, which takes none of ours in CSS."""
        return self._tiles

    def compose(self) -> ComposeResult:
        """Make the first panes."""
        for _ in range(AT_FIRST):
            yield self._new_slot()

    def _new_slot(self) -> PaneSlot:
        slot = PaneSlot(self._view_of, self.glyphs)
        slot.display = False
        return slot

    @property
    def slots(self) -> list[PaneSlot]:
        """The panes that have a session, in the order of their places, hidden ones last."""
        held = [slot for slot in self.query_children(PaneSlot) if slot.session_id]
        last = len(self.places)
        at = {session: place for place, session in enumerate(self.places)}
        return sorted(held, key=lambda slot: at.get(slot.session_id, last))

    def boxes_in(self, size: Size) -> dict[str, tuple[int, int, int, int]]:
        """Return each session's rectangle on a stage of some size."""
        fitting = shape_of(len(self.places), size.width, size.height) if self.places else None
        if fitting is not None:  # else it is being made smaller: the shape stays as it was
            self._shape = fitting
        if self._shape.rows * self._shape.columns < len(self.places):
            self._shape = Shape(len(self.places), 1)
        return dict(boxes(self.places, self._shape, size.width, size.height))

    def show(self, values: Sequence[PaneValue], places: Places, alone: str = "") -> None:
        """Show the sessions of the grid's places, or one `alone` with the others kept ready."""
        shown: Places = (alone,) if alone else places
        moved = shown != self.places
        self.places = shown
        wanted = {value.info.id: value for value in values}
        slots = [slot for slot in self.query_children(PaneSlot) if slot.is_ready]
        free = [slot for slot in slots if slot.session_id not in wanted]
        held = {slot.session_id: slot for slot in slots if slot.session_id in wanted}
        visible = [wanted[session] for session in shown if session in wanted]
        self._hide(slot for session, slot in held.items() if session not in shown)
        self._fill(sorted(visible, key=lambda value: not value.current), held, free)
        for slot in free:
            slot.clear()
        if moved:
            self.refresh(layout=True)

    def rest(self) -> None:
        """Let terminals draw nothing: something covers the stage."""
        for slot in self.slots:
            if slot.feed is not None:
                slot.feed.set_rate("hidden")

    def wake(self) -> None:
        """Let terminals draw that are to be seen."""
        for slot in self.slots:
            if slot.feed is not None and slot.display:
                slot.feed.set_rate("focused" if slot.has_keys else "visible")

    def _hide(self, slots: Iterable[PaneSlot]) -> None:
        for slot in slots:
            if slot.has_keys:
                self.screen.set_focus(None)
            slot.display = False

    def _fill(
        self, values: Sequence[PaneValue], held: dict[str, PaneSlot], free: list[PaneSlot]
    ) -> None:
        """Give each session a pane; what would take too long for one turn is left for the next."""
        opened, shown = self._again, AT_ONCE if self._again else 0  # of this turn, if more wait
        unfinished = False
        for value in values:
            slot = held.get(value.info.id) or (free.pop(0) if free else None)
            if slot is None:
                self._grow()
                continue
            opens, appears = slot.needs_view(value.info), not slot.display
            if not value.current and ((opens and opened) or (appears and shown >= AT_ONCE)):
                unfinished = True
                if value.info.id not in held:
                    free.insert(0, slot)
                continue
            opened, shown = opened or opens, shown + appears
            slot.show(value.info, value.row, value.news, current=value.current)
            slot.display = True
        if unfinished and not self._again:
            self._again = True
            self.call_after_refresh(self._go_on)

    def _go_on(self) -> None:
        self._again = False
        self.post_message(self.Unfinished())

    def _grow(self) -> None:
        """Make one more pane."""
        if not self._growing:
            self._growing = True
            self.mount(self._new_slot())

    @on(PaneSlot.Ready)
    def use_new_slot(self, message: PaneSlot.Ready) -> None:
        """Show the session that waits for a pane."""
        message.stop()
        if self._growing:
            self._growing = False
            self.call_after_refresh(self._go_on)
