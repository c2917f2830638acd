"""Starting, stopping, resuming and deleting sessions: asked for here, done by keepers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual import on
from textual.worker import WorkerState

from app.states import LIVE, OVER, can_resume
from app.ui.dialogs import NewSession, NewSessionDialog
from app.ui.failures import told
from app.ui.fleet_facts import age
from app.ui.fleet_view import FleetView
from app.ui.messages import SessionStarted, StartFailed, TaskDone, TaskFailed
from app.ui.speaking import Choice
from app.ui.workers import work
from app.wording import plural
from snapshot.safe_text import safe_name
from vm.machine.accel import EMULATED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from textual.worker import Worker

    from app.protocol import SessionInfo


class FleetTasks(FleetView):
    """What can be done with a session as a whole."""

    _emulated: frozenset[str] | None = None
    """Sessions that are known to be emulated; None until the first look at the fleet."""
    _told_emulated = False
    _new_dialog: NewSessionDialog | None = None

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Show the sessions; the first one that starts and is emulated says why, once."""
        super().show_sessions(sessions)
        why = {info.id: told for info in sessions for told in info.notices if EMULATED in told}
        fresh = [
            why[key] for key in why if self._emulated is not None and key not in self._emulated
        ]
        self._emulated = frozenset(why)
        if fresh and not self._told_emulated and not self.asking:
            self._told_emulated = True
            self.say(safe_name(fresh[0]).text, "cloche doctor")

    def action_new(self) -> None:
        """Ask what to start."""
        agents, folder = self.cloche.fleet.agents(), self.cloche.workspace
        self._new_dialog = NewSessionDialog(agents, folder, self.glyphs, self._start_chosen)
        self.cloche.push_screen(self._new_dialog)

    def _start_chosen(self, wanted: NewSession) -> None:
        self.say(f"Starting {wanted.agent}: the snapshot of its workspace is taken.")
        self.start_session(wanted)

    @work("start")
    async def start_session(self, wanted: NewSession) -> None:
        """Start a session."""
        try:
            fleet = self.cloche.fleet
            session_id = await fleet.start(wanted.agent, wanted.workspace, wanted.name)
        except self.cloche.failures as error:
            self.post_message(StartFailed(*told(error)))
        else:
            self.post_message(SessionStarted(session_id))

    @on(SessionStarted)
    def show_started(self, message: SessionStarted) -> None:
        """Put the cursor on the new session as soon as it is listed."""
        if (dialog := self._open_dialog()) is not None:
            dialog.close()
        if not self.rail.select(message.session_id):
            self.wanted = message.session_id
        self.show_panes()
        self.show_strip()
        self.refresh_keys()

    @on(StartFailed)
    def show_not_started(self, message: StartFailed) -> None:
        """Say why no session was started: in the dialog, where that is still open."""
        dialog = self._open_dialog()
        if dialog is None:
            self.say(message.text, message.hint, "error")
            return
        self.action_dismiss_notice()
        dialog.refuse(message.text, message.hint)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Close the dialog over what would be said of a bug in a start."""
        group: str = event.worker.group  # pyright: ignore[reportUnknownMemberType]
        dialog = self._open_dialog()
        if group == "start" and event.state is WorkerState.ERROR and dialog is not None:
            dialog.close()
        super().on_worker_state_changed(event)

    def _open_dialog(self) -> NewSessionDialog | None:
        dialog = self._new_dialog
        return dialog if dialog is not None and dialog in self.cloche.screen_stack else None

    @on(TaskFailed)
    def show_failure(self, message: TaskFailed) -> None:
        """Say what did not work."""
        self.say(message.text, message.hint, "error")

    @on(TaskDone)
    def show_done(self, message: TaskDone) -> None:
        """Say what was done."""
        self.say(message.text, message.hint, "done")

    def action_stop(self) -> None:
        """End the machine of the session under the cursor, after a question."""
        info = self.current
        if info is not None and info.state in LIVE:
            name = safe_name(info.name or info.id).text
            word = "is working" if info.agent_state == "working" else f"is {info.agent_state}"
            kept = f"{self._changes_text(info)} stay" if info.changes.files else "nothing is lost"
            text = f"Stop {name}? Its agent {word} and ends; {kept}."
            self.ask(
                text,
                {
                    "y": Choice("stop it", lambda: self._stop(info.id, name)),
                    "escape": Choice("let it run"),
                },
            )

    def _changes_text(self, info: SessionInfo) -> str:
        counts = info.changes
        noun = plural(counts.files, "file")
        return f"+{counts.added} {self.glyphs.minus}{counts.removed} in {counts.files} {noun}"

    def _stop(self, session_id: str, name: str) -> None:
        self.say(f"Stopping {name}: its last changes are fetched.")
        self.run_task(self.cloche.fleet.stop(session_id), f"{name} is stopped.", "R resumes it")

    def action_resume(self) -> None:
        """Start the agent of the session under the cursor again, and its machine if it has none."""
        info = self.current
        if info is not None and can_resume(info):
            name = safe_name(info.name or info.id).text
            self.say(f"{name} boots again." if info.state in OVER else f"{name} starts again.")
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
            read_first=True,
        )

    def _delete(self, session_id: str, name: str) -> None:
        self.run_task(self.cloche.fleet.remove(session_id), f"{name} is deleted.", "")

    @work("tasks")
    async def run_task(self, task: Awaitable[None], done: str, hint: str) -> None:
        """Wait for something that a keeper does and say how it went."""
        try:
            await task
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            if done:
                self.post_message(TaskDone(done, hint))
