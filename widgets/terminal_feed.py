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


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the guest's cursor is, in cells of the visible page."""

    x: int
    y: int
    shape: CursorShape = "block"
    wide: bool = False
    """True when it stands on a character of two cells."""


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
        """Rows `rows`, the cursor, the modes or the scroll position changed; paint, then ack."""

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

    def strip(self, y: int) -> Strip | None:
        """Row `y` of the visible page, exactly `columns` cells wide; None where there is none."""
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
        """Type a key, named as Textual names it; it is encoded by the guest's own modes."""
        ...

    def send_text(self, text: str) -> None:
        """Type text as it is, without paste marks."""
        ...

    def send_paste(self, text: str) -> None:
        """Paste text: control characters are taken out, paste marks set if the guest asked."""
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

    def scroll_to_end(self) -> None:
        """Follow the newest output again."""
        ...
