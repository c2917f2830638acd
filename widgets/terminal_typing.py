"""Where a key that reaches a terminal view goes: the prefix, copy mode, or the guest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.copy_keys import PREFIX_KEY
from widgets.outer_keys import LONE_MODIFIERS

if TYPE_CHECKING:
    from textual import events

    from widgets.copy_keys import PrefixKey
    from widgets.terminal import TerminalView


class TerminalTyping:
    """Takes keys and pastes of one view."""

    def __init__(self, view: TerminalView, prefix: str, passthrough: frozenset[str]) -> None:
        self._view = view
        self.prefix, self.passthrough = prefix, passthrough
        self.armed = False
        """The prefix was pressed and waits for its key."""

    def is_guests(self, key: str) -> bool:
        """Tell whether a key goes to the guest and nowhere else."""
        free = not self.armed and not self._view.copying
        return free and key != self.prefix and key not in self.passthrough

    def press(self, event: events.Key) -> None:
        """Send a key to the guest, unless it is the prefix, follows it, or passes through."""
        if event.key in self.passthrough:
            self.disarm()
            return
        event.stop()
        event.prevent_default()
        if event.key in LONE_MODIFIERS:
            return
        if self.armed:
            self._after_prefix(event)
        elif event.key == self.prefix:
            self.armed = True
            self._view.add_class("-prefix")
            self._view.post_message(self._view.PrefixPressed(self._view))
        elif self._view.copying:
            self._view.copying_mode.press(event)
        else:
            self._type(event)

    def _after_prefix(self, event: events.Key) -> None:
        row = PREFIX_KEY.get(event.key)
        if event.key == "escape":
            self.disarm()
        elif event.key == self.prefix:
            self.disarm()
            self._type(event)
        elif row is not None:
            self.disarm()
            self._obey(row)
        else:
            self.armed = False
            self._view.remove_class("-prefix")
            self._view.post_message(
                self._view.PrefixCommand(self._view, event.key, event.character)
            )

    def _obey(self, row: PrefixKey) -> None:
        if row.action == "paste":
            self._view.paste_register()
        else:
            self._view.copying_mode.begin(row.action)

    def disarm(self) -> None:
        """Give the prefix up."""
        if self.armed:
            self.armed = False
            self._view.remove_class("-prefix")
            self._view.post_message(self._view.PrefixCancelled(self._view))

    def _type(self, event: events.Key) -> None:
        feed = self._view.feed
        if feed is not None and not feed.mirrored:
            self._back_to_guest()
            feed.send_key(event.key, event.character)

    def paste(self, text: str) -> None:
        """Paste text into the search line if there is one, else into the guest."""
        feed = self._view.feed
        if feed is None or not text or self._view.copying_mode.paste(text):
            return
        if not feed.mirrored:
            self._back_to_guest()
            feed.send_paste(text)

    def _back_to_guest(self) -> None:
        """Leave copy mode; the engine ends selection and scrollback when something is typed."""
        self._view.copying_mode.leave()
        self._view.touch_blink()
