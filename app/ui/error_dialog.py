"""An error as a whole: every word of it, and its command to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from app.ui.dialogs import LOW, key_line
from app.ui.failures import command_of

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from themes.glyphs import Glyphs
    from widgets.notice import NoticeValue


class ErrorDialog(ModalScreen[None]):
    """The text can be selected with the mouse; `c` copies the command, or else all of it."""

    VERTICAL_BREAKPOINTS = LOW
    BINDING_GROUP_TITLE = "Details of an error"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "copy", "copy", id="error.copy", tooltip="Copy the command, else the text"),
        Binding("escape,q,enter", "close", "back", id="error.close"),
    ]

    def __init__(self, value: NoticeValue, glyphs: Glyphs) -> None:
        super().__init__()
        self.value = value
        self.glyphs = glyphs
        self.command = command_of(value.hint)

    def compose(self) -> ComposeResult:
        """Yield the sentence, the way out, and the keys."""
        with Vertical(classes="dialog -error"):
            title = f"{self.glyphs.failed} What went wrong"
            yield Static(title, classes="dialog-title", markup=False)
            with VerticalScroll(classes="paths", can_focus=True):
                yield Static(self.value.text, markup=False)
                if self.value.hint and not self.command:
                    yield Static(self._line(self.value.hint), classes="label")
                if self.command:
                    lead = self.value.hint.removesuffix(self.command).rstrip(": .")
                    yield Static(lead or "What helps", classes="label", markup=False)
                    yield Static(self.command, id="command", markup=False)
            what = "copy the command" if self.command else "copy the text"
            yield Static(key_line([("c", what), ("esc", "back")]), id="error-keys")

    def _line(self, text: str) -> Content:
        return Content.assemble((text, "$foreground"))

    def action_copy(self) -> None:
        """Put the command, or all of the text, on the clipboard."""
        text = self.command or f"{self.value.text} {self.value.hint}".strip()
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        done = (f"{self.glyphs.done} copied", "bold $success")
        self.query_one("#error-keys", Static).update(
            Content.assemble(done, ("    ", ""), key_line([("esc", "back")]))
        )

    def action_close(self) -> None:
        """Go back."""
        self.dismiss(None)
