"""What a terminal view needs to know of the terminal behind it, and nothing more.

`PaneFeed` is the joint between `widgets.terminal` and whatever runs the terminal. The feed keeps
the screen (one `Strip` a row), so a view can be unmounted and another one attached without a round
trip. No method blocks; all of them are called on the app's event loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from textual.strip import Strip

CursorShape = Literal["block", "bar", "underline", "hollow"]
"""How the guest asked for its cursor to look (DECSCUSR)."""

FeedRate = Literal["focused", "visible", "hidden"]
"""How often the feed may change the screen: up to 60, up to 12 times a second, not at all."""

FeedState = Literal["starting", "live", "restarting", "lost", "ended", "broken"]
"""State of the terminal behind a feed.

`starting`: nothing shown yet · `live` · `restarting`: the engine died and is being replayed ·
`lost`: the keeper's socket went away, retried by itself · `ended`: the program ended ·
`broken`: this terminal's bytes end the engine again and again, or no sandbox could be made.
"""

MouseAction = Literal["press", "release", "move", "scroll_up", "scroll_down"]
"""What the mouse did."""

MouseTracking = Literal["none", "click", "drag", "any"]
"""Which mouse events the guest asked for."""

Unit = Literal["cell", "word", "line"]
"""What a selection by mouse grows by: one, two and three clicks."""

SelectionShape = Literal["none", "cells", "lines", "block", "swap"]
"""What `copy_mark` makes of the selection; `swap` moves the copy cursor to its other end."""

MarkKind = Literal["selection", "match", "current"]
"""Why cells are marked: selected, found by the search, the match that the search stands on."""

Motion = Literal[
    "left",
    "right",
    "up",
    "down",
    "line_start",
    "line_text",
    "line_end",
    "word_next",
    "word_back",
    "word_end",
    "page_up",
    "page_down",
    "half_up",
    "half_down",
    "top",
    "bottom",
    "screen_top",
    "screen_middle",
    "screen_bottom",
    "paragraph_back",
    "paragraph_next",
    "prompt_back",
    "prompt_next",
    "bracket",
]
"""Where the copy cursor goes; `vm.terminal.screen.Motion` in lower case."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the guest's cursor is, in cells of the visible page."""

    x: int
    y: int
    shape: CursorShape = "block"
    wide: bool = False
    """True when it stands on a character of two cells."""
    blinking: bool = False


@dataclass(frozen=True, slots=True)
class Modes:
    """What the guest switched on, as far as a view cares."""

    mouse: MouseTracking = "none"
    alternate: bool = False
    """The alternate screen is shown (vim, less): it has no scrollback."""
    bracketed_paste: bool = False
    focus_events: bool = False
    alternate_scroll: bool = False
    """The wheel means arrow keys on the alternate screen (mode 1007)."""


@dataclass(frozen=True, slots=True)
class Scroll:
    """Where the visible page lies in the scrollback, all in rows."""

    offset: int = 0
    """Rows above the first visible one."""
    total: int = 0
    at_end: bool = True
    """The page follows the newest output."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Cells `start` up to `end` (not included) of one row, and why they are marked."""

    start: int
    end: int
    kind: MarkKind


@dataclass(frozen=True, slots=True)
class View:
    """What the user does with the page: copy mode, a selection, a search."""

    copying: bool = False
    """Copy mode: the page is frozen, the cursor is the copy cursor, and the guest goes on."""
    selected: bool = False
    """There is a selection; `selected_text` returns it."""
    matches: int = 0
    """Matches of the search in the whole scrollback (the engine may stop counting)."""
    match: int = 0
    """Which of them the search stands on, from 1; 0 for none."""
    searching: bool = False


@dataclass(frozen=True, slots=True)
class MouseInput:
    """One mouse event in cells of the view; `button` is 1 left, 2 middle, 3 right, 0 none."""

    action: MouseAction
    x: int
    y: int
    button: int = 0
    shift: bool = False
    alt: bool = False
    ctrl: bool = False


class FeedListener(Protocol):
    """Who shows a feed. All texts are printable, bounded and never markup."""

    def feed_changed(self, rows: Collection[int]) -> None:
        """Rows (their text or their marks), cursor, modes, scroll or view changed; paint, ack."""

    def feed_resized(self) -> None:
        """Paint everything: the terminal has another size now."""

    def feed_state(self, state: FeedState, status: int | None, message: str) -> None:
        """Be told the new state, the exit status when `ended`, and one sentence."""

    def feed_title(self, title: str) -> None:
        """Be told the title that the guest set."""

    def feed_bell(self) -> None:
        """Be told of the bell (at most ten times a second)."""

    def feed_clipboard(self, text: str) -> None:
        """Be told what the guest wants on the clipboard; only the user may put it there."""

    def feed_notified(self, title: str, body: str) -> None:
        """Be told of a desktop notification (OSC 9, OSC 777)."""

    def feed_progress(self, progress: tuple[int, int] | None) -> None:
        """Be told the guest's progress (OSC 9;4), None when it ended; see `PaneFeed.progress`."""

    def feed_mirrored(self, mirrored: bool) -> None:
        """Be told whether another client holds the terminal; see `PaneFeed.mirrored`."""

    def feed_refused(self, message: str) -> None:
        """Be told in one sentence that input could not be sent and was dropped; show it."""


class PaneFeed(Protocol):
    """One terminal: its screen, and the user's input to it."""

    @property
    def columns(self) -> int:
        """Width of the terminal in cells (at least 20 once it is live)."""
        ...

    @property
    def rows(self) -> int:
        """Height of the terminal in cells (at least 5 once it is live)."""
        ...

    @property
    def cursor(self) -> Cursor | None:
        """The cursor, or None when the guest hides it or it is scrolled out of the page."""
        ...

    @property
    def modes(self) -> Modes:
        """The guest's modes as of the last frame."""
        ...

    @property
    def scroll(self) -> Scroll:
        """The scroll position as of the last frame."""
        ...

    @property
    def state(self) -> FeedState:
        """The state of the terminal."""
        ...

    @property
    def title(self) -> str:
        """The title that the guest set last, else empty."""
        ...

    @property
    def view(self) -> View:
        """Copy mode, selection and search as of the last frame."""
        ...

    @property
    def progress(self) -> tuple[int, int] | None:
        """The guest's progress: state 1 … 4 (runs, failed, unknown, paused), per cent or -1."""
        ...

    @property
    def mirrored(self) -> bool:
        """True while another client holds the terminal: this one watches, its input is dropped."""
        ...

    def strip(self, y: int) -> Strip | None:
        """Row `y` of the visible page, exactly `columns` cells wide; None where there is none.

        http(s) links are in it as Rich styles (`Style(link=…)`); marks are not.
        """
        ...

    def marks(self, y: int) -> tuple[Mark, ...]:
        """Return what is marked in row `y`; where marks overlap, the later one is painted."""
        ...

    def link_at(self, x: int, y: int) -> str | None:
        """Return the http(s) link under a cell: printable ASCII, at most 2048 characters."""
        ...

    def listen(self, listener: FeedListener) -> None:
        """Tell `listener` from now on, and nobody else."""
        ...

    def leave(self, listener: FeedListener) -> None:
        """Tell `listener` no more and draw for nobody; nothing if another one listens by now."""
        ...

    def painted(self) -> None:
        """Say that the last change is on the screen (or that nothing had to be drawn)."""
        ...

    def set_rate(self, rate: FeedRate) -> None:
        """Say how often the screen may change."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Ask for another size; it is clamped to 20x5 … 1000x500."""
        ...

    def send_key(self, key: str, character: str | None) -> None:
        """Type a key, named as Textual names it; it is encoded by the guest's own modes.

        Like all input it waits while the terminal is away, and is refused when it has ended.
        """
        ...

    def send_paste(self, text: str) -> None:
        """Paste text: control characters are taken out, paste marks set if the guest asked.

        It goes out as fast as the guest reads, keys typed later come after it, and ctrl+c typed
        meanwhile gives up the rest.
        """
        ...

    def send_mouse(self, mouse: MouseInput) -> None:
        """Pass a mouse event on; the guest gets it only if it tracks the mouse."""
        ...

    def send_focus(self, focused: bool) -> None:
        """Say that the view got or lost the focus, for guests that asked (mode 1004)."""
        ...

    def scroll_by(self, lines: int) -> None:
        """Move the visible page, negative up; on the alternate screen see `Modes`."""
        ...

    def select(self, x: int, y: int, unit: Unit, *, block: bool = False) -> None:
        """Begin a selection at a cell, the word or the line there; `block`: a rectangle."""
        ...

    def select_to(self, x: int, y: int) -> None:
        """Extend the selection up to a cell; at `y` -1 or `rows` the page moves a line first."""
        ...

    def select_none(self) -> None:
        """Take the selection away."""
        ...

    def copy_mode(self, on: bool) -> None:
        """Freeze the page under a cursor of the user's own, or let it go on."""
        ...

    def copy_move(self, motion: Motion, count: int | None = None) -> None:
        """Move the copy cursor, `count` times (None: the user gave none); the selection follows."""
        ...

    def copy_mark(self, shape: SelectionShape) -> None:
        """Begin a selection at the copy cursor, change its shape, or swap its ends."""
        ...

    def search(self, text: str, *, backwards: bool = False) -> None:
        """Find text from where the page stands; an empty text ends the search."""
        ...

    def find_next(self, *, backwards: bool = False) -> None:
        """Go to the next match in the direction of the search, or (`backwards`) against it."""
        ...

    async def selected_text(self) -> str:
        """Return the selected text, soft wraps joined; TimeoutError after 2 s without an answer.

        Raises ConnectionError when there is no engine to ask.
        """
        ...

    def take_over(self) -> None:
        """Ask the keeper for the terminal, so that this client's size and input count."""
        ...
