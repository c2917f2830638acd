"""What agents ask of the user, and what the user's answers do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.ui.fleet_tasks import FleetTasks
from snapshot.safe_text import safe_name
from widgets.ask_strip import Ask, AskStrip
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.widget import Widget

    from app.protocol import SessionInfo

SHOWN_TEXT = 200
"""Characters of a text that an agent wants to copy; the strip is one line."""


class FleetAsks(FleetTasks):
    """Shows questions without taking a key for them, and acts on answers."""

    _before: Widget | None = None

    def compose_body(self) -> ComposeResult:
        """Put the strip over the screen."""
        yield AskStrip(glyphs=self.glyphs, opener="ctrl+g e", id="ask")
        yield from super().compose_body()

    @property
    def ask_strip(self) -> AskStrip:
        """Where agents' questions are."""
        return self.query_one("#ask", AskStrip)

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Withdraw the questions of sessions that are gone."""
        self.ask_strip.keep_only({info.id for info in sessions})
        super().show_sessions(sessions)

    @on(TerminalView.ClipboardRequested)
    def ask_clipboard(self, message: TerminalView.ClipboardRequested) -> None:
        """Let the user decide whether an agent writes the clipboard."""
        message.stop()
        slot = next((slot for slot in self.slots if slot.view is message.view), None)
        info = None if slot is None else self.info_of(slot.session_id)
        if info is None:
            return
        text = message.text
        noun = "character" if len(text) == 1 else "characters"
        name = safe_name(info.name or info.id).text
        self.ask_strip.put(
            Ask(
                source=info.id,
                text=f"{name} wants to put {len(text)} {noun} on your clipboard",
                detail=f"\u201c{safe_name(text[:SHOWN_TEXT]).text}\u201d",
                choices=(("y", "let it"), ("n", "no")),
                payload=text,
            )
        )

    def action_answer(self) -> None:
        """Give the keys to the question that is shown."""
        strip = self.ask_strip
        if strip.shown is None:
            self.say("No agent asks for anything.")
        elif self.focused is not strip:
            self._before = self.focused
            self.set_focus(strip)

    @on(AskStrip.Answered)
    def take_answer(self, message: AskStrip.Answered) -> None:
        """Do what was allowed; the keys go back unless there is one more question."""
        message.stop()
        if message.key == "y":
            self.cloche.copy_to_clipboard(message.ask.payload)
            self.say("It is on your clipboard.", level="done")

    @on(AskStrip.Left)
    def leave_question(self, message: AskStrip.Left) -> None:
        """Give the keys back to whom they were taken from."""
        message.stop()
        if self.focused is not message.strip:
            return
        before, self._before = self._before, None
        if before is not None and before.is_attached and before.focusable:
            self.set_focus(before)
        else:
            self.go_home()
