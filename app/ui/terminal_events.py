"""What terminals report beside their screens: titles, bells, notifications, progress, links.

All of it comes from guests. It is shown in our own chrome as printable text of bounded length that
is never markup; it names the session that it comes from, and covers no error and no question.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from textual import on

from app.ui.fleet_tasks import FleetTasks
from app.ui.pane_news import NO_NEWS, Pace, PaneNews, size_words
from app.ui.speaking import SpeakingScreen
from snapshot.safe_text import safe_name
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from app.protocol import SessionInfo
    from themes.glyphs import Glyphs

NOTE_SECONDS = 5.0
"""A session's notifications are said no more often; of those between, the newest is."""

SOUND_SECONDS = 1.0
"""The user's own terminal rings no more often, whoever rings."""

SHOW_SECONDS = 0.2
"""News reach the screen no more often: a title that spins must not draw the rail all the time."""


class TerminalEvents(FleetTasks):
    """Takes what terminals report, keeps it by session, and speaks of it."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self.pace = Pace()
        self._news: dict[str, PaneNews] = {}
        self._news_due = False
        self._waiting: dict[str, str] = {}
        self._rang = float("-inf")
        self._link = ""

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Forget what sessions reported that are gone."""
        known = {info.id for info in sessions}
        self._news = {key: news for key, news in self._news.items() if key in known}
        self.pace.keep_only(known)
        super().show_sessions(sessions)

    # News

    def news_of(self, session_id: str) -> PaneNews:
        """Return what a session's terminal reported."""
        return self._news.get(session_id, NO_NEWS)

    def keep_news(self, session_id: str, news: PaneNews) -> None:
        """Keep and soon show what a session's terminal reported; its marks if it has no keys."""
        if self.has_keys(session_id):
            news = news.seen()
        if news != self.news_of(session_id) and self.info_of(session_id) is not None:
            self._news[session_id] = news
            if not self._news_due:
                self._news_due = True
                self.set_timer(SHOW_SECONDS, self.show_news)

    def show_news(self) -> None:
        """Show what terminals reported."""
        self._news_due = False
        self.show_rail()
        self.show_panes()
        self.show_strip()

    def session_of(self, view: TerminalView) -> str:
        """Return the session whose terminal a view shows, or an empty text."""
        return next((slot.session_id for slot in self.slots if slot.view is view), "")

    def has_keys(self, session_id: str) -> bool:
        """Tell whether what is typed now goes to a session's agent."""
        return self.is_active and any(
            slot.has_keys for slot in self.slots if slot.session_id == session_id
        )

    def name_of(self, session_id: str) -> str:
        """Return a session's name, printable."""
        info = self.info_of(session_id)
        return safe_name(session_id if info is None else info.name or info.id).text

    def tell(self, text: str, hint: str = "") -> None:
        """Say something on the screen that is shown; what a guest does covers no error there."""
        screen = self.cloche.screen
        if isinstance(screen, SpeakingScreen):
            said = screen.notice
            if said is None or said.level not in ("warning", "error"):
                screen.say(text, hint, of_agent=True)

    # What has been seen

    # Textual calls these beside those of the classes below, so they call no super.

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Take the marks off the session that has the keys now."""
        self._see()

    def on_screen_resume(self) -> None:
        """See to it that the marks go when the keys are an agent's again."""
        self._see()

    def _see(self) -> None:
        for slot in self.slots:
            self.keep_news(slot.session_id, self.news_of(slot.session_id))

    # What guests report, whether a view shows them or not

    def titled(self, session_id: str, title: str) -> None:
        """Keep a title for the header."""
        self.keep_news(session_id, self.news_of(session_id).titled(title))

    def progressed(self, session_id: str, progress: tuple[int, int] | None) -> None:
        """Keep a progress for the header."""
        self.keep_news(session_id, replace(self.news_of(session_id), progress=progress))

    def belled(self, session_id: str) -> None:
        """Mark a session that rang; ring, too, if the user configured that."""
        wish = self.cloche.bell_wish
        if wish == "off" or self.info_of(session_id) is None:
            return
        self.keep_news(session_id, replace(self.news_of(session_id), belled=True))
        now = time.monotonic()
        if wish == "sound" and now - self._rang >= SOUND_SECONDS:
            self._rang = now
            self.cloche.bell()

    def notified(self, session_id: str, title: str, body: str) -> None:
        """Say a notification, no more often than the pace allows, and mark the session."""
        news = self.news_of(session_id).noted(title, body)
        if not news.note or self.info_of(session_id) is None:
            return
        self.keep_news(session_id, news)
        if session_id in self._waiting:
            self._waiting[session_id] = news.note
        elif self.pace.allows(session_id, "note", NOTE_SECONDS):
            self._say_note(session_id, news.note)
        else:
            self._waiting[session_id] = news.note
            self.set_timer(NOTE_SECONDS, lambda: self._say_waiting(session_id))

    def _say_waiting(self, session_id: str) -> None:
        note = self._waiting.pop(session_id)
        if self.info_of(session_id) is not None:
            self.pace.allows(session_id, "note", 0)
            self._say_note(session_id, note)

    def _say_note(self, session_id: str, note: str) -> None:
        self.tell(f"{self.name_of(session_id)} says \u201c{note}\u201d")

    # The same from views

    @on(TerminalView.TitleChanged)
    def take_title(self, message: TerminalView.TitleChanged) -> None:
        """Take a title."""
        message.stop()
        self.titled(self.session_of(message.view), message.title)

    @on(TerminalView.ProgressChanged)
    def take_progress(self, message: TerminalView.ProgressChanged) -> None:
        """Take a progress."""
        message.stop()
        self.progressed(self.session_of(message.view), message.progress)

    @on(TerminalView.Bell)
    def take_bell(self, message: TerminalView.Bell) -> None:
        """Take a bell."""
        message.stop()
        self.belled(self.session_of(message.view))

    @on(TerminalView.Notified)
    def take_notification(self, message: TerminalView.Notified) -> None:
        """Take a notification."""
        message.stop()
        self.notified(self.session_of(message.view), message.title, message.body)

    @on(TerminalView.InputRefused)
    def say_refused(self, message: TerminalView.InputRefused) -> None:
        """Say that input did not get through."""
        message.stop()
        self.say(message.text, level="warning")

    # What the user copies

    @on(TerminalView.Copied)
    def copy(self, message: TerminalView.Copied) -> None:
        """Put on the clipboard what was chosen in a terminal; the prefix and `]` paste it, too."""
        message.stop()
        self.put_on_clipboard(message.text)
        lines = message.text.count("\n") + 1
        what = f"{lines} lines" if lines > 1 else size_words(len(message.text))
        self.say(
            f"{what} copied",
            f"{self.cloche.prefix_name} ] pastes it into an agent's screen",
            "done",
        )

    def put_on_clipboard(self, text: str) -> None:
        """Ask the user's terminal to take a text, and keep it for pasting here."""
        # A lone surrogate has no bytes; such a text would end the program.
        self.cloche.copy_to_clipboard(text.encode("utf-8", "replace").decode())

    def action_paste_copied(self) -> None:
        """Paste what was copied last into the terminal that has the keys."""
        view, prefix = self.focused, self.cloche.prefix_name
        if not isinstance(view, TerminalView):
            hint = f"enter goes into one, then {prefix} ] pastes"
            self.say("No agent's screen has the keys.", hint)
        elif not self.cloche.clipboard:
            self.say("Nothing was copied here yet.", f"{prefix} [ copies from an agent's screen")
        else:
            view.paste(self.cloche.clipboard)

    @on(TerminalView.LinkClicked)
    def show_link(self, message: TerminalView.LinkClicked) -> None:
        """Say where a link leads, host first: what it stands on may say otherwise."""
        message.stop()
        self._link = message.uri
        host = urlsplit(message.uri).hostname or "nowhere"
        text = f"Link to {safe_name(host).text}: {safe_name(message.uri).text}"
        self.say(text, f"{self.cloche.prefix_name} y copies the address", whole=True)

    def action_copy_link(self) -> None:
        """Copy the address of the link that was clicked last."""
        if not self._link:
            self.say("No link was clicked yet.")
            return
        self.put_on_clipboard(self._link)
        self.say("The address is on your clipboard.", level="done")
