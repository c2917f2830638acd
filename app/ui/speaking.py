"""How a screen speaks to the user: notices, errors with their details, questions.

Also what it does not listen to: keys that were typed before somebody can have seen what they would
answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from textual import events, on
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from app.ui.error_dialog import ErrorDialog
from widgets.ask_strip import AskStrip
from widgets.notice import NoticeLine, NoticeValue
from widgets.question_strip import QuestionStrip

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from app.ui.app import ClocheApp
    from themes.glyphs import Glyphs
    from widgets.notice import Level

DEAF_SECONDS = 0.5
"""How long nothing must be typed before keys count that a guest's doing brought here, and how long
an error or a grave question must have been in sight."""

ANSWERING = (Input, AskStrip, QuestionStrip)
"""Where an enter is an answer."""

NOTICE_SECONDS = 8
"""How long a notice that is no error stays."""


@dataclass(frozen=True)
class Choice:
    """One answer to a question."""

    label: str
    run: Callable[[], Awaitable[None] | None] | None = None
    """What happens; None only closes the question."""


class SpeakingScreen(Screen[None]):
    """A screen with a notice line."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._choices: Mapping[str, Choice] | None = None
        self._deaf_until = 0.0
        self._error_since = 0.0
        self._answers_from = 0.0

    @property
    def cloche(self) -> ClocheApp:
        """The application, with its own type."""
        return cast("ClocheApp", self.app)  # pyright: ignore[reportUnknownMemberType]

    def focus_owner(self) -> str:
        """Return who gets all keys now (an agent's name), or an empty text."""
        return ""

    def refresh_keys(self) -> None:
        """Show the keys that work now."""

    # Deaf for a moment

    def fall_deaf(self) -> None:
        """Take no key until nothing was typed for a moment: the keys of an agent came back here.

        The guest chooses that moment, and what is being typed was meant for the agent.
        """
        self._deaf_until = time.monotonic() + DEAF_SECONDS

    def _is_deaf(self, event: events.Key | events.Paste) -> bool:
        if event.time >= self._deaf_until:
            return False
        self._deaf_until = event.time + DEAF_SECONDS
        return True

    # Questions and notices

    def ask(
        self,
        text: str,
        choices: Mapping[str, Choice],
        level: Level = "warning",
        *,
        read_first: bool = False,
    ) -> None:
        """Ask in the notice line; the next key answers, any other key than a choice means no.

        `read_first`: nothing brings back what a yes does, so keys that were typed before anybody
        can have read the question do not count.
        """
        self._choices = choices
        self._answers_from = time.monotonic() + DEAF_SECONDS if read_first else 0.0
        self._show(NoticeValue(text, level=level, is_question=True))
        self.refresh_keys()

    def close_question(self) -> None:
        """Take the question away."""
        self._choices = None
        self._show(None)
        self.refresh_keys()

    @property
    def asking(self) -> bool:
        """True while a question is open."""
        return self._choices is not None

    def say(
        self,
        text: str,
        hint: str = "",
        level: Level = "info",
        *,
        whole: bool = False,
        of_agent: bool = False,
    ) -> None:
        """Say a sentence in the notice line; an error stays until it is closed.

        `whole`: rather take half of the screen than leave out the end. `of_agent`: an agent brought
        it about, not the user.
        """
        if self._choices is not None:
            return
        self._show(NoticeValue(text, hint, level, whole, of_agent=of_agent))
        self._error_since = time.monotonic()
        if level in ("info", "done"):
            value = self.query_one("#notice", NoticeLine).value
            self.set_timer(NOTICE_SECONDS, lambda: self._expire(value))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say what a worker met that nobody foresaw: a bug, but the sessions go on."""
        if event.state is WorkerState.ERROR:
            error = event.worker.error  # pyright: ignore[reportUnknownMemberType]
            self.cloche.show_bug(error)

    def _expire(self, value: NoticeValue | None) -> None:
        notice = self.query_one("#notice", NoticeLine)
        if notice.value is value and self._choices is None:
            self._show(None)

    def _show(self, value: NoticeValue | None) -> None:
        self.query_one("#notice", NoticeLine).show(value)
        self.lift_notice()

    def needs_key_line(self) -> bool:
        """Tell whether the last line has to be read now, so that no notice may lie over it.

        It has to when an agent brought the notice about while one has the keys: no agent hides from
        the user whose they are.
        """
        value = self.notice
        hides = value is not None and value.of_agent and bool(self.focus_owner())
        return self._choices is not None or hides

    def lift_notice(self) -> None:
        """Let the notice lie over the last line or above it, and say how it is closed now."""
        notice = self.query_one("#notice", NoticeLine)
        notice.set_class(self.needs_key_line(), "-lifted")
        notice.reach_by(self.cloche.prefix_name if self.focus_owner() else "")

    @property
    def notice(self) -> NoticeValue | None:
        """What the notice line says."""
        return self.query_one("#notice", NoticeLine).value

    def action_dismiss_notice(self) -> None:
        """Take the notice away."""
        self._show(None)

    # Details of an error

    def _opens_details(self, event: events.Key) -> bool:
        """Tell whether a key is an enter that somebody pressed who had seen the error line."""
        notice = self.query_one("#notice", NoticeLine)
        shown = notice.value is not None and notice.value.level == "error"
        elsewhere = self.focus_owner() or isinstance(self.focused, ANSWERING)
        late = event.time >= self._error_since + DEAF_SECONDS
        return shown and event.key == "enter" and late and not elsewhere

    def action_details(self) -> None:
        """Show the whole text of the error that is said now."""
        value = self.notice
        if value is not None and value.level == "error":
            self.cloche.push_screen(ErrorDialog(value, self.glyphs))

    @on(NoticeLine.Opened)
    def open_notice(self, message: NoticeLine.Opened) -> None:
        """Show details on a click."""
        message.stop()
        self.action_details()
