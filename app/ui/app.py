"""The workstation: one Textual application over all sessions of the user."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import events, on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.signal import Signal
from textual.worker import Worker, WorkerState

from app.errors import AppError
from app.prefix import DEFAULT as DEFAULT_PREFIX
from app.prefix import prefix_name
from app.services.colours import Colours
from app.services.egress_rules import NoEgress
from app.services.layouts import NoLayouts
from app.services.outside import Outside
from app.ui.asking import Asking
from app.ui.egress_screen import EgressScreen
from app.ui.failures import told
from app.ui.fleet_facts import newly_mistaken, newly_paused
from app.ui.fleet_screen import FleetScreen
from app.ui.help_screen import HelpScreen
from app.ui.housekeeping import Housekeeping
from app.ui.keys import movable_places
from app.ui.messages import AnswerFailed, AnswerTaken, SessionsArrived, TaskFailed
from app.ui.own_keys import read_keys
from app.ui.plain import keep_plain
from app.ui.review_screen import ReviewScreen
from app.ui.theming import install_themes
from app.ui.turns import Turns
from app.ui.work_screen import PREFIX_ID, WorkScreen
from app.ui.workers import work
from snapshot.errors import SnapshotError
from themes.glyphs import UNICODE, Glyphs
from themes.palette import DEFAULT, builtin_palettes
from vm.errors import VMError
from widgets.question_strip import QuestionStrip
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from textual._path import CSSPathType
    from textual.screen import Screen
    from textual.theme import Theme

    from app.config import Bell
    from app.protocol import SessionInfo
    from app.services.egress_rules import EgressPort
    from app.services.layouts import LayoutsPort
    from app.services.ports import FleetPort
    from app.ui.terminals import Terminals
    from widgets.notice import Level


HOUSEKEEPING_SECONDS = 5
"""How often is looked whether it is time for a garbage collection."""


COUNTDOWN_SECONDS = 1
"""How often the time that held connections still wait is written anew."""


class ClocheApp(App[None], inherit_bindings=False):
    """Knows the sessions and which screen is shown; the screens do the rest.

    Textual's own application keys (ctrl+q, ctrl+c, ctrl+p) are not inherited: they belong to the
    agents. The command palette is reached by a key of the screens.
    """

    TITLE = "cloche"
    CSS_PATH: ClassVar[CSSPathType | None] = [
        "shared.tcss",
        "fleet.tcss",
        "review.tcss",
        "egress.tcss",
    ]
    ESCAPE_TO_MINIMIZE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "help", "help", show=False, id="app.help-f1"),
        Binding("f2", "command_palette", "commands", show=False, id="app.palette"),
        Binding("ctrl+q", "leave", "leave", show=False, id="app.leave-ctrl-q"),
    ]

    failures = (AppError, VMError, SnapshotError, OSError, TimeoutError)
    """What a worker turns into a sentence; anything else is a bug and ends the program."""

    def __init__(
        self,
        workspace: Path,
        fleet: FleetPort,
        terminals: Terminals,
        *,
        glyphs: Glyphs = UNICODE,
        theme: str = DEFAULT,
        bell: Bell = "mark",
        prefix: str = DEFAULT_PREFIX,
        direct_keys: bool = True,
        layouts: LayoutsPort | None = None,
        egress: EgressPort | None = None,
        outside: Outside | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.workspace = workspace
        self.fleet = fleet
        self.terminals = terminals
        self.layouts: LayoutsPort = layouts or NoLayouts()
        self.egress: EgressPort = egress or NoEgress()
        self.keys = read_keys(keys or {}, movable_places(), prefix)
        """The keys that the user moved, by the names of their bindings."""
        self.outside = outside or Outside()
        """Saves and opens both sides of a file."""
        self.glyphs = glyphs
        self.bell_wish = bell
        """What an agent's bell does."""
        self.prefix, self.prefix_name = prefix, prefix_name(prefix)
        """The key that stays Cloche's in an agent's screen, and how people write it."""
        self.direct_keys = direct_keys
        """Whether alt+1 … alt+9 and f12 stay Cloche's there, too."""
        self.colours = Colours()
        self.strict = bool(os.environ.get("CLOCHE_DEBUG"))
        """Errors that nobody foresaw end the program and show where they came from."""
        self.housekeeping = Housekeeping()
        self.asks = Asking(self)
        self.turns = Turns(self, self.deliver, self.show_bug)
        self.sessions: tuple[SessionInfo, ...] = ()
        self.sessions_changed: Signal[tuple[SessionInfo, ...]] = Signal(self, "sessions")
        install_themes(self, theme)
        keep_plain(cast("App[object]", self), self._filters)  # those that Textual itself chose

    def get_default_screen(self) -> Screen[None]:
        """Begin with the fleet."""
        return FleetScreen(self.glyphs)

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        """The screens that may show through the top one: none where that is opaque.

        Textual looks at the screens below alone, so whatever moves in the fleet would draw all of
        the screen that covers it again.
        """
        stack = self.screen_stack
        if stack and stack[-1].styles.background.a == 1:
            return []
        return super()._background_screens  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def on_mount(self) -> None:
        """Begin to follow the sessions."""
        self.set_keymap({**self.keys, PREFIX_ID: self.prefix})
        self.theme_changed_signal.subscribe(self, self._recolour)
        self.follow_sessions()
        self.start_terminals()
        self.set_interval(HOUSEKEEPING_SECONDS, self.housekeeping.tick)
        self.set_interval(COUNTDOWN_SECONDS, self.asks.show)
        changes = cast("Signal[Screen[object]]", self.screen_change_signal)  # pyright: ignore[reportUnknownMemberType]
        changes.subscribe(self, self._show_asks)
        self.call_after_refresh(self.housekeeping.begin)

    def _show_asks(self, _screen: Screen[object]) -> None:
        self.asks.show()

    def _recolour(self, theme: Theme) -> None:
        palette = builtin_palettes().get(theme.name)
        if palette is not None:
            self.terminals.recolour(palette)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Say what a worker met that nobody foresaw."""
        if event.state is WorkerState.ERROR:
            self.show_bug(event.worker.error)  # pyright: ignore[reportUnknownMemberType]

    def show_bug(self, error: BaseException | None) -> None:
        """Say in one sentence that Cloche failed; with `strict` end with the traceback."""
        if error is None:
            return
        if self.strict:
            raise error
        text = f"Cloche failed: {type(error).__name__}: {told(error)[0]}"
        self.post_message(TaskFailed(text, "Show where: CLOCHE_DEBUG=1 cloche"))

    @work("sessions", exclusive=True)
    async def follow_sessions(self) -> None:
        """Turn each change of the list into a message."""
        try:
            async for sessions in self.fleet.watch():
                self.post_message(SessionsArrived(sessions))
        except self.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @work("terminals", exclusive=True)
    async def start_terminals(self) -> None:
        """Make terminals ready, or say why this host cannot show any."""
        try:
            await self.terminals.start()
        except self.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @on(SessionsArrived)
    def show_sessions(self, message: SessionsArrived) -> None:
        """Tell the screens."""
        gone = {info.id for info in self.sessions} - {info.id for info in message.sessions}
        for session_id in gone:
            self.terminals.forget(session_id)
        paused = newly_paused(self.sessions, message.sessions)
        mistake = newly_mistaken(self.sessions, message.sessions)
        self.sessions = tuple(message.sessions)
        if mistake:
            self.say(mistake, "See the rules: cloche egress rules", "warning")
        if paused is not None:
            self.say(*paused, "warning")
        self.sessions_changed.publish(self.sessions)
        self.asks.take(self.sessions)

    @on(TaskFailed)
    def show_failure(self, message: TaskFailed) -> None:
        """Say what did not work."""
        self.say(message.text, message.hint, "error")

    def say(self, text: str, hint: str = "", level: Level = "info") -> None:
        """Say a sentence on the screen that is shown, or below the dialog that lies over it."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, WorkScreen):
                screen.say(text, hint, level)
                return

    # Held connections

    @on(QuestionStrip.Wanted)
    def answer_clicked(self) -> None:
        """Give the keys to the question that was clicked."""
        self.asks.focus()

    @on(QuestionStrip.Left)
    def leave_question(self, message: QuestionStrip.Left) -> None:
        """Give the keys back."""
        self.asks.left(message)

    @on(QuestionStrip.KeysChanged)
    def show_question_keys(self) -> None:
        """Show the keys that count for the question in the last line, too."""
        if self.asks.has_keys and isinstance(self.screen, WorkScreen):
            self.screen.refresh_keys()

    @on(QuestionStrip.More)
    def show_answers(self, message: QuestionStrip.More) -> None:
        """Show every answer."""
        self.asks.more(message.question)

    @on(QuestionStrip.Answered)
    def answer_question(self, message: QuestionStrip.Answered) -> None:
        """Give the answer to the session's keeper."""
        self.asks.answer(message.question, message.answer.key)

    @on(AnswerTaken)
    def show_answer(self, message: AnswerTaken) -> None:
        """Say which rule holds now."""
        self.say(message.rule, level="done")

    @on(AnswerFailed)
    def show_failed_answer(self, message: AnswerFailed) -> None:
        """Say why an answer did not arrive."""
        self.say(message.text, message.hint, "error")
        self.asks.failed(message.key)

    async def on_event(self, event: events.Event) -> None:
        """Let what is typed wait for its turn."""
        if isinstance(event, events.InputEvent):
            self.housekeeping.touched()
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self.turns.take(event)
        else:
            await super().on_event(event)

    async def deliver(self, event: events.Key | events.Paste) -> None:
        """Give a key to an open question or to the prefix, wherever the focus is, else on."""
        screen = self.screen
        if self.asks.takes(event):
            return
        if isinstance(screen, WorkScreen) and await screen.take_typed(event):
            return
        if isinstance(event, events.Key) and event.key == "ctrl+h":
            event = self._as_backspace(event)
        await super().on_event(event)

    def _as_backspace(self, event: events.Key) -> events.Key:
        """Return ctrl+h as the Backspace that it is on many terminals; agents get what it is."""
        if isinstance(self.focused, TerminalView):
            return event
        return events.Key("backspace", "\x7f")

    # What screens and commands ask for

    def open_review(self, session_id: str) -> None:
        """Go through the changes of a session."""
        self.push_screen(ReviewScreen(self.glyphs, session_id))

    def action_egress(self) -> None:
        """Show what the agents reached and tried to reach."""
        self.push_screen(EgressScreen(self.glyphs))

    def action_help(self) -> None:
        """Show every key."""
        if not isinstance(self.screen, HelpScreen):
            below = type(self.screen)
            self.push_screen(HelpScreen(below, self.glyphs, self.prefix_name, self.keys))

    def action_leave(self) -> None:
        """End this program; sessions go on."""
        self.exit()

    async def on_unmount(self) -> None:
        """End our own children."""
        await self.turns.close()
        await self.layouts.close()
        await self.terminals.close()
        await self.colours.close()
        self.outside.close()
        self.housekeeping.end()

    def action_theme(self, name: str) -> None:
        """Use another theme."""
        if name in builtin_palettes():
            self.theme = name

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Yield what the command palette offers: the screen's keys by name, themes, leaving."""
        if isinstance(screen, WorkScreen):
            yield from screen_commands(screen)
        for palette in builtin_palettes().values():
            use = partial(self.action_theme, palette.name)
            yield SystemCommand(f"Theme: {palette.title}", "Use these colours", use)
        yield SystemCommand("Keys", "Show every key", self.action_help)


def screen_commands(screen: WorkScreen) -> Iterable[SystemCommand]:
    """Yield the keys of a screen as commands: those that say what they do."""
    for binding in screen.table().values():
        if binding.tooltip:
            yield SystemCommand(
                binding.description.capitalize(),
                f"{binding.tooltip} (key {binding.key_display or binding.key})",
                partial(screen.run_action, binding.action),
            )
