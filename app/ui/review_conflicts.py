"""Conflicts of a review, and the request for changes: what goes on after deciding."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual import on

from app.protocol_review import Resolve
from app.ui.conflict_dialog import ConflictDialog
from app.ui.failures import told
from app.ui.messages import ConflictsArrived, TaskFailed
from app.ui.review_remarks import ReviewRemarks
from app.ui.workers import work

if TYPE_CHECKING:
    from app.protocol_review import Conflict, ConflictChoice
    from app.services.ports import SessionPort
    from app.ui.dialogs import MergeAnswer

CALM_SECONDS = 0.3
"""Nothing was decided for this long: conflicts are asked for."""

NAMES: dict[str, ConflictChoice] = {
    "yours": "yours",
    "agent": "agent",
    "both": "both",
    "both-reversed": "both-reversed",
    "base": "base",
    "text": "text",
}


class ReviewConflicts(ReviewRemarks):
    """Asks the keeper for conflicts when there may be some, and lets the user solve them."""

    disputes: tuple[Conflict, ...] = ()
    wants_conflicts = False
    """The user asked to see them."""

    def action_conflicts(self) -> None:
        """Show where what is accepted meets what you changed."""
        if self.session is not None:
            self.wants_conflicts = True
            self.read_conflicts(self.session)

    def merge_answered(self, answer: MergeAnswer | None) -> None:
        """Go on from the summary of a merge: to the conflicts, or write."""
        if answer == "conflicts":
            self.action_conflicts()
        super().merge_answered(answer)

    def look_for_conflicts(self) -> None:
        """Ask for conflicts when something accepted is in a file that the user changed too.

        The keeper merges every such file for its answer: one for a run of decisions is enough.
        """
        files = () if self.changes is None else self.changes.files
        may = any(file.drift and file.decision in ("accepted", "mixed") for file in files)
        if self.session is not None and (may or self.disputes):
            self.read_conflicts(self.session, CALM_SECONDS)

    @work("conflicts", exclusive=True)
    async def read_conflicts(self, session: SessionPort, calm: float = 0.0) -> None:
        """Fetch the conflicts, after `calm` seconds in which nobody asked again."""
        await asyncio.sleep(calm)
        try:
            self.post_message(ConflictsArrived(tuple(await session.conflicts())))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @on(ConflictsArrived)
    def take_conflicts(self, message: ConflictsArrived) -> None:
        """Show how many are open; in the dialog, or because it was asked for, each of them."""
        self.disputes = message.conflicts
        self.conflicts = tuple(dict.fromkeys(one.path for one in self.disputes if not one.choice))
        self.show_list()
        self.show_head()
        self.show_place()
        asked, self.wants_conflicts = self.wants_conflicts, False
        dialog = self.conflict_dialog()
        if dialog is not None:
            dialog.take(self.disputes)
        elif asked and self.disputes:
            first = [n for n, one in enumerate(self.disputes) if not one.choice]
            here = [n for n in first if self.disputes[n].path == self.path]
            at = (here or first or [0])[0]
            shown = ConflictDialog(self.disputes, self.glyphs, self.solve, at)
            self.cloche.push_screen(shown, lambda _: self._conflicts_closed(shown))
        elif asked:
            self.say("There is no conflict: what you accepted fits your files.", "", "done")

    def conflict_dialog(self) -> ConflictDialog | None:
        """Return the dialog where it is open."""
        screens = self.cloche.screen_stack
        return next((one for one in screens if isinstance(one, ConflictDialog)), None)

    def _conflicts_closed(self, dialog: ConflictDialog) -> None:
        if dialog.wants_merge:
            self.action_merge()

    def solve(self, conflict: Conflict, choice: str, text: bytes) -> None:
        """Tell the keeper what solves a conflict; its event shows what became of it."""
        session = self.session
        if session is not None:
            known = NAMES.get(choice)
            if known is None:
                asked = Resolve(conflict.path, "open", conflict.id)
            else:
                asked = Resolve(conflict.path, known, conflict.id, text)
            self.send_choice(session, asked)

    @work("decide")
    async def send_choice(self, session: SessionPort, asked: Resolve) -> None:
        """Solve a conflict in its turn, then look at all of them again."""
        try:
            async with self.in_turn:
                await session.resolve(asked)
                found = tuple(await session.conflicts())
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(ConflictsArrived(found))
