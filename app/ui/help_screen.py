"""Every key on one page, made from the same table as the key line."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from app.ui.dialogs import LOW
from app.ui.keys import key_groups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult
    from textual.screen import Screen

    from app.ui.keys import KeyGroup
    from themes.glyphs import Glyphs

KEY_COLUMN = 15


class HelpScreen(ModalScreen[None]):
    """The keys of the screen below come first."""

    VERTICAL_BREAKPOINTS = LOW
    BINDING_GROUP_TITLE = "Help"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "close", "close", id="help.close"),
        Binding("j,down", "scroll(1)", "down", show=False, id="help.down"),
        Binding("k,up", "scroll(-1)", "up", show=False, id="help.up"),
    ]

    def __init__(
        self,
        below: type[Screen[object]],
        glyphs: Glyphs,
        prefix: str,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """`prefix`: how the user's own prefix is written; `keys`: those that the user moved."""
        super().__init__()
        self.keys = keys or {}
        self.prefix = prefix
        self.below = below
        self.glyphs = glyphs

    def compose(self) -> ComposeResult:
        """Yield the groups, and what the signs mean."""
        groups = key_groups(self.prefix, self.keys)
        firsts = {"ReviewScreen": "Review", "EgressScreen": "Egress", "CommitScreen": "Commits"}
        first = firsts.get(self.below.__name__, "Fleet")
        ordered = sorted(groups, key=lambda group: group.title != first)
        with Vertical(classes="dialog -wide"):
            yield Static("Keys", classes="dialog-title", markup=False)
            with VerticalScroll(id="help-body", can_focus=True):
                yield Static(self._legend())
                for group in ordered:
                    yield Static(group_text(group), classes="help-group")
            yield Static(
                Content.assemble(
                    ("esc", "bold $accent"),
                    (" close    ", "$muted"),
                    ("j k", "bold $accent"),
                    (" scroll", "$muted"),
                )
            )

    def _legend(self) -> Content:
        glyphs = self.glyphs
        signs = (
            ("starting", glyphs.starting, "boots"),
            ("working", glyphs.working, "working"),
            ("waiting", glyphs.waiting, "waits"),
            ("idle", glyphs.idle, "idle"),
            ("done", glyphs.done, "done"),
            ("failed", glyphs.failed, "failed"),
            ("paused", glyphs.paused, "paused"),
            ("stalled", glyphs.stalled, "stalled"),
        )
        parts: list[tuple[str, str]] = []
        for token, sign, word in signs:
            parts += [(sign, f"bold $state-{token}"), (f" {word}  ", "$muted")]
        return Content.assemble(*parts)

    def action_scroll(self, step: int) -> None:
        """Move the page."""
        self.query_one("#help-body").scroll_relative(y=step * 3, animate=False)

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)


def group_text(group: KeyGroup) -> Content:
    """Return a group's keys, lined up."""
    parts: list[tuple[str, str]] = [(f"\n{group.title}\n", "bold $foreground")]
    for row in group.rows:
        keys = " ".join(row.keys)
        parts += [(f"  {keys:<{KEY_COLUMN}} ", "bold $accent"), (f"{row.what}\n", "$muted")]
    return Content.assemble(*parts[:-1], (parts[-1][0].rstrip(), parts[-1][1]))
