"""Which rule to write for a host: exactly as it would stand, and for how long."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from app.ui.dialogs import LOW, key_line
from snapshot.safe_text import safe_name
from vm.egress.questions import Choice
from widgets.cells import two_sided
from widgets.line_list import LineList

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.strip import Strip

    from themes.glyphs import Glyphs

COUNT_AFTER = 0.5
"""Seconds after which enter counts: the guest chooses when a row comes under the cursor."""


class ChoiceList(LineList[Choice]):
    """Rules that can be written."""

    DEFAULT_CSS = """
    ChoiceList { height: auto; width: 1fr; background: $panel; }
    """

    def item_key(self, item: Choice) -> str | None:
        """Return the rule's own words."""
        return item.text

    def blank_style_token(self) -> str:
        """Use the dialog's own background."""
        return "panel"

    def draw_item(self, item: Choice, line: int, width: int, *, selected: bool) -> Strip:
        """Draw a rule with its sign."""
        on = "selection" if selected else "panel"
        allows = item.rule.effect == "allow"
        mark = self.glyphs.done if allows else self.glyphs.failed
        token = "success" if allows else "error"
        pieces = [
            (self.glyphs.edge if selected else " ", self.paint("accent", on)),
            (f"{mark} ", self.paint(token, on, "b")),
            (safe_name(item.text).text, self.paint("foreground", on)),
        ]
        return two_sided(pieces, [], width, self.paint(on=on), self.glyphs.ellipsis)


class RuleDialog(ModalScreen["Choice | None"]):
    """Answers with the rule that is to be written."""

    VERTICAL_BREAKPOINTS = LOW
    BINDING_GROUP_TITLE = "Rule for a host"
    AUTO_FOCUS = "ChoiceList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "cancel", "back", tooltip="Write nothing", id="rule.cancel"),
    ]

    def __init__(self, about: str, choices: Sequence[Choice], glyphs: Glyphs) -> None:
        """`about`: the host and who wanted it, safe to print."""
        super().__init__()
        self.about = about
        self.choices = tuple(choices)
        self.glyphs = glyphs
        self._counts_from = time.monotonic() + COUNT_AFTER

    def compose(self) -> ComposeResult:
        """Yield the rules."""
        with Vertical(classes="dialog"):
            yield Static(self.about, classes="dialog-title", markup=False)
            yield ChoiceList(glyphs=self.glyphs, id="choices")
            yield Static("", classes="gap")
            yield Static(key_line([("enter", "write this rule"), ("esc", "back")]))

    def on_mount(self) -> None:
        """List the rules."""
        listed = self.query_one(ChoiceList)
        listed.set_items(self.choices)
        listed.styles.height = max(1, len(self.choices))

    async def on_event(self, event: events.Event) -> None:
        """Let enter count a moment later only."""
        is_enter = isinstance(event, events.Key) and event.key == "enter"
        if is_enter and event.time < self._counts_from:
            event.stop()
            return
        await super().on_event(event)

    @on(LineList.Chosen)
    def take(self, message: LineList.Chosen) -> None:
        """Answer with the rule under the cursor."""
        message.stop()
        self.dismiss(self.query_one(ChoiceList).current)

    def action_cancel(self) -> None:
        """Write nothing."""
        self.dismiss(None)
