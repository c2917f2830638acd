"""One line to type in above the keys: a filter for a list, or a text to find."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static


class LineBar(Horizontal):
    """Not there until it is opened; says each change, `enter`, up and down, and its end."""

    BINDING_GROUP_TITLE = "Filter and find"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", show=False, id="line.close"),
        Binding("down", "step(1)", "next", show=False, id="line.next"),
        Binding("up", "step(-1)", "previous", show=False, id="line.previous"),
    ]
    DEFAULT_CSS = """
    LineBar {
        display: none;
        height: 1;
        width: 1fr;
        background: $panel;
        &.-open { display: block; }
        & > Static { width: auto; color: $accent; text-style: bold; padding: 0 1; }
        & > #line-count { color: $text-muted; text-style: none; }
        & > Input {
            width: 1fr; height: 1; border: none; padding: 0;
            background: $panel; color: $foreground;
            &:focus { border: none; }
        }
    }
    """

    @dataclass
    class Changed(Message):
        """The text is another one."""

        text: str

    @dataclass
    class Stepped(Message):
        """The user wants the next (1) or the previous (-1) place."""

        direction: int
        entered: bool = False
        """It was `enter`: whoever is through with typing may close the line."""

    @dataclass
    class Closed(Message):
        """The user is through; `text` is what stood there."""

        text: str
        accepted: bool

    @cached_property
    def _parts(self) -> tuple[Static, Input, Static]:
        """A label, the input, and how much was found: made when they are first wanted.

        An input is a costly widget, and most screens are left without one.
        """
        parts = (
            Static("/", id="line-label", markup=False),
            Input(compact=True, select_on_focus=False),
            Static("", id="line-count", markup=False),
        )
        self.mount(*parts)
        return parts

    @property
    def is_open(self) -> bool:
        """True while it is there."""
        return self.has_class("-open")

    @property
    def text(self) -> str:
        """What was typed; nothing while the line is away."""
        return self._parts[1].value if self.is_open else ""

    def open(self, label: str, text: str = "") -> None:
        """Show the line and give it the keys."""
        name, line, _ = self._parts
        name.update(label)
        self.add_class("-open")
        line.value = text
        line.cursor_position = len(text)
        line.focus()

    def tell(self, count: str) -> None:
        """Say how much was found."""
        if self.is_open:
            self._parts[2].update(count)

    def close(self, *, accepted: bool = False) -> None:
        """Take the line away."""
        if self.is_open:
            text = self.text
            self.tell("")
            self.remove_class("-open")
            self.post_message(self.Closed(text, accepted))

    @on(Input.Changed)
    def tell_change(self, message: Input.Changed) -> None:
        """Say what is typed as it is typed."""
        message.stop()
        if self.is_open:
            self.post_message(self.Changed(message.value))

    @on(Input.Submitted)
    def tell_enter(self, message: Input.Submitted) -> None:
        """Enter goes on to the next place."""
        message.stop()
        self.post_message(self.Stepped(1, entered=True))

    def action_step(self, direction: int) -> None:
        """Go to another place."""
        self.post_message(self.Stepped(direction))

    def action_close(self) -> None:
        """Take the line away."""
        self.close()
