"""What the keys of a review decide, through the keeper: the screen keeps no second truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.protocol import Decide
from app.services.documents import key_of
from app.ui.review_facts import next_open, safe_to_accept, units_of
from app.ui.review_view import ReviewView
from snapshot.safe_text import safe_name

if TYPE_CHECKING:
    from collections.abc import Sequence


class ReviewDecide(ReviewView):
    """Decisions about hunks, files and everything that is safe."""

    def _decide(self, decisions: Sequence[Decide], units: Sequence[tuple[str, str]]) -> None:
        if self.session is not None:
            taken = frozenset(units)
            self.taken |= taken
            self.send(self.session, decisions, taken)

    def _decide_unit(self, wanted: str) -> None:
        change, index = self.change, self.unit_index()
        if change is None:
            return
        if change.note:
            self.say(f"This file cannot be merged: {safe_name(change.note).text}.")
            return
        if self.loaded is None or self.loaded.key != key_of(change):
            self.say("The file is still being read: nothing is decided unseen.")
            return
        if index is None:
            self._decide_file(wanted)
            return
        unit = self.units[index]
        decision = "open" if unit.decision == wanted else wanted
        self._decide([_decide(change.path, decision, unit.id)], [(change.path, unit.id)])
        if decision != "open":
            self._advance(index)

    def _advance(self, index: int) -> None:
        place = next_open(self.shown_files, self.path, index, self.taken)
        if place is not None and place[0] == self.path:
            self.go_to_unit(place[1])
        elif place is not None:
            self.open_file(*place)

    def _decide_file(self, wanted: str) -> None:
        change = self.change
        if change is None:
            return
        if change.note:
            self.say(f"This file cannot be merged: {safe_name(change.note).text}.")
            return
        decision = "open" if change.decision == wanted else wanted
        units = [(change.path, unit.id) for unit in units_of(change)]
        self._decide([_decide(change.path, decision)], units)
        if decision != "open" and not self.files.has_focus:
            self._advance(len(units))

    def action_accept(self) -> None:
        """Accept the hunk under the cursor (in the list: the file), or open it again."""
        (self._decide_file if self.files.has_focus else self._decide_unit)("accepted")

    def action_reject(self) -> None:
        """Reject the hunk under the cursor (in the list: the file), or open it again."""
        (self._decide_file if self.files.has_focus else self._decide_unit)("rejected")

    def action_accept_file(self) -> None:
        """Accept the whole file."""
        self._decide_file("accepted")

    def action_reject_file(self) -> None:
        """Reject the whole file."""
        self._decide_file("rejected")

    def action_accept_safe(self) -> None:
        """Accept everything open that is not held back; say what to look at besides."""
        if self.changes is None:
            return
        safe, risky = safe_to_accept(self.changes)
        decisions: list[Decide] = []
        units: list[tuple[str, str]] = []
        for file in safe:
            ids = [unit.id for unit in units_of(file) if unit.decision == "open"]
            decisions.append(Decide(file.path, "accepted", tuple(ids)))
            units += [(file.path, unit) for unit in ids]
        left_out = f" {len(risky)} risky left out: look at them yourself." if risky else ""
        if not units:
            self.say(f"Nothing safe is open.{left_out}")
            return
        self._decide(decisions, units)
        noun = "hunk" if len(units) == 1 else "hunks"
        built = sum(file.tier == "warned" for file in safe)
        warned = f", {built} of them for builds or CI" if built else ""
        text = f"Accepted {len(units)} {noun} in {len(safe)} files{warned}.{left_out}"
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


def _decide(path: str, decision: str, unit: str = "") -> Decide:
    hunks = (unit,) if unit else ()
    if decision == "accepted":
        return Decide(path, "accepted", hunks)
    return Decide(path, "rejected" if decision == "rejected" else "open", hunks)
