"""What every screen has: the top line, the notice line, the key line, the prefix."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.binding import Binding, BindingType

from app.ui.fleet_facts import top_bar_value
from app.ui.own_keys import moved, shown_keys, with_own_key, with_own_keys
from app.ui.speaking import SpeakingScreen
from widgets.key_bar import Hint, KeyBar
from widgets.line_bar import LineBar
from widgets.notice import NoticeLine
from widgets.question_strip import QuestionStrip
from widgets.top_bar import TopBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.widget import Widget

    from app.protocol import SessionInfo
    from themes.glyphs import Glyphs
    from widgets.info_line import Fact
    from widgets.notice import Level

PREFIX_ID = "app.prefix"
"""The binding whose key the user may choose; what stands there is the usual one."""

ANSWER_KEY = "e"
"""After the prefix it gives the keys to the held connection that is asked about, everywhere."""

LAYING_OUT = (events.ScreenResume, events.Resize)
"""Events on which Textual lays the whole screen out."""

KEY_NAMES = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "plus": "+",
    "minus": "-",
    "slash": "/",
    "question_mark": "?",
    "colon": ":",
    "exclamation_mark": "!",
    "circumflex_accent": "^",
    "dollar_sign": "$",
    "percent_sign": "%",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def key_name(key: str) -> str:
    """Return a key as people write it."""
    return "+".join(KEY_NAMES.get(part, part) for part in key.split("+"))


def width_class(screen: SpeakingScreen) -> tuple[str, ...]:
    """Return the class that a screen has for the terminal's width, if it has any for widths."""
    width, steps = screen.cloche.size.width, screen.HORIZONTAL_BREAKPOINTS or ()
    return tuple(name for start, name in steps if width >= start)[-1:]


class WorkScreen(SpeakingScreen):
    """The frame of a screen. A question or the prefix takes the next key, wherever the focus is."""

    ESCAPE_TO_MINIMIZE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "app.help", "help", tooltip="Show every key", id="app.help"),
        Binding(
            "ctrl+g",
            "prefix",
            "Cloche's keys",
            show=False,
            tooltip="Then any key of Cloche, also from inside an agent's screen",
            id=PREFIX_ID,
        ),
        Binding("escape", "dismiss_notice", "close the notice", show=False, id="app.close-notice"),
    ]

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self._prefix = False

    @property
    def prefix_is_on(self) -> bool:
        """True while the next key is one of Cloche's, whoever has the focus."""
        return self._prefix

    # Frame

    async def on_event(self, event: events.Event) -> None:
        """Handle an event, and give everybody else a turn before the next one.

        Textual goes from one waiting event to the next without a pause, and draws in the middle of
        those that lay the screen out: opening a screen would be one long turn of the event loop.
        """
        if isinstance(event, LAYING_OUT):
            with self.cloche.batch_update():
                await super().on_event(event)
        else:
            await super().on_event(event)
        await asyncio.sleep(0)

    def compose(self) -> ComposeResult:
        """Put the body between the top line and the key line, styled for the width from the start.

        Textual looks at the width once everything stands, and styles all of it again.
        """
        self.add_class(*width_class(self), update=False)
        yield TopBar(glyphs=self.glyphs, id="top")
        yield from self.compose_body()
        yield NoticeLine(glyphs=self.glyphs, id="notice")
        yield KeyBar(glyphs=self.glyphs, id="keys")

    def compose_body(self) -> ComposeResult:
        """Yield what is special to the screen."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Follow the sessions."""
        self.cloche.sessions_changed.subscribe(self, self._sessions_changed)
        self._sessions_changed(self.cloche.sessions)

    def on_screen_resume(self) -> None:
        """Catch up with what changed while another screen was on top."""
        self._sessions_changed(self.cloche.sessions)
        self.refresh_keys()
        self.cloche.asks.show()

    def _sessions_changed(self, sessions: Sequence[SessionInfo]) -> None:
        workspace = str(self.cloche.workspace)
        self.query_one("#top", TopBar).show(top_bar_value(sessions, workspace))
        self.show_sessions(sessions)
        self.refresh_keys()

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Show the sessions as they are now."""

    def go_home(self) -> None:
        """Give the keys to where they are when nothing else has them."""
        home = self.AUTO_FOCUS or "#keys"
        self.set_focus(next((one for one in self.query(home) if one.focusable), None))

    # Keys

    def table(self) -> dict[str, Binding]:
        """Return this screen's own keys, without those of the widgets in it."""
        found: dict[str, Binding] = {}
        for cls in type(self).__mro__:
            if not issubclass(cls, WorkScreen):
                break
            for binding in Binding.make_bindings(cls.__dict__.get("BINDINGS", ())):
                own = moved(binding, self.cloche.keys)
                key = self.cloche.prefix if binding.id == PREFIX_ID else own.key
                found.setdefault(key, own)
        return found

    @cached_property
    def own_keys(self) -> dict[str, str]:
        """How the keys that the user moved are written: usual ones -> the user's own."""
        return shown_keys(self._usual, self.cloche.keys, key_name)

    @cached_property
    def _usual(self) -> list[Binding]:
        """The bindings of this screen as they are before the user moves any."""
        classes = [cls for cls in type(self).__mro__ if issubclass(cls, WorkScreen)]
        tables = [Binding.make_bindings(cls.__dict__.get("BINDINGS", ())) for cls in classes]
        return [binding for table in tables for binding in table]

    def own_fact(self, fact: Fact) -> Fact:
        """Return a fact that can be clicked with the user's own key for what the click does."""
        if len(fact) < 3 or not self.own_keys:
            return fact
        usual = {binding.action: key_name(binding.key) for binding in self._usual}.get(fact[2], "")
        return (with_own_key(fact[0], usual, self.own_keys.get(usual, usual)), *fact[1:])

    def say(
        self,
        text: str,
        hint: str = "",
        level: Level = "info",
        *,
        whole: bool = False,
        of_agent: bool = False,
    ) -> None:
        """Say a sentence, with the user's own keys in its hint."""
        own = with_own_keys(hint, self.own_keys)
        super().say(text, own, level, whole=whole, of_agent=of_agent)

    def hints(self) -> list[Hint]:
        """Return the shown keys, those of one action joined, in the order of their rank."""
        hints: dict[str, Hint] = {}
        for key, binding in self.table().items():
            if not binding.show or binding.id == "app.help":
                continue
            enabled = self.check_action(binding.action.partition("(")[0], ()) is not None
            if binding.action not in hints:
                shown = binding.key_display or key_name(key)
                hints[binding.action] = Hint(shown, binding.description, binding.action, enabled)
        return list(hints.values())

    def needs_key_line(self) -> bool:
        """Tell whether the answers, the keys after the prefix, or what is typed stand there."""
        typing = any(line.is_open for line in self.query(LineBar))
        return self._prefix or typing or super().needs_key_line()

    def refresh_keys(self) -> None:
        """Show the keys that work now."""
        self.lift_notice()
        bar = self.query_one("#keys", KeyBar)
        if self._choices is not None:
            bar.show([Hint(key_name(k), c.label) for k, c in self._choices.items()])
            return
        help_hint = Hint("?", "help", "app.help")
        owner = self.focus_owner()
        strip = self.focused
        if isinstance(strip, QuestionStrip):
            lead = (f"{self.glyphs.keys} keys answer the question", "warning")
            bar.show([Hint(*one) for one in strip.other_keys()], None, lead=lead)
            return
        if self._prefix:
            bar.show(self.hints(), help_hint, lead=(self.cloche.prefix_name, "warning"))
        elif owner:
            lead, own = self.owner_hints(owner)
            bar.show(own, None, lead=lead)
        else:
            bar.show(self.hints(), help_hint)

    def owner_hints(self, owner: str) -> tuple[tuple[str, str], list[Hint]]:
        """Return who gets the keys, with a token, and the keys that stay Cloche's meanwhile."""
        prefix = self.cloche.prefix_name
        own = [Hint(prefix, "then a key of Cloche")]
        if self.cloche.direct_keys:
            own += [Hint("f12", "leave", "leave_pane"), Hint("alt+1-9", "session")]
        else:
            own += [Hint(f"{prefix} f12", "leave", "leave_pane"), Hint(f"{prefix} 1-9", "session")]
        return (f"{self.glyphs.keys} keys go to {owner}", "accent"), own

    @on(KeyBar.Pressed)
    async def press_hint(self, message: KeyBar.Pressed) -> None:
        """Do what a clicked hint says."""
        message.stop()
        await self.run_action(message.action)

    async def take_typed(self, event: events.Key | events.Paste) -> bool:
        """Give a key to the open question or to the prefix; False when there is none."""
        if self._is_deaf(event):
            return True
        return isinstance(event, events.Key) and await self._take_key(event)

    async def _take_key(self, event: events.Key) -> bool:
        if self._choices is not None:
            if event.time < self._answers_from:
                return True
            choice = self._choices.get(event.key)
            self.close_question()
            if choice is not None and choice.run is not None:
                result = choice.run()
                if result is not None:
                    await result
            return True
        if self._opens_details(event) and not self._prefix:
            self.action_details()
            return True
        if self._prefix and not self.focus_owner():
            self.set_prefix(False)
            await self.run_key(event.key)
            return True
        return False

    async def run_key(self, key: str) -> bool:
        """Do what a key of this screen does, whoever has the focus."""
        if key == ANSWER_KEY and self.cloche.asks.focus():
            return True
        binding = self.table().get(key)
        if binding is None:
            if key not in ("escape", self.cloche.prefix):
                name = self.cloche.prefix_name
                self.say(f"{name} {key_name(key)} does nothing here.", f"{name} ? shows all keys")
            return False
        await self.run_action(binding.action)
        return True

    def action_prefix(self) -> None:
        """Let the next key be one of Cloche's."""
        self.set_prefix(True)

    def set_prefix(self, on: bool) -> None:
        """Show whether the next key is one of Cloche's; a terminal catches that key itself."""
        self._prefix = on
        self.refresh_keys()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Show whose keys they are."""
        self.focus_moved(event.widget)
        self.refresh_keys()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """Show whose keys they are."""
        self.refresh_keys()

    def focus_moved(self, widget: Widget) -> None:
        """Do what the screen wants when the focus moves."""
