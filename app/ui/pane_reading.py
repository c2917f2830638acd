"""What the engine says, in the words of a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal import screen as vt
from widgets.terminal_feed import Cursor, Mark, Modes, Scroll, View

if TYPE_CHECKING:
    from widgets.terminal_feed import CursorShape, MarkKind, MouseTracking

SHAPES: dict[vt.CursorShape, CursorShape] = {
    vt.CursorShape.BAR: "bar",
    vt.CursorShape.BLOCK: "block",
    vt.CursorShape.UNDERLINE: "underline",
    vt.CursorShape.HOLLOW: "hollow",
}
MARKS: dict[vt.MarkKind, MarkKind] = {
    vt.MarkKind.SELECTION: "selection",
    vt.MarkKind.MATCH: "match",
    vt.MarkKind.CURRENT: "current",
}
TRACKING: tuple[tuple[vt.Mode, MouseTracking], ...] = (
    (vt.Mode.MOUSE_ANY, "any"),
    (vt.Mode.MOUSE_DRAG, "drag"),
    (vt.Mode.MOUSE_CLICK, "click"),
)


def read_cursor(told: vt.Cursor | None) -> Cursor | None:
    """Return the engine's cursor as a view sees it."""
    if told is None:
        return None
    return Cursor(told.x, told.y, SHAPES[told.shape], told.wide, told.blinking)


def read_modes(modes: vt.Mode) -> Modes:
    """Return the engine's modes as a view sees them."""
    return Modes(
        mouse=_tracking(modes),
        alternate=bool(modes & vt.Mode.ALTERNATE),
        bracketed_paste=bool(modes & vt.Mode.BRACKETED_PASTE),
        focus_events=bool(modes & vt.Mode.FOCUS_EVENTS),
        alternate_scroll=bool(modes & vt.Mode.ALTERNATE_SCROLL),
    )


def _tracking(modes: vt.Mode) -> MouseTracking:
    for mode, name in TRACKING:
        if modes & mode:
            return name
    return "none"


def read_scroll(scrollback: vt.Scrollback) -> Scroll:
    """Return where the page lies."""
    return Scroll(scrollback.offset, scrollback.total, scrollback.at_end)


def read_view(view: vt.ViewState) -> View:
    """Return what the user does with the page."""
    return View(view.copying, view.selected, view.matches, view.match, view.searching)


def read_marks(marks: tuple[vt.Mark, ...]) -> tuple[Mark, ...]:
    """Return a row's marks, in the order in which they are painted."""
    ordered = sorted(marks, key=lambda mark: mark.kind)
    return tuple(Mark(mark.start, mark.end, MARKS[mark.kind]) for mark in ordered)
