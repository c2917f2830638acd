"""Held connections over every screen: one queue for the application, shown where the user is.

Whatever screen is in front has the strip, dialogs too. It takes no focus and no key by itself; the
prefix and `e`, or a click, give it the keys, and they go back to whom they were taken from.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final
from weakref import ref

from textual import events

from app.ui.cap_asks import CapAsked, change_by
from app.ui.egress_asks import Asked, AskQueue, given_by
from app.ui.egress_dialog import RuleDialog
from app.ui.failures import told
from app.ui.messages import AnswerFailed, AnswerTaken
from app.ui.work_screen import ANSWER_KEY, WorkScreen
from snapshot.safe_text import safe_name
from vm.egress.questions import choices
from widgets.question_strip import HeldQuestion, QuestionStrip
from widgets.top_bar import TopBar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from textual.screen import Screen
    from textual.widget import Widget

    from app.protocol import SessionInfo
    from app.services.ports import SessionPort
    from app.ui.app import ClocheApp
    from vm.egress.questions import Choice

    Giving = Callable[[SessionPort], Awaitable[str]]
    """Gives an answer to a session's keeper; what holds now, in one line."""

DEAF_SECONDS: Final = 0.5
"""How long nothing must be typed before keys count again after a question went away by itself."""


class Asking:
    """Knows the questions and who had the keys before."""

    def __init__(self, app: ClocheApp) -> None:
        self._app = app
        self._queue = AskQueue()
        self._before: ref[Widget] | None = None
        self._prefix = False
        self._deaf_until = 0.0
        self.questions: tuple[HeldQuestion, ...] = ()
        """What can be answered now, as the strip got it last."""

    # Showing

    def take(self, sessions: Sequence[SessionInfo]) -> None:
        """Take the sessions as they are now."""
        self._queue.take(sessions)
        self.show()

    def show(self) -> None:
        """Show the questions on the screen that is in front; the countdown goes on."""
        if not self._app.screen_stack:
            return
        now = time.time()
        self.questions = tuple(self._queue.shown(now))
        screen = self._app.screen
        strip = _strip_of(screen)
        if strip is None and self.questions and screen.children:
            strip = self._mounted(screen)
        if strip is not None:
            strip.show(self.questions, now)
            screen.set_class(bool(self.questions), "-asked")

    def _mounted(self, screen: Screen[object]) -> QuestionStrip:
        opener = f"{self._app.prefix_name} {ANSWER_KEY}"
        strip = QuestionStrip(glyphs=self._app.glyphs, opener=opener)
        top = next(iter(screen.query(TopBar)), None)
        screen.mount(strip, after=top)
        return strip

    @property
    def has_keys(self) -> bool:
        """Whether the strip has the focus."""
        return bool(self._app.screen_stack) and isinstance(self._app.focused, QuestionStrip)

    # Keys

    def takes(self, event: events.Key | events.Paste) -> bool:
        """Take what was typed before anybody can have seen where it would go; and the prefix."""
        if event.time < self._deaf_until:
            self._deaf_until = event.time + DEAF_SECONDS
            return True
        if isinstance(self._app.screen, WorkScreen) or not isinstance(event, events.Key):
            return False
        return self._takes_in_dialog(event)

    def _takes_in_dialog(self, event: events.Key) -> bool:
        """Let the prefix work in a dialog as well, while there is something to answer."""
        was_on, self._prefix = self._prefix, False
        if self.has_keys or not self.questions:
            return False
        if was_on and event.key == ANSWER_KEY:
            self.focus()
        elif event.key == self._app.prefix:
            self._prefix = True
        return was_on or self._prefix

    def focus(self, key: str = "") -> bool:
        """Give the keys to the strip; False where nothing is asked. `key`: this question first."""
        self.show()
        strip = _strip_of(self._app.screen)
        if strip is None or not self.questions:
            return False
        strip.bring(key)
        focused = self._app.focused
        if focused is not strip:
            self._before = None if focused is None else ref(focused)
            self._app.screen.set_focus(strip)
        return True

    def bring(self, key: str) -> None:
        """Show a question first, without giving it the keys."""
        strip = _strip_of(self._app.screen)
        if strip is not None:
            strip.bring(key)

    def left(self, message: QuestionStrip.Left) -> None:
        """Give the keys back to whom they were taken from."""
        screen = self._app.screen
        if screen.focused is not message.strip:
            return
        if message.gone:
            self._deaf_until = time.monotonic() + DEAF_SECONDS
        before = None if self._before is None else self._before()
        self._before = None
        if before is not None and before.is_attached and before.focusable:
            screen.set_focus(before)
        elif isinstance(screen, WorkScreen):
            screen.go_home()
        else:
            screen.set_focus(None)

    # Answers

    def more(self, held: HeldQuestion) -> None:
        """Show every answer with the rule that it writes."""
        asked = held.about
        assert isinstance(asked, Asked)
        about = f"{held.target}  wanted by {held.who}"
        dialog = RuleDialog(about, choices(asked.question), self._app.glyphs)
        self._app.push_screen(dialog, lambda chosen: self._chosen(held, chosen))

    def _chosen(self, held: HeldQuestion, chosen: Choice | None) -> None:
        asked = held.about
        assert isinstance(asked, Asked)
        if chosen is not None:
            self._give(held, asked.session, _choosing(asked, chosen))

    def answer(self, held: HeldQuestion, key: str) -> None:
        """Answer a question as its key says."""
        about = held.about
        if isinstance(about, CapAsked):
            change = change_by(about, key)
            self._give(held, about.session, lambda session: session.egress_cap(change))
            return
        assert isinstance(about, Asked)
        chosen = given_by(about.question, key)
        if chosen is not None:
            self._give(held, about.session, _choosing(about, chosen))

    def _give(self, held: HeldQuestion, session: str, give: Giving) -> None:
        self._queue.give(held)
        self.show()
        work = self._answer(held.key, session, give)
        self._app.run_worker(work, group="answer", exit_on_error=False)

    async def _answer(self, key: str, session_id: str, give: Giving) -> None:
        """Tell the keeper, and say what came of it."""
        try:
            session = await self._app.fleet.open(session_id)
            try:
                word = await give(session)
            finally:
                await session.close()
        except self._app.failures as error:
            self._app.post_message(AnswerFailed(key, *told(error)))
        else:
            self._app.post_message(AnswerTaken(safe_name(word).text))

    def failed(self, key: str) -> None:
        """Show a question again whose answer did not arrive."""
        self._queue.take_back(key)
        self.show()


def _choosing(asked: Asked, chosen: Choice) -> Giving:
    """Return the call that gives an answer about a host, and about no port that was not shown."""
    host, ports = asked.question.host, asked.question.ports
    return lambda session: session.egress_answer(host, chosen.answer, wide=chosen.wide, ports=ports)


def _strip_of(screen: Screen[object]) -> QuestionStrip | None:
    return next(iter(screen.query(QuestionStrip)), None)
