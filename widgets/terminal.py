"""A live terminal as a widget: it draws what its feed holds and passes every key to the guest.

The widget draws no border and has no padding: the container marks the focus (UI rule 2). While it
is focused every key goes to the guest, Tab, Escape, ctrl+c, ctrl+q and ctrl+p included; App and
Screen bindings do not fire, priority ones neither. The exceptions: the prefix key, copy mode, and
`passthrough` keys (alt+1 … alt+9, f12), which bubble to the app's bindings as if no terminal were
there. (Escape on a maximised widget is Textual's own: an app with terminals sets
`ESCAPE_TO_MINIMIZE = False`.)

The prefix: pressing it posts `PrefixPressed` and sets the class `-prefix`. The key after it posts
`PrefixCommand` instead of going to the guest, except for those in `copy_keys.PREFIX_KEYS`, which
the view acts on itself; the prefix twice goes to the guest once; Escape (or losing the focus) posts
`PrefixCancelled`.

Keys are in `terminal_typing`, copy mode and search in `terminal_copying`, the mouse in
`terminal_mouse`, drawing in `terminal_painter`, what the feed is told of the view in
`terminal_sight`. A terminal that another client holds (`feed.mirrored`) is only watched: nothing is
sent, but copy mode and selection work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.geometry import Offset, Region

from widgets.terminal_blink import Blink
from widgets.terminal_copying import CopyMode
from widgets.terminal_feed import Scroll
from widgets.terminal_mouse import TerminalMouse
from widgets.terminal_painter import TerminalPainter
from widgets.terminal_relay import TerminalRelay
from widgets.terminal_sight import Sight
from widgets.terminal_typing import TerminalTyping

if TYPE_CHECKING:
    from collections.abc import Collection

    from textual import events
    from textual.app import App
    from textual.screen import Screen
    from textual.signal import Signal
    from textual.strip import Strip
    from textual.theme import Theme

    from widgets.terminal_feed import Cursor, FeedState, PaneFeed

DEFAULT_PREFIX = "ctrl+g"
DEFAULT_PASSTHROUGH = frozenset({*(f"alt+{digit}" for digit in range(1, 10)), "f12"})

WHOLE = 0.7
"""From this share of changed rows on, one region is cheaper to paint than many."""


class TerminalView(TerminalRelay, can_focus=True):
    """One terminal. Mount it anywhere; give it a feed at once or later through `attach`."""

    DEFAULT_CSS: ClassVar[str] = "TerminalView { width: 1fr; height: 1fr; }"
    ALLOW_SELECT: ClassVar[bool] = False

    def __init__(
        self,
        feed: PaneFeed | None = None,
        *,
        prefix: str = DEFAULT_PREFIX,
        passthrough: frozenset[str] = DEFAULT_PASSTHROUGH,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._feed: PaneFeed | None = None
        self._scroll = Scroll()
        self._cursor: Cursor | None = None
        self._painter = TerminalPainter(self)
        self._mouse = TerminalMouse(self)
        self._typing = TerminalTyping(self, prefix, passthrough)
        self._sight = Sight(self)
        self._blink = Blink(self, self._light_cursor)
        self.copying_mode = CopyMode(self)
        """Copy mode and search."""
        if feed is not None:
            self.attach(feed)

    @property
    def host(self) -> App[object]:
        """The application; Textual leaves the type of its result unknown."""
        return cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]

    @property
    def feed(self) -> PaneFeed | None:
        """The feed that is shown."""
        return self._feed

    @property
    def copying(self) -> bool:
        """True in copy mode: the page stands still, and keys do not go to the guest."""
        return self.copying_mode.active

    @property
    def has_keys(self) -> bool:
        """True while what is typed is sent to this terminal's program, copy mode apart."""
        return self.has_focus and self._feed is not None and not self._feed.mirrored

    @property
    def top(self) -> int:
        """Rows of the terminal that are above the view's first one (0 where all of it fits)."""
        return self._painter.top

    def take_over(self) -> None:
        """Ask for a terminal that another client holds; `MirrorChanged` says when it is ours."""
        if self._feed is not None:
            self._feed.take_over()

    # -- the feed ------------------------------------------------------------------------------

    def attach(self, feed: PaneFeed | None) -> None:
        """Show another feed (None: a blank page); the old one is told that it is hidden."""
        self._detach()
        self._feed = feed
        if feed is not None:
            feed.listen(self)
            self._sight.begin()
            self.copying_mode.follow(feed.view)
            self.set_class(feed.mirrored, "-mirrored")
        self._painter.lay_out()
        self.repaint()

    def _detach(self) -> None:
        self._mouse.forget()
        self.copying_mode.forget()
        if self._feed is not None:
            self._feed.leave(self)
            self._feed = None

    def feed_changed(self, rows: Collection[int]) -> None:
        """Paint rows that changed; a change that is out of sight is painted already."""
        if self._feed is not None:
            self.copying_mode.follow(self._feed.view)
        moved = self._painter.lay_out()
        self._follow_cursor()
        if moved:
            self.repaint()
            return
        height, top = self.size.height, self.top
        seen = {y - top for y in rows if 0 <= y - top < height}
        self._paint_rows(seen | self._painter.lay_own_lines())

    def _paint_rows(self, seen: set[int]) -> None:
        width, height = self.size
        if not seen or not self.is_attached:
            self._painted()
        elif len(seen) > height * WHOLE:
            self.refresh(Region(0, 0, width, height))
        else:
            self.refresh(*(Region(0, y, width, 1) for y in sorted(seen)))

    def repaint(self) -> None:
        """Paint everything."""
        self._painter.lay_own_lines()
        self.refresh()

    def repaint_own_lines(self) -> None:
        """Paint the mode's mark and the search line, where they changed."""
        if rows := self._painter.lay_own_lines():
            self._paint_rows(rows)

    def _follow_cursor(self) -> None:
        self._place_cursor()
        self._tell_scroll()
        cursor = self._guest_cursor()
        if cursor != self._cursor:
            self._cursor = cursor
            self.touch_blink()

    def _tell_scroll(self) -> None:
        scroll = self._feed.scroll if self._feed is not None else Scroll()
        if scroll != self._scroll:
            self._scroll = scroll
            self.post_message(self.Scrolled(self))

    def feed_resized(self) -> None:
        """Paint everything."""
        self._painter.lay_out()
        self._follow_cursor()
        self.repaint()

    def feed_state(self, state: FeedState, status: int | None, message: str) -> None:
        """Pass a change of the state on; with its engine went what the user did with the page."""
        if state in ("starting", "restarting", "broken"):
            self._mouse.forget()
            self.copying_mode.forget()
        self.set_class(state not in ("live", "starting"), "-stale")
        self.post_message(self.StateChanged(self, state, status, message))

    def feed_mirrored(self, mirrored: bool) -> None:
        """Pass on that another client took the terminal, or that this one holds it."""
        self.set_class(mirrored, "-mirrored")
        if not mirrored:
            self._sight.tell_focus()
        self.touch_blink()
        self.refresh()
        self.post_message(self.MirrorChanged(self, mirrored))

    # -- drawing -------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Follow theme changes, and which screen is on top."""
        self.host.theme_changed_signal.subscribe(self, self._recolour)
        screens = cast("Signal[Screen[object]]", self.host.screen_change_signal)  # pyright: ignore[reportUnknownMemberType]
        screens.subscribe(self, self._screen_changed)

    def _recolour(self, _theme: Theme) -> None:
        self._painter.recolour()
        self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the strips of a region.

        Overrides the whole of Textual's styling: colours are resolved, there is no border to draw.
        """
        width = self.size.width
        lines = [self._painter.line(y, width) for y in crop.line_range]
        if crop.column_span != (0, width):
            lines = [line.crop(*crop.column_span) for line in lines]
        self._painted()
        return lines

    def _painted(self) -> None:
        if self._feed is not None:
            self._feed.painted()

    def _guest_cursor(self) -> Cursor | None:
        return None if self._feed is None else self._feed.cursor

    def _place_cursor(self) -> None:
        """Put the real cursor where input methods and screen readers look for it."""
        cursor = self._guest_cursor()
        if cursor is not None and self.has_focus:
            place = Offset(cursor.x, max(0, cursor.y - self.top))
            self.host.cursor_position = self.region.offset + place

    def touch_blink(self) -> None:
        """Let the cursor be lit, and blink from now on if it does."""
        cursor = self._guest_cursor()
        if self.is_attached:
            self._blink.touch(blinks=cursor is not None and self._painter.blinks(cursor))

    def _light_cursor(self, lit: bool) -> None:
        self._painter.cursor_lit = lit
        self._paint_cursor_row()

    def _paint_cursor_row(self) -> None:
        cursor = self._guest_cursor()
        if cursor is not None and self.is_attached:
            self.refresh(Region(0, cursor.y - self.top, self.size.width, 1))

    # -- size and sight ------------------------------------------------------------------------

    def on_resize(self) -> None:
        """Tell the guest its size once it rests; the first one at once."""
        self._painter.lay_out()
        self._painter.lay_own_lines()
        self._sight.resized()

    def on_show(self) -> None:
        """Draw again."""
        self._sight.show(True)

    def on_hide(self) -> None:
        """Draw no more."""
        self._sight.show(False)

    def _screen_changed(self, _screen: Screen[object]) -> None:
        self._sight.look()

    def on_unmount(self) -> None:
        """Leave the feed to the next view."""
        self._blink.stop()
        self._detach()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Take the pace that the focus means; a prefix without its key is given up."""
        super().watch_has_focus(_has_focus)
        self._sight.tell_rate()
        self._sight.tell_focus()
        self.touch_blink()
        self._paint_cursor_row()
        if not _has_focus:
            self._typing.disarm()

    # -- keys ----------------------------------------------------------------------------------

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Keep bindings of App and Screen, priority ones too, from taking the guest's keys."""
        return key not in self._typing.passthrough

    def is_guests(self, key: str) -> bool:
        """Tell whether a key goes to the guest and nowhere else."""
        return self._typing.is_guests(key)

    def on_key(self, event: events.Key) -> None:
        """Send a key to the guest, unless it is the prefix, follows it, or passes through."""
        self._typing.press(event)

    def on_paste(self, event: events.Paste) -> None:
        """Paste into the guest, or into the search line."""
        event.prevent_default().stop()
        self.paste(event.text)

    def paste(self, text: str) -> None:
        """Paste text into the search line if there is one, else into the guest."""
        self._typing.paste(text)

    def paste_register(self) -> None:
        """Paste what was copied last in Cloche."""
        if text := self.host.clipboard:
            self.paste(text)
        else:  # the app says that there is nothing, and how one copies
            self.post_message(self.PrefixCommand(self, "right_square_bracket", "]"))
