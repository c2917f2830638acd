"""What agents ask of the user, and what the user's answers do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on

from app.ui.pane_news import size_words
from app.ui.terminal_events import TerminalEvents
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


MAX_CLIPBOARD = 100 << 10
"""Bytes (UTF-8) of a text that an agent may put on the clipboard."""

CLIPBOARD_SECONDS = 60.0
"""How often is said that a session wanted the clipboard in vain."""

REFUSED_SECONDS = 5.0
"""How often is said that a session wanted to copy too much."""


class FleetAsks(TerminalEvents):
    """Shows questions without taking a key for them, and acts on answers."""

    _before: Widget | None = None

    def on_mount(self) -> None:
        """Hear terminals that no view shows, too; the classes below mount by themselves."""
        self.cloche.terminals.report_to(self)

    def compose_body(self) -> ComposeResult:
        """Put the strip over the screen."""
        yield AskStrip(glyphs=self.glyphs, opener=f"{self.cloche.prefix_name} e", id="ask")
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
    def take_clipboard_wish(self, message: TerminalView.ClipboardRequested) -> None:
        """Take what an agent wants on the clipboard."""
        message.stop()
        self.clipboard_wanted(self.session_of(message.view), message.text)

    def clipboard_wanted(self, session_id: str, text: str) -> None:
        """Let the user decide whether an agent writes the clipboard.

        Only the agent that has the keys is listened to: a question of another one would come out
        of nowhere. Its wish is counted and named now and then.
        """
        if self.info_of(session_id) is None:
            return
        if not self.has_keys(session_id):
            self._count_wish(session_id)
        elif (size := len(text.encode("utf-8", "replace"))) > MAX_CLIPBOARD:
            self._refuse_wish(session_id, size)
        else:
            self.ask_strip.put(self._question(session_id, text))

    def _count_wish(self, session_id: str) -> None:
        news = self.news_of(session_id)
        news = replace(news, unasked=news.unasked + 1)
        self.keep_news(session_id, news)
        if self.pace.allows(session_id, "clipboard", CLIPBOARD_SECONDS):
            times = "once" if news.unasked == 1 else f"{news.unasked} times"
            name = self.name_of(session_id)
            self.tell(
                f"{name} wanted to write your clipboard {times} without having the keys; "
                "nothing was copied.",
                "Go into its screen and let it copy again",
            )

    def _refuse_wish(self, session_id: str, size: int) -> None:
        if self.pace.allows(session_id, "large clipboard", REFUSED_SECONDS):
            limit = MAX_CLIPBOARD >> 10
            name = self.name_of(session_id)
            self.tell(
                f"{name} wants to put {size / 1024:.0f} KiB on your clipboard; more than "
                f"{limit} KiB is refused.",
                "Let it write a file and review that",
            )

    def _question(self, session_id: str, text: str) -> Ask:
        name = self.name_of(session_id)
        wish = f"{name} wants to put {size_words(len(text))} on your clipboard"
        return Ask(
            source=session_id,
            text=wish if text else f"{name} wants to empty your clipboard",
            detail=self._quoted(text) if text else "",
            choices=(("y", "let it"), ("n", "no")),
            payload=text,
        )

    def _quoted(self, text: str) -> str:
        """Return the beginning of a text; one that goes on does not look as if it ended there."""
        shown = safe_name(text[:SHOWN_TEXT]).text
        return f"\u201c{shown}" + (self.glyphs.ellipsis if len(text) > SHOWN_TEXT else "\u201d")

    def action_answer(self) -> None:
        """Give the keys to the question that is shown."""
        strip = self.ask_strip
        if self.cloche.asks.focus():  # a held connection waits for a minute at most
            return
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
            self.put_on_clipboard(message.ask.payload)
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
