"""What a pane shows: strips, cursor, modes, title, state, and who listens to their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm.terminal import screen as vt
from vm.terminal import wire
from vm.terminal.wire import Up, WireError
from widgets.terminal_feed import Cursor, Modes, Scroll

if TYPE_CHECKING:
    from textual.strip import Strip

    from app.ui.pane_strips import StripMaker
    from vm.terminal.wire import Message
    from widgets.terminal_feed import CursorShape, FeedListener, FeedState, MouseTracking

MAX_TITLE = 256
"""Characters of a title that are kept."""

MAX_NOTE = 1024
SHAPES: dict[vt.CursorShape, CursorShape] = {
    vt.CursorShape.BAR: "bar",
    vt.CursorShape.BLOCK: "block",
    vt.CursorShape.UNDERLINE: "underline",
    vt.CursorShape.HOLLOW: "hollow",
}


class PaneScreen:
    """The reading half of `widgets.terminal_feed.PaneFeed`."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._strips: dict[int, Strip] = {}
        self._cursor: Cursor | None = None
        self._modes = Modes()
        self._scroll = Scroll()
        self._state: FeedState = "starting"
        self._title = ""
        self._folder = ""
        self._progress: tuple[int, int] | None = None
        self.status: int | None = None
        """Exit status of the terminal's program once it ended."""
        self.message = ""
        """One sentence on the state, else empty."""
        self.listener: FeedListener | None = None
        self.understudy: FeedListener | None = None
        """Who is told of titles, bells and the like while no view listens."""

    @property
    def columns(self) -> int:
        """Width of the terminal in cells."""
        return self._size[0]

    @property
    def rows(self) -> int:
        """Height of the terminal in cells."""
        return self._size[1]

    @property
    def cursor(self) -> Cursor | None:
        """The cursor, or None when it is not to be seen."""
        return self._cursor

    @property
    def modes(self) -> Modes:
        """The guest's modes as of the last frame."""
        return self._modes

    @property
    def scroll(self) -> Scroll:
        """The scroll position as of the last frame."""
        return self._scroll

    @property
    def state(self) -> FeedState:
        """The state of the terminal."""
        return self._state

    @property
    def title(self) -> str:
        """The title that the guest set last: one printable line."""
        return self._title

    @property
    def folder(self) -> str:
        """The folder that the guest reported last (OSC 7): one printable line."""
        return self._folder

    @property
    def progress(self) -> tuple[int, int] | None:
        """The progress that the guest reported last: state 0 … 4, per cent or -1."""
        return self._progress

    def strip(self, y: int) -> Strip | None:
        """Row `y` of the visible page, exactly `columns` cells wide."""
        return self._strips.get(y)

    def listen(self, listener: FeedListener) -> None:
        """Tell `listener` from now on, and nobody else."""
        self.listener = listener

    @property
    def _ear(self) -> FeedListener | None:
        return self.listener or self.understudy

    # -- changes -----------------------------------------------------------------------------

    def show(self, frame: vt.Frame, maker: StripMaker) -> bool:
        """Take a frame; True when something that is drawn has changed and a listener was told."""
        resized = (frame.columns, frame.height) != self._size
        if resized:
            self._size = frame.columns, frame.height
            self._strips = {y: s for y, s in self._strips.items() if y < frame.height}
        rows = set(frame.rows)
        for y, row in frame.rows.items():
            self._strips[y] = maker.strip(row, frame.columns)
        rows |= self._move_cursor(frame.cursor)
        scrolled = self._take_rest(frame)
        if self.listener is None or not (rows or resized or scrolled):
            return False
        if resized:
            self.listener.feed_resized()
        else:
            self.listener.feed_changed(rows)
        return bool(rows or resized)

    def _move_cursor(self, told: vt.Cursor | None) -> set[int]:
        """Take the cursor and return the rows that look different for it."""
        cursor = told and Cursor(told.x, told.y, SHAPES[told.shape], told.wide)
        if cursor == self._cursor:
            return set()
        rows = {it.y for it in (cursor, self._cursor) if it is not None}
        self._cursor = cursor
        return rows

    def _take_rest(self, frame: vt.Frame) -> bool:
        scroll = Scroll(frame.scrollback.offset, frame.scrollback.total, frame.scrollback.at_end)
        modes = read_modes(frame.modes)
        changed = (scroll, modes) != (self._scroll, self._modes)
        self._scroll, self._modes = scroll, modes
        return changed

    def happened(self, message: Message) -> None:
        """Take a title, a bell and the like. Raises WireError for anything else."""
        payload = message.payload
        if message.kind == Up.TITLE:
            self._retitle(_line(payload, MAX_TITLE))
        elif message.kind == Up.FOLDER:
            self._folder = _line(payload, MAX_NOTE)
        elif message.kind == Up.PROGRESS:
            state, value = wire.exactly(wire.PROGRESS, payload)
            self._progress = (state, value) if state else None
            if self._ear is not None:
                self._ear.feed_progress(self._progress)
        elif message.kind == Up.BELL:
            if self._ear is not None:
                self._ear.feed_bell()
        elif message.kind == Up.CLIPBOARD:
            (text,) = wire.unpack_texts(payload, 1, wire.MAX_TEXT * 3)
            if self._ear is not None:
                self._ear.feed_clipboard(wire.plain_text(text))
        elif message.kind == Up.NOTIFY:
            texts = wire.unpack_texts(payload, 2, wire.MAX_TEXT)
            title, body = (wire.one_line(text, MAX_NOTE) for text in texts)
            if self._ear is not None:
                self._ear.feed_notified(title, body)
        else:
            raise WireError(f"There is no message {message.kind}.")

    def _retitle(self, title: str) -> None:
        if title != self._title:
            self._title = title
            if self._ear is not None:
                self._ear.feed_title(title)

    def _enter(self, state: FeedState, status: int | None, message: str) -> None:
        """Take a state and tell it once."""
        if (state, status, message) == (self._state, self.status, self.message):
            return
        self._state, self.status, self.message = state, status, message
        if self.listener is not None:
            self.listener.feed_state(state, status, message)


def _line(payload: bytes, limit: int) -> str:
    (text,) = wire.unpack_texts(payload, 1, wire.MAX_TEXT)
    return wire.one_line(text, limit)


def read_modes(modes: vt.Mode) -> Modes:
    """Return the engine's modes as a view sees them."""
    tracking: MouseTracking = "none"
    kinds: tuple[tuple[vt.Mode, MouseTracking], ...] = (
        (vt.Mode.MOUSE_ANY, "any"),
        (vt.Mode.MOUSE_DRAG, "drag"),
        (vt.Mode.MOUSE_CLICK, "click"),
    )
    for mode, name in kinds:
        if modes & mode:
            tracking = name
            break
    return Modes(
        mouse=tracking,
        alternate=bool(modes & vt.Mode.ALTERNATE),
        bracketed_paste=bool(modes & vt.Mode.BRACKETED_PASTE),
        focus_events=bool(modes & vt.Mode.FOCUS_EVENTS),
        alternate_scroll=bool(modes & vt.Mode.ALTERNATE_SCROLL),
    )
