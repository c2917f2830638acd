"""Every key on one page, made from the same table as the key line."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from app.ui.dialogs import LOW
from app.ui.help_text import group_text, legend, legend_text
from app.ui.keys import key_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.app import ComposeResult
    from textual.geometry import Size
    from textual.screen import Screen

    from themes.glyphs import Glyphs


class Fitted(Widget):
    """A text that is made anew for each width."""

    DEFAULT_CSS = "Fitted { width: 1fr; height: auto; }"

    def __init__(self, text: Callable[[int], Content]) -> None:
        """`text` returns the text whose lines have so many cells at most."""
        super().__init__()
        self._text = text

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many lines the text has in that width."""
        del container, viewport
        return self._text(width).plain.count("\n") + 1

    def render(self) -> Content:
        """Return the text for the width that there is."""
        return self._text(self.size.width)


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
                yield Fitted(partial(legend_text, legend(self.below.__name__, self.glyphs)))
                for group in ordered:
                    yield Fitted(partial(group_text, group))
            yield Static(
                Content.assemble(
                    ("esc", "bold $accent"),
                    (" close    ", "$muted"),
                    ("j k", "bold $accent"),
                    (" scroll", "$muted"),
                )
            )

    def action_scroll(self, step: int) -> None:
        """Move the page."""
        self.query_one("#help-body").scroll_relative(y=step * 3, animate=False)

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)
