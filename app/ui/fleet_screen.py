"""All sessions at a glance, and the screens of one or two agents live."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from app.ui.dialogs import NewSession, NewSessionDialog
from app.ui.failures import told
from app.ui.fleet_facts import LIVE, age, needs_of, ordered, rail_items, row_of
from app.ui.messages import SessionStarted, TaskDone, TaskFailed
from app.ui.pane_slot import PaneSlot
from app.ui.work_screen import Choice, WorkScreen
from snapshot.safe_text import safe_name
from widgets.line_bar import LineBar
from widgets.line_list import LineList
from widgets.placard import ASCII_BELL, BELL, Placard
from widgets.session_rail import NeedsList, SessionRail, SessionStrip
from widgets.terminal import TerminalView

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.widget import Widget

    from app.protocol import SessionInfo
    from widgets.key_bar import Hint

TWO_PANES_FROM = 30
"""Least height of the terminal in lines for two panes on top of each other."""

RAIL_FROM = 100
"""Least width of the terminal in cells for the rail beside the panes."""

BEAT_SECONDS = 1.0
"""The signs of working agents move this slowly."""

AGE_SECONDS = 15
"""How often ages are written anew."""


class FleetScreen(WorkScreen):
    """The first screen."""

    AUTO_FOCUS = ""  # the list that has the keys depends on the width
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared on instances by the base class
        (0, "-narrow"),
        (RAIL_FROM, "-normal"),
        (160, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "new", tooltip="Start an agent on a copy of a folder", id="fleet.new"),
        Binding(
            "enter,tab",
            "enter_pane",
            "into its screen",
            tooltip="Give the keys to the session's agent",
            id="fleet.enter",
        ),
        Binding("r", "review", "review", tooltip="Go through what it changed", id="fleet.review"),
        Binding("s", "stop", "stop", tooltip="End its machine; changes stay", id="fleet.stop"),
        Binding("R", "resume", "resume", tooltip="Boot a stopped session", id="fleet.resume"),
        Binding("d", "delete", "delete", tooltip="Delete a stopped session", id="fleet.delete"),
        Binding("z", "zoom", "zoom", tooltip="One pane on the whole screen", id="fleet.zoom"),
        Binding("slash", "filter", "filter", tooltip="Show only some", id="fleet.filter"),
        Binding(
            "exclamation_mark",
            "next_need",
            "who needs me",
            key_display="!",
            tooltip="Go to the next session that needs you",
            id="fleet.next-need",
        ),
        Binding(
            "colon",
            "app.command_palette",
            "commands",
            tooltip="Find a command by its name",
            id="app.commands",
        ),
        Binding("q", "app.leave", "leave", tooltip="Leave Cloche; sessions go on", id="app.leave"),
        Binding(
            "f12",
            "leave_pane",
            "leave or enter the pane",
            show=False,
            tooltip="Take the keys back from an agent, or give them",
            id="fleet.toggle-pane",
        ),
        *(
            Binding(f"alt+{n}", f"pane({n})", f"into session {n}", show=False, id=f"fleet.pane-{n}")
            for n in range(1, 10)
        ),
    ]

    sessions: tuple[SessionInfo, ...] = ()
    zoomed = False
    _wanted = ""
    _quiet_beat = False

    def compose_body(self) -> ComposeResult:
        """Yield the rail beside the panes; on narrow screens the strip above them."""
        self._shown: list[str] = []
        yield SessionStrip(glyphs=self.glyphs, id="strip")
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield Static("SESSIONS", classes="title", markup=False)
                yield SessionRail(glyphs=self.glyphs, id="rail")
                yield Static("NEEDS YOU", classes="title", id="needs-title", markup=False)
                yield NeedsList(glyphs=self.glyphs, id="needs")
            with Vertical(id="stage"):
                yield Placard(id="empty")
                for index in range(2):
                    yield PaneSlot(self.cloche.terminals.view, self.glyphs, id=f"slot-{index}")
        yield LineBar(id="line")

    def on_mount(self) -> None:
        """Keep ages and signs moving."""
        super().on_mount()
        self.set_interval(AGE_SECONDS, self._tick)
        if self.cloche.animation_level != "none":
            self.set_interval(BEAT_SECONDS, self._beat)

    # Parts

    @property
    def rail(self) -> SessionRail:
        """The list of sessions."""
        return self.query_one("#rail", SessionRail)

    @property
    def home(self) -> Widget:
        """Where the keys are when no pane has them: the rail, or the strip on narrow screens."""
        narrow = self.zoomed or self.size.width < RAIL_FROM
        return self.query_one("#strip") if narrow else self.rail

    def go_home(self) -> None:
        """Take the keys back to the list of sessions."""
        self.set_focus(self.home)

    @property
    def slots(self) -> list[PaneSlot]:
        """The places for panes."""
        return list(self.query(PaneSlot))

    @property
    def current(self) -> SessionInfo | None:
        """The session that keys are about."""
        return self._info(self.rail.current_key or "")

    def _info(self, session_id: str) -> SessionInfo | None:
        return next((info for info in self.sessions if info.id == session_id), None)

    def slot_of(self, session_id: str) -> PaneSlot | None:
        """Return the pane that shows a session now."""
        shown = (slot for slot in self.slots if slot.display and slot.session_id == session_id)
        return next(shown, None)

    def focus_owner(self) -> str:
        """Return the name of the session whose agent gets the keys."""
        for slot in self.slots:
            info = self._info(slot.session_id)
            if slot.has_keys and info is not None:
                return safe_name(info.name or info.id).text
        return ""

    # Showing

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Show the sessions as they are now."""
        self.sessions = tuple(ordered(sessions, str(self.cloche.workspace)))
        self._show_rail()
        if self._wanted and self.rail.select(self._wanted):
            self._wanted = ""
        self._show_needs()
        self._show_panes()
        self._show_strip()

    def _show_rail(self) -> None:
        line = self.query_one(LineBar)
        needle = line.text if line.is_open else ""
        self.rail.set_items(rail_items(self.sessions, self.glyphs, time.time(), needle))
        self.rail.styles.height = max(1, self.rail.row_count)

    def _show_needs(self) -> None:
        needs = needs_of(self.sessions, self.glyphs)
        listed = self.query_one("#needs", NeedsList)
        listed.set_items(needs)
        listed.styles.height = max(1, min(8, len(needs)))
        listed.display = self.query_one("#needs-title").display = bool(needs)

    def _show_strip(self) -> None:
        now = time.time()
        rows = [row_of(info, n, self.glyphs, now) for n, info in enumerate(self.sessions, 1)]
        strip = self.query_one("#strip", SessionStrip)
        strip.show(rows, self.rail.current_key or "")

    def _capacity(self) -> int:
        if self.zoomed or self.size.height < TWO_PANES_FROM:
            return 1
        return 2

    def _choose_shown(self) -> list[str]:
        """Keep what is shown where it is; only the pane of the last choice changes."""
        current = self.rail.current_key
        known = [info.id for info in self.sessions]
        shown = [session_id for session_id in self._shown if session_id in known]
        if current is not None and current not in shown:
            last = self._last_current if self._last_current in shown else None
            if last is not None and len(shown) >= self._capacity():
                shown[shown.index(last)] = current
            else:
                shown.append(current)
        for info in self.sessions:
            if len(shown) < self._capacity() and info.id not in shown and info.state in LIVE:
                shown.append(info.id)
        if current is not None:
            if self._capacity() == 1:
                shown = [current]
            self._last_current = current
        return shown[: self._capacity()]

    _last_current = ""

    def _show_panes(self) -> None:
        self._show_empty()
        self._shown = self._choose_shown()
        order = [info.id for info in self.sessions]
        self._shown.sort(key=order.index)
        now = time.time()
        for index, slot in enumerate(self.slots):
            info = self._info(self._shown[index]) if index < len(self._shown) else None
            slot.display = info is not None
            if info is not None:
                row = row_of(info, order.index(info.id) + 1, self.glyphs, now)
                slot.show(info, row)
        if self.focused is None and self.is_current:
            self.go_home()

    def _show_empty(self) -> None:
        empty = self.query_one("#empty", Placard)
        empty.display = not self.sessions
        self.set_class(not self.sessions, "-empty")
        if not self.sessions:
            folder = safe_name(str(self.cloche.workspace)).text
            lines = [
                f"An agent works on a copy of {folder}, in a machine of its own.",
                "Your files change only when you merge what you accepted.",
            ]
            art = ASCII_BELL if self.glyphs.edge == "|" else BELL
            keys = [("n", "start an agent"), ("?", "all keys"), ("q", "leave")]
            empty.say("No session yet", lines, keys, art)

    def _tick(self) -> None:
        if self.is_current and self.sessions:
            self._show_rail()
            self._show_panes()

    def _beat(self) -> None:
        if self.is_current:
            self._quiet_beat = not self._quiet_beat
            self.rail.beat(quiet=self._quiet_beat)

    def on_resize(self) -> None:
        """Show one pane or two, and keep the keys where they can be seen."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        if self.focused is None or isinstance(self.focused, LineList | SessionStrip):
            self.go_home()
        self._show_panes()

    # What the user does

    @on(LineList.Moved)
    def follow_cursor(self, message: LineList.Moved) -> None:
        """Show the session under the cursor."""
        message.stop()
        if message.view.id == "needs":
            return
        if message.view.id == "strip":
            self.rail.select(message.key)
        self._show_panes()
        self._show_strip()
        self.refresh_keys()

    @on(LineList.Chosen)
    async def open_chosen(self, message: LineList.Chosen) -> None:
        """Enter on a session goes into its screen; on a need, to what it needs."""
        message.stop()
        self.rail.select(message.key)
        self._show_panes()
        info = self.current
        if message.view.id == "needs" and info is not None and info.agent_state != "waiting":
            await self.run_action("review" if info.changes.files else "enter_pane")
        else:
            self.action_enter_pane()

    def focus_moved(self, widget: Widget) -> None:
        """Let the rail follow the pane that was focused."""
        for slot in self.slots:
            if slot.view is widget:
                self.rail.select(slot.session_id)
        self._show_panes()
        self._show_strip()

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """Show that the keys are Cloche's again."""
        super().on_descendant_blur(event)
        self._show_panes()
        self._show_strip()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Dim what cannot be done with the session under the cursor."""
        info = self.current
        needs_session = ("stop", "resume", "delete", "review", "enter_pane", "zoom", "filter")
        if action in needs_session and info is None:
            return None
        if info is not None and action == "stop":
            return True if info.state in LIVE else None
        if info is not None and action in ("resume", "delete"):
            return True if info.state not in LIVE else None
        return True

    def hints(self) -> list[Hint]:
        """Return the keys that make sense for the session under the cursor."""
        return [hint for hint in super().hints() if hint.enabled]

    def action_new(self) -> None:
        """Ask what to start."""
        dialog = NewSessionDialog(self.cloche.fleet.agents(), self.cloche.workspace, self.glyphs)
        self.cloche.push_screen(dialog, self._start_chosen)

    def _start_chosen(self, wanted: NewSession | None) -> None:
        if wanted is not None:
            self.say(f"Starting {wanted.agent}: the snapshot of its workspace is taken.")
            self.start_session(wanted)

    @work(group="start", exit_on_error=False)
    async def start_session(self, wanted: NewSession) -> None:
        """Start a session."""
        try:
            fleet = self.cloche.fleet
            session_id = await fleet.start(wanted.agent, wanted.workspace, wanted.name)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(SessionStarted(session_id))

    @on(SessionStarted)
    def show_started(self, message: SessionStarted) -> None:
        """Put the cursor on the new session as soon as it is listed."""
        if not self.rail.select(message.session_id):
            self._wanted = message.session_id
        self._show_panes()
        self._show_strip()
        self.refresh_keys()

    @on(TaskFailed)
    def show_failure(self, message: TaskFailed) -> None:
        """Say what did not work."""
        self.say(message.text, message.hint, "error")

    @on(TaskDone)
    def show_done(self, message: TaskDone) -> None:
        """Say what was done."""
        self.say(message.text, message.hint, "done")

    def action_enter_pane(self) -> None:
        """Give the keys to the agent of the session under the cursor."""
        info = self.current
        slot = None if info is None else self.slot_of(info.id)
        if info is None or slot is None:
            return
        if slot.view is not None:
            self.set_focus(slot.view)
        elif info.state == "starting":
            self.say("Its machine still boots; its screen appears by itself.")
        else:
            self.say("It has no machine now.", "R resumes it, r reviews what it changed")

    def action_pane(self, number: int) -> None:
        """Go into the screen of the session with a number."""
        if 1 <= number <= len(self.sessions):
            self.rail.select(self.sessions[number - 1].id)
            self._show_panes()
            self.action_enter_pane()
            if not self.focus_owner():
                self.go_home()
            self._show_strip()
            self.refresh_keys()

    def action_leave_pane(self) -> None:
        """Take the keys back from an agent, or give them."""
        if self.focus_owner():
            self.go_home()
        else:
            self.action_enter_pane()

    def action_next_need(self) -> None:
        """Go to the next session that needs somebody."""
        keys = [need.key for need in needs_of(self.sessions, self.glyphs)]
        if not keys:
            self.say("Nobody needs you.", level="done")
            return
        current = self.rail.current_key
        position = keys.index(current) + 1 if current in keys else 0
        self.rail.select(keys[position % len(keys)])
        self._show_panes()
        self._show_strip()
        self.refresh_keys()

    def action_zoom(self) -> None:
        """Give one pane the whole screen, or take it back."""
        self.zoomed = not self.zoomed
        self.set_class(self.zoomed, "-zoomed")
        self._fit()

    def action_review(self) -> None:
        """Go through what the session changed."""
        info = self.current
        if info is None:
            return
        if not info.changes.files and info.state not in LIVE:
            self.say("It changed nothing.")
        else:
            self.cloche.open_review(info.id)

    def action_stop(self) -> None:
        """End the machine of the session under the cursor, after a question."""
        info = self.current
        if info is not None and info.state in LIVE:
            name = safe_name(info.name or info.id).text
            word = "is working" if info.agent_state == "working" else f"is {info.agent_state}"
            text = f"Stop {name}? Its agent {word} and ends; {self._changes_text(info)} stay."
            self.ask(
                text,
                {
                    "y": Choice("stop it", lambda: self._stop(info.id, name)),
                    "escape": Choice("let it run"),
                },
            )

    def _changes_text(self, info: SessionInfo) -> str:
        counts = info.changes
        noun = "file" if counts.files == 1 else "files"
        if not counts.files:
            return "no changes"
        return f"+{counts.added} {self.glyphs.minus}{counts.removed} in {counts.files} {noun}"

    def _stop(self, session_id: str, name: str) -> None:
        self.say(f"Stopping {name}: its last changes are fetched.")
        self.run_task(self.cloche.fleet.stop(session_id), f"{name} is stopped.", "R resumes it")

    def action_resume(self) -> None:
        """Boot the session under the cursor again."""
        info = self.current
        if info is not None and info.state not in LIVE:
            name = safe_name(info.name or info.id).text
            self.say(f"{name} boots again.")
            self.run_task(self.cloche.fleet.resume(info.id), "", "")

    def action_delete(self) -> None:
        """Delete the session under the cursor, after a question in numbers."""
        info = self.current
        if info is None:
            return
        if info.state in LIVE:
            self.say("It runs, and only a stopped session can be deleted.", "s stops it")
            return
        name = safe_name(info.name or info.id).text
        lost = f"{self._changes_text(info)} that are not merged are lost for good"
        if not info.changes.files:
            lost = "it changed nothing"
        self.ask(
            f"Delete {name}, {age(time.time() - info.created)} old? {lost.capitalize()}.",
            {
                "y": Choice("delete it", lambda: self._delete(info.id, name)),
                "escape": Choice("keep it"),
            },
        )

    def _delete(self, session_id: str, name: str) -> None:
        self.run_task(self.cloche.fleet.remove(session_id), f"{name} is deleted.", "")

    @work(group="tasks", exit_on_error=False)
    async def run_task(self, task: Awaitable[None], done: str, hint: str) -> None:
        """Wait for something that a keeper does and say how it went."""
        try:
            await task
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            if done:
                self.post_message(TaskDone(done, hint))

    # Filter

    def action_filter(self) -> None:
        """Show only the sessions that hold a text."""
        if self.zoomed:
            self.action_zoom()
        self.query_one(LineBar).open("filter")

    @on(LineBar.Changed)
    def apply_filter(self) -> None:
        """Show the sessions that hold the text."""
        self._show_rail()
        found = sum(self.rail.item_key(item) is not None for item in self.rail.items)
        self.query_one(LineBar).tell(f"{found} of {len(self.sessions)}")
        self._show_panes()

    @on(LineBar.Stepped)
    def step_in_filter(self, message: LineBar.Stepped) -> None:
        """Move in what is left."""
        self.rail.action_move(message.direction)

    @on(LineBar.Closed)
    def end_filter(self) -> None:
        """Show all sessions again; the cursor stays on the one that was found."""
        self._show_rail()
        self._show_panes()
        self.go_home()

    # The prefix inside of a terminal

    @on(TerminalView.PrefixPressed)
    def show_prefix(self) -> None:
        """Show what the next key can be."""
        self.set_prefix(True)

    @on(TerminalView.PrefixCancelled)
    def hide_prefix(self) -> None:
        """Show where the keys go again."""
        self.set_prefix(False)

    @on(TerminalView.ClipboardRequested)
    def ask_clipboard(self, message: TerminalView.ClipboardRequested) -> None:
        """Let the user decide whether an agent writes the clipboard."""
        message.stop()
        text = message.text
        noun = "character" if len(text) == 1 else "characters"
        self.ask(
            f"The agent wants to put {len(text)} {noun} on your clipboard.",
            {
                "y": Choice("let it", lambda: self.cloche.copy_to_clipboard(text)),
                "escape": Choice("no"),
            },
        )

    @on(TerminalView.StateChanged)
    def show_terminal_state(self, message: TerminalView.StateChanged) -> None:
        """Say in the pane's header when its terminal is out of order."""
        message.stop()
        for slot in self.slots:
            if slot.view is message.view:
                broken = message.state in ("restarting", "lost", "broken")
                slot.trouble = (message.message or message.state) if broken else ""
        self._show_panes()

    @on(TerminalView.PrefixCommand)
    async def run_prefix_command(self, message: TerminalView.PrefixCommand) -> None:
        """Do what a key of Cloche does."""
        message.stop()
        self.set_prefix(False)
        await self.run_key(message.key)
