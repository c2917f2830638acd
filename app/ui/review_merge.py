"""The keys of a review that touch the workspace: merge, and taking a merge back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.protocol import MergeRequest
from app.services.merge_facts import merge_facts
from app.ui.dialogs import MergedDialog, MergeDialog
from app.ui.failures import told
from app.ui.messages import (
    MergeDone,
    MergePlanned,
    MergeUndone,
    TaskFailed,
)
from app.ui.speaking import Choice
from app.ui.work_screen import WorkScreen
from app.ui.workers import work
from app.wording import plural
from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    from app.protocol import Changes, MergeReport, UndoReport
    from app.services.ports import SessionPort
    from app.ui.dialogs import MergeAnswer


class MergeKeys(WorkScreen):
    """Merging, for a screen that shows changes."""

    session: SessionPort | None = None
    changes: Changes | None = None
    conflicts: tuple[str, ...] = ()
    last_merge: MergeReport | None = None

    def action_merge(self) -> None:
        """Ask the keeper what a merge would do, and show it."""
        if self.session is None or self.changes is None:
            return
        decided = [h.decision for file in self.changes.files for h in file.hunks]
        decided += [file.decision for file in self.changes.files]
        if not {"accepted", "mixed"} & set(decided):
            self.say("Nothing is accepted yet.", "space accepts the hunk under the cursor")
            return
        self.merge_worker(self.session, dry_run=True)

    @work("merge", exclusive=True)
    async def merge_worker(self, session: SessionPort, *, dry_run: bool) -> None:
        """Merge, or ask what a merge would do."""
        try:
            report = await session.merge(MergeRequest(dry_run=dry_run))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(MergePlanned(report) if dry_run else MergeDone(report))

    @on(MergePlanned)
    def show_plan(self, message: MergePlanned) -> None:
        """Show what would be written and wait for the word."""
        if self.changes is not None:
            self.conflicts = message.report.conflicts
            facts = merge_facts(self.changes, message.report)
            self.cloche.push_screen(MergeDialog(facts, self.glyphs), self.merge_answered)

    def merge_answered(self, answer: MergeAnswer | None) -> None:
        """Write, if that was the word."""
        if answer == "write" and self.session is not None:
            self.merge_worker(self.session, dry_run=False)

    @on(MergeDone)
    def show_merged(self, message: MergeDone) -> None:
        """Show what was written, with conflicts by name."""
        report = message.report
        self.conflicts = report.conflicts
        self.last_merge = report if report.written else self.last_merge
        if self.changes is not None:
            facts = merge_facts(self.changes, report)
            self.cloche.push_screen(MergedDialog(facts, self.glyphs), self._merged_answered)
        self.show_merged_state()

    def _merged_answered(self, take_back: bool | None) -> None:
        if take_back:
            self.action_take_back()
        elif self.last_merge is not None:
            count = len(self.last_merge.written)
            noun = plural(count, "file")
            self.say(f"Merged {count} {noun} into the workspace.", "T takes the merge back", "done")

    def action_take_back(self) -> None:
        """Undo the last merge, after a question in numbers."""
        merge, count = self._in_force()
        if not merge:
            self.say("Nothing of this session is merged.")
            return
        noun = "file becomes what it was" if count == 1 else "files become what they were"
        self.ask(
            f"Take the merge back? {count} {noun}.",
            {
                "y": Choice("take it back", lambda: self._undo(merge)),
                "escape": Choice("keep it"),
            },
        )

    def _in_force(self) -> tuple[str, int]:
        """Return the merge that can be taken back and how many files it wrote.

        The keeper knows; until it has told of the merge that was just done, its report does.
        """
        if self.last_merge is not None:
            return self.last_merge.merge, len(self.last_merge.written)
        if self.changes is None:
            return "", 0
        return self.changes.last_merge, self.changes.last_merge_files

    def _undo(self, merge: str) -> None:
        if self.session is not None:
            self.undo_worker(self.session, merge)

    @work("merge", exclusive=True)
    async def undo_worker(self, session: SessionPort, merge: str) -> None:
        """Take a merge back."""
        try:
            report = await session.undo(merge)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(MergeUndone(report))

    @on(MergeUndone)
    def show_undone(self, message: MergeUndone) -> None:
        """Say what was restored."""
        report = message.report
        self.conflicts = report.conflicts
        self.last_merge = None
        done = _restored(report)
        if report.conflicts:
            names = ", ".join(safe_name(path).text for path in report.conflicts[:3])
            text = f"{done}; you changed {names} since, so it stays as it is."
            self.say(text, "", "warning")
        else:
            self.say(f"{done}.", "", "done")
        self.show_merged_state()

    def show_merged_state(self) -> None:
        """Show what a merge changes: numbers, and the marks of files."""


def _restored(report: UndoReport) -> str:
    """Return what became of the files on disk, in numbers."""
    parts = [
        f"{verb} {len(paths)} {plural(len(paths), 'file')}"
        for verb, paths in (("restored", report.wrote), ("deleted", report.deleted))
        if paths
    ]
    text = " and ".join(parts) or "restored nothing"
    return text[:1].upper() + text[1:]
