"""All sessions at a glance, and the screens of up to nine agents live."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on

from app.states import LIVE, can_resume
from app.ui.fleet_facts import ASKS, ORDERS, needs_of, session_of
from app.ui.fleet_keys import FLEET_BINDINGS
from app.ui.fleet_layout import FleetLayout
from app.ui.fleet_panes import RAIL_FROM, WIDE_FROM
from widgets.key_bar import Hint
from widgets.line_bar import LineBar
from widgets.line_list import LineList
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from textual import events
    from textual.binding import BindingType
    from textual.widget import Widget

COPY_HINTS = [
    Hint("v", "select"),
    Hint("y", "copy"),
    Hint("/", "search"),
    Hint("q", "leave"),
    Hint("n", "next"),
    Hint("V", "lines"),
    Hint("R", "block"),
    Hint("hjkl", "move"),
]
"""The keys of copy mode, those first that cannot be guessed; help shows them all."""

SEARCH_HINTS = [
    Hint("enter", "keep"),
    Hint("esc", "end"),
    Hint("up", "match above"),
    Hint("down", "match below"),
]
"""The keys of the line in which a search is typed."""

NEEDS_SESSION = (
    *("stop", "resume", "delete", "review", "enter_pane", "filter"),
    *("zoom", "more", "fewer", "step_pane"),
)
"""What cannot be done while there is no session."""


class FleetScreen(FleetLayout):
    """The first screen: its keys and what they move."""

    AUTO_FOCUS = ""  # the list that has the keys depends on the width
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared on instances by the base class
        (0, "-narrow"),
        (RAIL_FROM, "-normal"),
        (WIDE_FROM, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = FLEET_BINDINGS
    _need = ""
    """What the user went to last."""

    @on(LineList.Moved)
    def follow_cursor(self, message: LineList.Moved) -> None:
        """Show the session under the cursor."""
        message.stop()
        if message.view.id == "needs":
            return
        if message.view.id == "strip":
            self.rail.select(message.key)
        self.show_choice()

    @on(LineList.Chosen)
    async def open_chosen(self, message: LineList.Chosen) -> None:
        """Enter on a session goes into its screen; on a need, to what it needs."""
        message.stop()
        self.rail.select(session_of(message.key))
        self.show_panes()
        info = self.current
        if message.key.startswith(ASKS):
            self.cloche.asks.focus(message.key.removeprefix(ASKS))
        elif message.view.id == "needs" and info is not None and info.agent_state != "waiting":
            await self.run_action("review" if info.changes.files else "enter_pane")
        else:
            self.action_enter_pane()

    def focus_moved(self, widget: Widget) -> None:
        """Let the rail follow the pane that was focused."""
        for slot in self.slots:
            if slot.view is widget:
                self.tiling.use(slot.session_id)
                self.rail.select(slot.session_id)
        self.show_panes()
        self.show_strip()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """Show that the keys are Cloche's again."""
        self.show_panes()
        self.show_strip()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim what cannot be done with the session under the cursor."""
        info = self.current
        if action in NEEDS_SESSION and info is None:
            return None
        if info is not None and action == "stop":
            return True if info.state in LIVE else None
        if info is not None and action == "resume":
            return True if can_resume(info) else None
        if info is not None and action == "delete":
            return True if info.state not in LIVE else None
        return True

    def hints(self) -> list[Hint]:
        """Return the keys that make sense for the session under the cursor."""
        asked = self.ask_strip.shown is not None or bool(self.cloche.asks.questions)
        shown = [hint for hint in super().hints() if hint.enabled]
        if self.prefix_is_on and self.slot_with_keys() is not None:
            shown.insert(0, Hint("[", "copy mode"))  # the terminal itself acts on that key
        return [hint for hint in shown if asked or hint.action != "answer"]

    def owner_hints(self, owner: str) -> tuple[tuple[str, str], list[Hint]]:
        """Return who gets the keys: the agent, copy mode, or nobody while another client does."""
        lead, hints = super().owner_hints(owner)
        slot = self.slot_with_keys()
        if slot is None:
            return lead, hints
        if slot.searching:
            return ("search", "accent"), SEARCH_HINTS
        if slot.copying:
            return ("copy mode", "accent"), COPY_HINTS
        if slot.mirrored:
            text = f"{self.glyphs.mirror} {owner} is attached elsewhere"
            takes = Hint(f"{self.cloche.prefix_name} enter", "take it over", "enter_pane")
            return (text, "warning"), [takes, *hints]
        return lead, hints

    def action_next_need(self) -> None:
        """Go to the next session that needs somebody."""
        keys = [need.key for need in needs_of(self.sessions, self.glyphs)]
        if not keys:
            self.say("Nobody needs you.", level="done")
            return
        here = [at for at, key in enumerate(keys) if session_of(key) == self.rail.current_key]
        last = keys.index(self._need) if self._need in keys else -1
        at = last if last in here else here[0] if here else -1
        self._need = keys[(at + 1) % len(keys)]
        self.rail.select(session_of(self._need))
        self.cloche.asks.bring(self._need.removeprefix(ASKS))
        self.show_choice()

    def action_review(self) -> None:
        """Go through what the session changed."""
        info = self.current
        if info is None:
            return
        if not info.changes.files and info.state not in LIVE:
            self.say("It changed nothing.")
        else:
            self.cloche.open_review(info.id)

    def action_sort(self) -> None:
        """List the sessions in the next order."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self.show_rail()
        if self.home is not self.rail:  # the title that says it is not in sight
            self.say(f"The order of sessions: {self.order}.")

    # Filter

    def action_filter(self) -> None:
        """Show only the sessions that hold a text."""
        if self.zoomed:
            self.set_zoom(on=False)
        self.query_one(LineBar).open("filter")

    @on(LineBar.Changed)
    def apply_filter(self) -> None:
        """Show the sessions that hold the text."""
        self.show_rail()
        found = sum(self.rail.item_key(item) is not None for item in self.rail.items)
        self.query_one(LineBar).tell(f"{found} of {len(self.sessions)}")
        self.show_panes()

    @on(LineBar.Stepped)
    def step_in_filter(self, message: LineBar.Stepped) -> None:
        """Move in what is left."""
        self.rail.action_move(message.direction)

    @on(LineBar.Closed)
    def end_filter(self) -> None:
        """Show all sessions again; the cursor stays on the one that was found."""
        self.show_rail()
        self.show_panes()
        self.go_home()

    # The prefix inside of a terminal

    @on(TerminalView.PrefixPressed)
    def show_prefix(self) -> None:
        """Show what the next key can be."""
        self.set_prefix(True)

    @on(TerminalView.PrefixCancelled)
    def hide_prefix(self) -> None:
        """Show where the keys go again; with escape, what is said is read."""
        self.set_prefix(False)
        if self.focus_owner() and not self.asking:
            self.action_dismiss_notice()

    @on(TerminalView.PrefixCommand)
    async def run_prefix_command(self, message: TerminalView.PrefixCommand) -> None:
        """Do what a key of Cloche does."""
        message.stop()
        self.set_prefix(False)
        await self.run_key(message.key)
