"""A live terminal as a widget: it draws what its feed holds and passes every key to the guest.

The widget draws no border and has no padding: the container marks the focus (UI rule 2). While it
is focused every key goes to the guest, Tab, Escape, ctrl+c, ctrl+q and ctrl+p included; App and
Screen bindings do not fire, priority ones neither. The exceptions: the prefix key, and
`passthrough` keys (alt+1 … alt+9, f12), which bubble to the app's bindings as if no terminal were
there. (Escape on a maximised widget is Textual's own: an app with terminals sets
`ESCAPE_TO_MINIMIZE = False`.)

The prefix: pressing it posts `PrefixPressed` and sets the class `-prefix`. The key after it posts
`PrefixCommand` instead of going to the guest; the prefix twice goes to the guest once; Escape (or
losing the focus) posts `PrefixCancelled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset, Region
from textual.strip import Strip
from textual.widget import Widget

from widgets.terminal_feed import MouseInput, Scroll
from widgets.terminal_keys import LONE_MODIFIERS
from widgets.terminal_messages import TerminalMessages

if TYPE_CHECKING:
    from collections.abc import Collection

    from textual import events
    from textual.app import App
    from textual.timer import Timer

    from widgets.terminal_feed import Cursor, FeedRate, FeedState, MouseAction, PaneFeed

DEFAULT_PREFIX = "ctrl+g"
DEFAULT_PASSTHROUGH = frozenset({*(f"alt+{digit}" for digit in range(1, 10)), "f12"})

RESIZE_S = 0.08
"""Seconds that a size must last before the guest is told: dragging a window reflows once."""

WHOLE = 0.7
"""From this share of changed rows on, one region is cheaper to paint than many."""


class TerminalView(TerminalMessages, Widget, can_focus=True):
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
        self._prefix, self._passthrough = prefix, passthrough
        self._armed = False
        self._shown = True
        self._scroll = Scroll()
        self._resize_timer: Timer | None = None
        self._drag_button = 0
        if feed is not None:
            self.attach(feed)

    # -- the feed ----------------------------------------------------------------------------

    @property
    def feed(self) -> PaneFeed | None:
        """The feed that is shown."""
        return self._feed

    def attach(self, feed: PaneFeed | None) -> None:
        """Show another feed (None: a blank page); the old one is told that it is hidden."""
        self._detach()
        self._feed = feed
        if feed is not None:
            feed.listen(self)
            feed.set_rate(self._rate())
            self._tell_size()
        self.refresh()

    def _detach(self) -> None:
        if self._feed is not None:
            self._feed.leave(self)
            self._feed = None

    def _rate(self) -> FeedRate:
        if not self._shown:
            return "hidden"
        return "focused" if self.has_focus else "visible"

    def _tell_rate(self) -> None:
        if self._feed is not None:
            self._feed.set_rate(self._rate())

    def feed_changed(self, rows: Collection[int]) -> None:
        """Paint rows that changed; a change that is out of sight is painted already."""
        width, height = self.size
        seen = [y for y in rows if y < height]
        self._place_cursor()
        self._tell_scroll()
        if not seen or not self.is_attached:
            self._painted()
        elif len(seen) > height * WHOLE:
            self.refresh(Region(0, 0, width, height))
        else:
            self.refresh(*(Region(0, y, width, 1) for y in seen))

    def _tell_scroll(self) -> None:
        scroll = self._feed.scroll if self._feed is not None else Scroll()
        if scroll != self._scroll:
            self._scroll = scroll
            self.post_message(self.Scrolled(self))

    def feed_resized(self) -> None:
        """Paint everything."""
        self._place_cursor()
        self.refresh()

    def feed_state(self, state: FeedState, status: int | None, message: str) -> None:
        """Pass a change of the state on."""
        self.set_class(state not in ("live", "starting"), "-stale")
        self.post_message(self.StateChanged(self, state, status, message))

    def feed_title(self, title: str) -> None:
        """Pass a title on."""
        self.post_message(self.TitleChanged(self, title))

    def feed_bell(self) -> None:
        """Pass a bell on."""
        self.post_message(self.Bell(self))

    def feed_clipboard(self, text: str) -> None:
        """Pass a wish to write the clipboard on; nothing is copied here."""
        self.post_message(self.ClipboardRequested(self, text))

    def feed_notified(self, title: str, body: str) -> None:
        """Pass a notification on."""
        self.post_message(self.Notified(self, title, body))

    def feed_progress(self, progress: tuple[int, int] | None) -> None:
        """Pass the guest's progress on."""
        self.post_message(self.ProgressChanged(self, progress))

    def feed_mirrored(self, mirrored: bool) -> None:
        """Pass on that another client took the terminal, or that this one holds it."""
        self.set_class(mirrored, "-mirrored")
        self.post_message(self.MirrorChanged(self, mirrored))

    def feed_refused(self, message: str) -> None:
        """Pass on that input was dropped."""
        self.post_message(self.InputRefused(self, message))

    # -- drawing -----------------------------------------------------------------------------

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the strips of a region.

        Overrides the whole of Textual's styling: colours are resolved, there is no border to draw.
        """
        width = self.size.width
        lines = [self._line(y, width) for y in crop.line_range]
        if crop.column_span != (0, width):
            lines = [line.crop(*crop.column_span) for line in lines]
        self._painted()
        return lines

    def _line(self, y: int, width: int) -> Strip:
        feed = self._feed
        strip = feed.strip(y) if feed is not None else None
        if feed is None or strip is None or y >= feed.rows:
            return self._blank(width)
        cursor = feed.cursor
        if cursor is not None and cursor.y == y and cursor.x < strip.cell_length:
            strip = self._with_cursor(strip, cursor)
        if strip.cell_length == width:
            return strip
        if strip.cell_length > width:
            return strip.crop(0, width)
        return Strip.join([strip, self._blank(width - strip.cell_length)])

    def _blank(self, width: int) -> Strip:
        return Strip.blank(width, self.visual_style.rich_style)

    def _with_cursor(self, strip: Strip, cursor: Cursor) -> Strip:
        end = min(cursor.x + (2 if cursor.wide else 1), strip.cell_length)
        before, under, after = strip.divide([cursor.x, end, strip.cell_length])
        drawn = [
            Segment(text, self._cursor_style(style or Style.null(), cursor), control)
            for text, style, control in under
        ]
        return Strip([*before, *drawn, *after], strip.cell_length)

    def _cursor_style(self, style: Style, cursor: Cursor) -> Style:
        """Return a style with the cursor on it; without focus it is a line, so only one fills."""
        if not self.has_focus or cursor.shape in ("underline", "hollow"):
            return style + Style(underline=not style.underline)
        return style + Style(reverse=not style.reverse)

    def _place_cursor(self) -> None:
        """Put the real cursor where input methods and screen readers look for it."""
        cursor = self._feed.cursor if self._feed is not None else None
        if cursor is not None and self.has_focus:
            app = cast("App[object]", self.app)  # pyright: ignore[reportUnknownMemberType]
            app.cursor_position = self.region.offset + Offset(cursor.x, cursor.y)

    def _painted(self) -> None:
        if self._feed is not None:
            self._feed.painted()

    # -- size and sight ----------------------------------------------------------------------

    def on_resize(self) -> None:
        """Tell the guest its size once it rests; the first one at once."""
        if self._resize_timer is None:
            self._tell_size()
        else:
            self._resize_timer.stop()
        self._resize_timer = self.set_timer(RESIZE_S, self._tell_size)

    def _tell_size(self) -> None:
        width, height = self.size
        if self._feed is not None and width and height:
            self._feed.resize(width, height)

    def on_show(self) -> None:
        """Draw again."""
        self._shown = True
        self._tell_rate()

    def on_hide(self) -> None:
        """Draw no more."""
        self._shown = False
        self._tell_rate()

    def on_unmount(self) -> None:
        """Leave the feed to the next view."""
        self._detach()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Take the pace that the focus means; a prefix without its key is given up."""
        super().watch_has_focus(_has_focus)
        self._tell_rate()
        self._tell_focus(_has_focus)
        if not _has_focus:
            self._disarm()

    def _tell_focus(self, focused: bool) -> None:
        if self._feed is not None:
            self._feed.send_focus(focused)
            cursor = self._feed.cursor
            if cursor is not None:
                self.refresh(Region(0, cursor.y, self.size.width, 1))

    # -- keys --------------------------------------------------------------------------------

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Keep bindings of App and Screen, priority ones too, from taking the guest's keys."""
        return key not in self._passthrough

    def is_guests(self, key: str) -> bool:
        """Tell whether a key goes to the guest and nowhere else."""
        return not self._armed and key != self._prefix and key not in self._passthrough

    def on_key(self, event: events.Key) -> None:
        """Send a key to the guest, unless it is the prefix, follows it, or passes through."""
        if event.key in self._passthrough:
            self._disarm()
            return
        event.stop()
        event.prevent_default()
        if event.key in LONE_MODIFIERS:
            return
        if self._armed:
            self._after_prefix(event)
        elif event.key == self._prefix:
            self._armed = True
            self.add_class("-prefix")
            self.post_message(self.PrefixPressed(self))
        else:
            self._type(event)

    def _after_prefix(self, event: events.Key) -> None:
        if event.key == "escape":
            self._disarm()
            return
        self._armed = False
        self.remove_class("-prefix")
        if event.key == self._prefix:
            self._type(event)
            self.post_message(self.PrefixCancelled(self))
        else:
            self.post_message(self.PrefixCommand(self, event.key, event.character))

    def _disarm(self) -> None:
        if self._armed:
            self._armed = False
            self.remove_class("-prefix")
            self.post_message(self.PrefixCancelled(self))

    def _type(self, event: events.Key) -> None:
        if self._feed is not None:
            self._feed.send_key(event.key, event.character)

    def on_paste(self, event: events.Paste) -> None:
        """Paste into the guest."""
        event.stop()
        event.prevent_default()
        self.paste(event.text)

    def paste(self, text: str) -> None:
        """Paste text into the guest."""
        if self._feed is not None and text:
            self._feed.send_paste(text)

    # -- mouse -------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Pass a press on to a guest that tracks the mouse."""
        if self._tracked():
            self._drag_button = event.button
            self.capture_mouse()
            self._mouse("press", event, event.button)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Pass a release on."""
        if self._drag_button:
            self.release_mouse()
            self._drag_button = 0
            self._mouse("release", event, event.button)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Pass a move on to a guest that asked for moves."""
        tracking = self._feed.modes.mouse if self._feed is not None else "none"
        if tracking == "any" or (tracking == "drag" and self._drag_button):
            self._mouse("move", event, self._drag_button)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Turn the wheel: the guest's if it tracks the mouse, else the scrollback."""
        self._mouse("scroll_up", event, 0)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Turn the wheel: the guest's if it tracks the mouse, else the scrollback."""
        self._mouse("scroll_down", event, 0)

    def _tracked(self) -> bool:
        return self._feed is not None and self._feed.modes.mouse != "none"

    def _mouse(self, action: MouseAction, event: events.MouseEvent, button: int) -> None:
        feed = self._feed
        if feed is None:
            return
        event.stop()
        event.prevent_default()
        x = max(0, min(int(event.x), feed.columns - 1))
        y = max(0, min(int(event.y), feed.rows - 1))
        feed.send_mouse(MouseInput(action, x, y, button, event.shift, event.meta, event.ctrl))
