"""Copy mode of a terminal view: its keys, the search line, and copying.

The engine holds the frozen page, the copy cursor and the selection; here is only whose keys they
are. That is known at once, not when the next frame says so, or keys typed meanwhile would reach
the guest; a wish that the engine does not grant in time is given up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from widgets.copy_keys import COPY_KEY
from widgets.terminal_search import SearchLine

if TYPE_CHECKING:
    from textual import events
    from textual.timer import Timer

    from widgets.copy_keys import CopyKey, Direction, PrefixAction
    from widgets.terminal import TerminalView
    from widgets.terminal_feed import PaneFeed, View

MAX_COUNT = 9999
"""The largest number before a motion."""

GRANT_S = 2.0
"""Seconds that the engine may take to begin or end copy mode before it is asked no more."""


class CopyMode:
    """Whether the keys are the view's own, and what they do then."""

    def __init__(self, view: TerminalView) -> None:
        self._view = view
        self.active = False
        """The page stands still and the keys are the view's."""
        self.count = 0
        """The number typed before a motion, 0 for none."""
        self.line: SearchLine | None = None
        """The line in which a search is typed, while there is one."""
        self.searched = False
        """A search was made and kept: n and N step in what it found."""
        self._wish: bool | None = None
        self._waits: Timer | None = None
        self._selected = False
        self._direction: Direction = "forwards"
        self._needle = ""

    # -- begin and end -------------------------------------------------------------------------

    def begin(self, action: PrefixAction) -> None:
        """Begin copy mode, and do what the key after the prefix says besides."""
        feed = self._view.feed
        if feed is None:
            return
        if not self.active:
            self._wish_for(True)
            feed.copy_mode(True)
            self._become(True)
        if action == "page_up":
            feed.copy_move("page_up")
        elif action == "page_down":
            feed.copy_move("page_down")
        elif action == "search":
            # the newest output is the likeliest place, and the cursor is below it
            self._open_line("backwards", alone=True)

    def leave(self) -> None:
        """Let the page go on and give the keys back to the guest."""
        feed = self._view.feed
        if self.active and feed is not None:
            self._wish_for(False)
            feed.copy_mode(False)
        self._become(False)

    def forget(self) -> None:
        """Be out of copy mode: the feed or its engine is another one now."""
        self._settle()
        self._selected = False
        self._become(False)

    def follow(self, view: View) -> None:
        """Take what the last frame says, unless it does not know yet what was asked."""
        self._selected = view.selected
        if self._wish is None:
            self._become(view.copying)
        elif view.copying == self._wish:
            self._settle()

    def _wish_for(self, copying: bool) -> None:
        self._settle()
        self._wish = copying
        self._waits = self._view.set_timer(GRANT_S, self._give_up)

    def _settle(self) -> None:
        self._wish = None
        if self._waits is not None:
            self._waits.stop()
            self._waits = None

    def _give_up(self) -> None:
        self._settle()
        feed = self._view.feed
        self._become(feed is not None and feed.view.copying)

    def _become(self, active: bool) -> None:
        if active == self.active:
            return
        self.active, self.count, self.line, self.searched = active, 0, None, False
        self._view.set_class(active, "-copying")
        self._view.post_message(self._view.CopyModeChanged(self._view))
        self._view.repaint()

    # -- keys ----------------------------------------------------------------------------------

    def press(self, event: events.Key) -> None:
        """Do what a key of copy mode, or of its search line, does."""
        feed = self._view.feed
        if feed is None:
            return
        if self.line is not None:
            self._press_in_line(feed, self.line, event)
        elif not self._counted(event.key):
            count, self.count = self.count, 0
            row = COPY_KEY.get(event.key)
            if row is not None and not (row.action == "escape" and count):
                self._do(feed, row, count)
        self._view.repaint_own_lines()

    def _counted(self, key: str) -> bool:
        """Take a digit of a count; a 0 is one only behind another digit."""
        if not (len(key) == 1 and key.isascii() and key.isdigit()) or (
            key == "0" == str(self.count)
        ):
            return False
        self.count = min(self.count * 10 + int(key), MAX_COUNT)
        return True

    def _do(self, feed: PaneFeed, row: CopyKey, count: int) -> None:
        if row.motion is not None:
            feed.copy_move(row.motion, count or None)
        elif row.shape is not None:
            self._selected = True
            feed.copy_mark(row.shape)
        elif row.action == "search":
            self._open_line(row.direction)
        elif row.action == "find":
            for _ in range(count or 1):
                # n goes on in the search's own direction, N against it
                feed.find_next(backwards=row.direction == "backwards")
        elif row.action == "copy" and self._selected:
            self.copy(leave=True)
        elif row.action == "escape" and self._selected:
            self._selected = False
            feed.copy_mark("none")
        else:
            self.leave()

    # -- search --------------------------------------------------------------------------------

    def _open_line(self, direction: Direction, *, alone: bool = False) -> None:
        self._direction = direction
        self._set_line(SearchLine(direction, alone=alone))
        self._view.repaint_own_lines()

    def _set_line(self, line: SearchLine | None) -> None:
        """Open or close the line, and say that keys mean something else now."""
        self.line = line
        self._view.post_message(self._view.CopyModeChanged(self._view))

    def _press_in_line(self, feed: PaneFeed, line: SearchLine, event: events.Key) -> None:
        before = line.text
        action = line.press(event.key, event.character)
        if action == "keep":
            self._keep(feed, line)
        elif action == "cancel":
            self.searched = False
            self._set_line(None)
            feed.search("")
            if line.alone:
                self.leave()
        elif action in ("next", "previous"):
            feed.find_next(backwards=(action == "previous") != self._backwards)
        elif line.text != before:
            feed.search(line.text, backwards=self._backwards)

    @property
    def _backwards(self) -> bool:
        return self._direction == "backwards"

    def _keep(self, feed: PaneFeed, line: SearchLine) -> None:
        self._set_line(None)
        self.searched = bool(line.text or self._needle)
        if line.text:
            self._needle = line.text
        elif self._needle:
            feed.search(self._needle, backwards=self._backwards)

    def paste(self, text: str) -> bool:
        """Paste into the search line; False when there is none."""
        line, feed = self.line, self._view.feed
        if line is None or feed is None:
            return False
        line.insert(text)
        feed.search(line.text, backwards=self._backwards)
        self._view.repaint_own_lines()
        return True

    # -- copying -------------------------------------------------------------------------------

    def copy(self, *, leave: bool = False) -> None:
        """Copy what is selected, and leave copy mode once the text was asked for."""
        feed = self._view.feed
        if feed is not None:
            work = self._copy(feed, leave=leave)
            self._view.run_worker(work, group="copy", exclusive=True, exit_on_error=False)

    async def _copy(self, feed: PaneFeed, *, leave: bool) -> None:
        asked = asyncio.create_task(feed.selected_text())
        try:
            await asyncio.sleep(0)  # the request goes out first: leaving ends the selection
            if leave:
                self.leave()
            await asyncio.wait([asked])
            self._tell(asked)
        finally:
            asked.cancel()

    def _tell(self, asked: asyncio.Task[str]) -> None:
        view = self._view
        error = None if asked.cancelled() else asked.exception()
        if asked.cancelled() or isinstance(error, ConnectionError | TimeoutError):
            view.post_message(view.InputRefused(view, "Nothing was copied: no answer."))
        elif text := asked.result():
            view.post_message(view.Copied(view, text))
