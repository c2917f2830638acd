"""A question that is answered by several lines of text: a comment, a reason, lines of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static, TextArea

from app.ui.dialogs import LOW, key_line
from snapshot.safe_text import decode, safe_block

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.content import Content

CRLF = "\r\n"


class PlainTextArea(TextArea):
    """A text area that takes no control characters: what it draws reaches the terminal."""

    async def _on_paste(self, event: events.Paste) -> None:
        """Insert the printable form of what is pasted."""
        event.prevent_default()
        event.stop()
        text = event.text.replace(CRLF, "\n").replace("\r", "\n")
        if not self.read_only:
            self.insert(safe_block(text).text)


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """What is asked; all texts are safe to print."""

    title: str
    about: str = ""
    """One line or more under the title."""
    text: str = ""
    save: str = "save"
    """What the key that ends it does, in a word or two."""
    code: bool = False
    """The text is lines of a file: numbered, not wrapped."""


class TextDialog(ModalScreen["str | None"]):
    """Answers with the text, or None when nothing is to be done."""

    VERTICAL_BREAKPOINTS = LOW
    BINDING_GROUP_TITLE = "Writing a text"
    AUTO_FOCUS = "PlainTextArea"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+s,f10",
            "save",
            "save",
            priority=True,
            tooltip="End writing, keep the text",
            id="text.save",
        ),
        Binding(
            "escape",
            "cancel",
            "back",
            priority=True,
            tooltip="Leave without the text; asks once when something was written",
            id="text.cancel",
        ),
    ]

    def __init__(self, question: TextQuestion) -> None:
        super().__init__()
        self.question = question
        self._warned = False

    def compose(self) -> ComposeResult:
        """Yield the question, the text and the keys."""
        asked = self.question
        with Vertical(classes="dialog -wide -text"):
            yield Static(asked.title, classes="dialog-title", markup=False)
            if asked.about:
                yield Static(asked.about, classes="about", markup=False)
            yield PlainTextArea(
                asked.text,
                soft_wrap=not asked.code,
                show_line_numbers=asked.code,
                tab_behavior="indent" if asked.code else "focus",
            )
            yield Static(self._keys(), id="text-keys")

    def _keys(self) -> Content:
        return key_line([("ctrl+s", self.question.save), ("esc", "back")])

    @property
    def text(self) -> str:
        """What is written."""
        return self.query_one(PlainTextArea).text

    def action_save(self) -> None:
        """Answer with the text."""
        self.dismiss(self.text)

    def action_cancel(self) -> None:
        """Answer with nothing; what was written is not lost by one slip."""
        if self.text != self.question.text and not self._warned:
            self._warned = True
            keys = [("esc", "throw the text away"), ("ctrl+s", self.question.save)]
            self.query_one("#text-keys", Static).update(key_line(keys))
            return
        self.dismiss(None)


def editable(content: bytes) -> tuple[str, str] | None:
    """Return lines of a file as text to edit and their line ending; None where that loses bytes.

    Text that is not UTF-8, with control characters or with mixed line endings is none to edit here.
    """
    text = decode(content)
    ending = CRLF if CRLF in text else "\n"
    plain = text.replace(CRLF, "\n") if ending == CRLF else text
    if plain.replace("\n", ending) != text or safe_block(plain).text != plain:
        return None
    return plain, ending
