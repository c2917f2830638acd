"""Both sides of a file for other programs: saved, and opened where the user says so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.services.patches import MAX_COPIED, accepted_patch
from app.ui.failures import told
from app.ui.messages import TaskDone, TaskFailed
from app.ui.review_found import ReviewFound
from app.ui.speaking import Choice
from app.ui.workers import work

if TYPE_CHECKING:
    from app.protocol import Changes, FileChange
    from app.services.ports import SessionPort
    from app.ui.dialogs import MergeAnswer


class ReviewOutside(ReviewFound):
    """Asks first: a program that reads an agent's bytes may have faults."""

    def action_outside(self) -> None:
        """Ask whether both sides of the file are to be saved, or opened as well."""
        change, session = self.change, self.session
        if change is None or session is None:
            return
        if not (change.base or change.agent):
            self.say("There is nothing of this file to look at.")
            return
        program = self.cloche.outside.program
        choices = {
            "s": Choice("save both sides", lambda: self._save(session, change, opened=False))
        }
        if program:
            choices["o"] = Choice(
                f"and open them with {program}",
                lambda: self._save(session, change, opened=True),
            )
        choices["escape"] = Choice("neither")
        self.ask("An agent's file can harm the program that opens it.", choices)

    def merge_answered(self, answer: MergeAnswer | None) -> None:
        """Go on from the summary of a merge: to the patch, or as always."""
        if answer == "patch" and self.session is not None and self.changes is not None:
            self.patch_worker(self.session, self.changes)
        super().merge_answered(answer)

    @work("load")
    async def patch_worker(self, session: SessionPort, changes: Changes) -> None:
        """Copy what is accepted as a patch; save it where a clipboard cannot hold it."""
        try:
            data, left_out = await accepted_patch(session, changes)
            done = await self._hand_over(data)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
            return
        missing = f" Not in it: {', '.join(left_out[:3])}." if left_out else ""
        self.post_message(TaskDone(f"{done}{missing}", "git apply takes it"))

    async def _hand_over(self, patch: bytes) -> str:
        """Copy a patch, or save it; what was done. Raises OSError."""
        text = _text(patch)
        if text is None:
            outside = self.cloche.outside
            file = await asyncio.to_thread(outside.keep, "review.patch", patch)
            return f"The patch is saved: {file}."
        self.cloche.copy_to_clipboard(text)
        return "The patch is copied."

    def _save(self, session: SessionPort, change: FileChange, *, opened: bool) -> None:
        self.save_worker(session, change, opened=opened)

    @work("load")
    async def save_worker(self, session: SessionPort, change: FileChange, *, opened: bool) -> None:
        """Fetch both sides, write them, and open them where that was the wish."""
        outside = self.cloche.outside
        try:
            sides = [await session.blob(name) if name else None for name in _names(change)]
            files = await asyncio.to_thread(outside.save, change.path, sides)
            if opened:
                await asyncio.to_thread(outside.open, files)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            names = " and ".join(file.name for file in files)
            text = (
                f"{names} are in {files[0].parent}." if len(files) > 1 else f"{files[0]} is saved."
            )
            self.post_message(TaskDone(text, "they go when Cloche ends"))


def _text(patch: bytes) -> str | None:
    """Return a patch as a clipboard takes it; None where it is too long or no text."""
    if len(patch) > MAX_COPIED:
        return None
    try:
        text = patch.decode()
    except UnicodeDecodeError:
        return None
    printable = all(char.isprintable() or char in "\n\t" for char in text)
    return text if printable else None


def _names(change: FileChange) -> tuple[str, str]:
    return change.base, change.agent
