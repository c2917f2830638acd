"""What the keys of a review decide, through the keeper: the screen keeps no second truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.protocol import Decide
from app.services.documents import key_of
from app.ui.review_facts import is_open, next_open, open_lines, safe_to_accept, units_of
from app.ui.review_tree import files_under
from app.ui.review_view import ReviewView
from app.wording import counted, plural
from snapshot.safe_text import safe_name
from widgets.diff_pane import DiffPane
from widgets.file_list import FileList

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.protocol import FileChange, HunkInfo
    from widgets.diff_choice import ChosenLines

NEXT_CHOICE = {"open": "accepted", "accepted": "rejected", "rejected": "open", "mixed": "accepted"}
"""What a click on a mark makes of it."""


class ReviewDecide(ReviewView):
    """Decisions about lines, hunks, files and everything that is safe."""

    goes_on = True
    """After a decision the cursor goes to what is open next."""

    def action_go_on(self) -> None:
        """Let the cursor go on after a decision, or stay where it is."""
        self.goes_on = not self.goes_on
        where = "goes to what is open next" if self.goes_on else "stays where it is"
        self.say(f"After a decision the cursor {where}.", "ctrl+n changes that", "done")

    def _decide(self, decisions: Sequence[Decide], units: Iterable[tuple[str, str]]) -> None:
        if self.session is not None and decisions:
            taken = frozenset(units)
            self.taken |= taken
            self.send(self.session, decisions, taken)

    def _can_decide(self) -> bool:
        """Tell whether the file that is shown can be decided about; say why it cannot."""
        change = self.change
        if change is None:
            return False
        if change.note:
            self.say(f"This file cannot be merged: {safe_name(change.note).text}.")
            return False
        if self.loaded is None or self.loaded.key != key_of(change):
            self.say("The file is still being read: nothing is decided unseen.")
            return False
        return True

    def _decide_here(self, wanted: str) -> None:
        """Decide the chosen lines, else the unit under the cursor."""
        if self.change is None or not self._can_decide():
            return
        if self.pane.choice_start is not None:
            self._decide_lines(self.pane.chosen(), wanted)
            return
        index = self.unit_index()
        if index is None:
            self._decide_file(wanted)
            return
        unit = self.units[index]
        decision = "open" if unit.decision == wanted else wanted
        self._decide([_decide(self.path, decision, unit.id)], [(self.path, unit.id)])
        if decision != "open":
            self._advance(index)

    def _decide_lines(
        self, chosen: Sequence[ChosenLines], wanted: str, *, stay: bool = False
    ) -> None:
        """Decide single lines; what is so already is opened again."""
        found = [(unit, lines.changes) for lines in chosen if (unit := self._unit_of(lines))]
        if not found:
            self.say("No changed line is chosen.", "v begins a choice, escape ends it")
            return
        done = all(_letters(unit, changes) == {wanted[0]} for unit, changes in found)
        decision = "open" if done else wanted
        decisions = [_decide(self.path, decision, unit.id, changes) for unit, changes in found]
        whole = [
            (self.path, unit.id)
            for unit, changes in found
            if not is_open(unit) or len(changes) in (0, len(unit.marks))
        ]
        self._decide(decisions, whole)
        if not stay:
            self._after_lines(decision)

    def _after_lines(self, decision: str) -> None:
        """End the choice; after a decision the cursor goes on below it."""
        last = self.pane.chosen_rows.stop
        self.pane.choose(None)
        if decision != "open" and last and self.goes_on:
            self.pane.go_to(last)

    def _unit_of(self, lines: ChosenLines) -> HunkInfo | None:
        """Return what the keeper calls a unit of the pane."""
        if self.loaded is None or lines.unit >= len(self.loaded.units):
            return None
        place = self.unit_table.places.get(self.loaded.units[lines.unit])
        return None if place is None else self.units[place]

    @on(DiffPane.MarkClicked)
    def decide_mark(self, message: DiffPane.MarkClicked) -> None:
        """Give what was clicked the next decision: accepted, rejected, open again."""
        unit = self._unit_of(message.lines[0])
        if unit is None or not self._can_decide():
            return
        if message.lines[0].changes:
            letters = _letters(unit, message.lines[0].changes)
            known = _WORDS.get(letters.pop(), "mixed") if len(letters) == 1 else "mixed"
            wanted = NEXT_CHOICE[known]
            lines = message.lines
            if wanted == "open":  # what is rejected already is opened by rejecting it again
                wanted = "rejected"
            self._decide_lines(lines, wanted, stay=True)
            return
        decision = NEXT_CHOICE[unit.decision]
        self._decide([_decide(self.path, decision, unit.id)], [(self.path, unit.id)])

    def _advance(self, index: int) -> None:
        if not self.goes_on:
            return
        place = next_open(self.shown_files, self.path, index, self.taken)
        if place is not None and place[0] == self.path:
            self.go_to_unit(place[1])
        elif place is not None:
            self.open_file(*place)

    def _decide_file(self, wanted: str, *, stay: bool = False) -> None:
        change = self.change
        if change is None:
            return
        if change.note:
            self.say(f"This file cannot be merged: {safe_name(change.note).text}.")
            return
        decision = "open" if change.decision == wanted else wanted
        units = [(change.path, unit.id) for unit in units_of(change)]
        self._decide([_decide(change.path, decision)], units)
        if decision != "open" and not self.files.has_focus and not stay:
            self._advance(len(units))

    def _decide_under_cursor(self, wanted: str) -> None:
        if not self.files.has_focus:
            self._decide_here(wanted)
        elif self.files.current_key in self.by_path:
            if self.files.current_key != self.path:  # a filter moved the cursor, not the user
                self.open_file(self.files.current_key)
            self._decide_file(wanted)
        elif self.files.current_key is not None:
            self._decide_folder(self.files.current_key, wanted)

    def _decide_folder(self, key: str, wanted: str) -> None:
        """Decide all listed files of a folder; what is so already is opened again."""
        files = [file for file in files_under(self.listed, key) if not file.note]
        if wanted == "accepted" and any(file.decision != "accepted" for file in files):
            self.accept_open(files)
            return
        decision = "open" if all(file.decision == wanted for file in files) else wanted
        changed = [file for file in files if file.decision != decision]
        units = [(file.path, unit.id) for file in changed for unit in file.hunks]
        self._decide([_decide(file.path, decision) for file in changed], units)
        if changed:
            what = "Rejected" if decision == "rejected" else "Opened again"
            noun = plural(len(changed), "file")
            self.say(f"{what}: {len(changed)} {noun}.", "u takes it back", "done")

    @on(FileList.MarkClicked)
    def decide_row(self, message: FileList.MarkClicked) -> None:
        """Give a row of the list the next decision: accepted, rejected, open again."""
        key = message.key
        if key in self.by_path:
            self.open_file(key)
            self._decide_file(NEXT_CHOICE[self.by_path[key].decision], stay=True)
        else:
            row = next((row for row in self.files.items if row.key == key), None)
            if row is not None:
                self._decide_folder(key, NEXT_CHOICE[row.decision])

    def action_accept(self) -> None:
        """Accept what is chosen or the hunk (in the list: the row), or open it again."""
        self._decide_under_cursor("accepted")

    def action_reject(self) -> None:
        """Reject what is chosen or the hunk (in the list: the row), or open it again."""
        self._decide_under_cursor("rejected")

    def action_reopen(self) -> None:
        """Open again what is chosen or the hunk (in the list: the row)."""
        self._decide_under_cursor("open")

    def action_accept_file(self) -> None:
        """Accept the whole file."""
        self._decide_file("accepted")

    def action_reject_file(self) -> None:
        """Reject the whole file."""
        self._decide_file("rejected")

    def action_accept_safe(self) -> None:
        """Accept everything open that is not held back; say what to look at besides."""
        if self.changes is not None:
            self.accept_open(self.changes.files)

    def accept_open(self, files: Iterable[FileChange]) -> None:
        """Accept what is open in the files that are safe, as one step."""
        safe, risky = safe_to_accept(files)
        decisions: list[Decide] = []
        units: list[tuple[str, str]] = []
        for file in safe:
            decisions += _accepting(file)
            units += [(file.path, unit.id) for unit in file.hunks if is_open(unit)]
        left_out = f" {len(risky)} risky left out: look at them yourself." if risky else ""
        if not units:
            self.say(f"Nothing safe is open.{left_out}")
            return
        self._decide(decisions, units)
        built = sum(file.tier == "warned" for file in safe)
        warned = f", {built} of them for builds or CI" if built else ""
        took = f"{counted(len(units), 'hunk')} in {counted(len(safe), 'file')}"
        text = f"Accepted {took}{warned}.{left_out}"
        self.say(text, "u takes it back", "done")

    def action_undo(self) -> None:
        """Take back the last decision."""
        if self.session is not None:
            self.step_back(self.session, again=False)

    def action_redo(self) -> None:
        """Decide again what was taken back."""
        if self.session is not None:
            self.step_back(self.session, again=True)

    def action_refresh(self) -> None:
        """Fetch what the agent changed since, and show it."""
        self.refresh_wanted = True
        self.stale.set()


_WORDS = {"o": "open", "a": "accepted", "r": "rejected"}


def _letters(unit: HunkInfo, changes: Sequence[int]) -> set[str]:
    """Return the letters of some lines of a unit; of all of them without `changes`."""
    marks = unit.marks or unit.decision[0]
    return {marks[change] for change in changes if change < len(marks)} if changes else set(marks)


def _accepting(file: FileChange) -> list[Decide]:
    """Return what accepts everything open in a file and leaves decided lines alone."""
    units = [unit for unit in units_of(file) if is_open(unit)]
    whole = tuple(unit.id for unit in units if not open_lines(unit))
    parts = [
        Decide(file.path, "accepted", (u.id,), found) for u in units if (found := open_lines(u))
    ]
    return [Decide(file.path, "accepted", whole), *parts] if whole else parts


def _decide(path: str, decision: str, unit: str = "", lines: Sequence[int] = ()) -> Decide:
    hunks = (unit,) if unit else ()
    if decision == "accepted":
        return Decide(path, "accepted", hunks, tuple(lines))
    return Decide(path, "rejected" if decision == "rejected" else "open", hunks, tuple(lines))
