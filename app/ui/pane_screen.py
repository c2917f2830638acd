"""What a pane shows: strips, cursor, modes, title, state, and who listens to their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ui.pane_reading import read_cursor, read_marks, read_modes, read_scroll, read_view
from vm.terminal import wire
from vm.terminal.wire import Up, WireError
from widgets.terminal_feed import Modes, Scroll, View

if TYPE_CHECKING:
    from textual.strip import Strip

    from app.ui.pane_strips import StripMaker
    from vm.terminal import screen as vt
    from vm.terminal.wire import Message
    from widgets.terminal_feed import Cursor, FeedListener, FeedState, Mark

MAX_TITLE = 256
"""Characters of a title that are kept."""

MAX_NOTE = 1024


class PaneScreen:
    """The reading half of `widgets.terminal_feed.PaneFeed`."""

    def __init__(self, size: tuple[int, int]) -> None:
        self._size = size
        self._strips: dict[int, Strip] = {}
        self._cursor: Cursor | None = None
        self._modes = Modes()
        self._scroll = Scroll()
        self._view = View()
        self._marks: dict[int, tuple[vt.Mark, ...]] = {}
        self._links: dict[int, tuple[vt.Link, ...]] = {}
        self._mirrored = False
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

    @property
    def view(self) -> View:
        """Copy mode, selection and search as of the last frame."""
        return self._view

    @property
    def mirrored(self) -> bool:
        """Whether another client holds the terminal."""
        return self._mirrored

    def strip(self, y: int) -> Strip | None:
        """Row `y` of the visible page, exactly `columns` cells wide."""
        return self._strips.get(y)

    def marks(self, y: int) -> tuple[Mark, ...]:
        """Return what is marked in row `y`, in the order in which it is painted."""
        marks = self._marks.get(y)
        return read_marks(marks) if marks else ()

    def link_at(self, x: int, y: int) -> str | None:
        """Return the http(s) link under a cell."""
        links = self._links.get(y, ())
        return next((link.uri for link in links if link.start <= x < link.end), None)

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
            self._resize(frame.columns, frame.height)
        rows = set(frame.rows)
        for y, row in frame.rows.items():
            self._strips[y] = maker.strip(row, frame.columns)
            if row.links:
                self._links[y] = row.links
            else:
                self._links.pop(y, None)
        rows |= self._mark(frame.marks) | self._move_cursor(frame.cursor)
        rest = self._take_rest(frame)
        if self.listener is None or not (rows or resized or rest):
            return False
        if resized:
            self.listener.feed_resized()
        else:
            self.listener.feed_changed(rows)
        return bool(rows or resized)

    def _resize(self, columns: int, rows: int) -> None:
        """Take another size; a frame brings every row that has another width then."""
        same_width = columns == self._size[0]
        self._size = columns, rows
        kept = range(rows if same_width else 0)
        self._strips = {y: strip for y, strip in self._strips.items() if y in kept}
        self._links = {y: links for y, links in self._links.items() if y in kept}

    def _mark(self, marks: dict[int, tuple[vt.Mark, ...]]) -> set[int]:
        """Take the marks of the page and return the rows that look different for them."""
        if marks == self._marks:
            return set()
        rows = {y for y in marks.keys() | self._marks.keys() if marks.get(y) != self._marks.get(y)}
        self._marks = marks
        return rows

    def _move_cursor(self, told: vt.Cursor | None) -> set[int]:
        """Take the cursor and return the rows that look different for it."""
        cursor = read_cursor(told)
        if cursor == self._cursor:
            return set()
        rows = {it.y for it in (cursor, self._cursor) if it is not None}
        self._cursor = cursor
        return rows

    def _take_rest(self, frame: vt.Frame) -> bool:
        rest = read_scroll(frame.scrollback), read_modes(frame.modes), read_view(frame.view)
        changed = rest != (self._scroll, self._modes, self._view)
        self._scroll, self._modes, self._view = rest
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

    def _hold(self, mirrored: bool) -> None:
        """Take whether another client holds the terminal."""
        if mirrored != self._mirrored:
            self._mirrored = mirrored
            if self.listener is not None:
                self.listener.feed_mirrored(mirrored)

    def _refuse(self, message: str) -> None:
        """Say in one sentence that input was dropped."""
        if self.listener is not None:
            self.listener.feed_refused(message)

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
