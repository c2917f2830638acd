"""Finding a text in all files of a review, and walking from one place to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.protocol_review import MAX_FIND, FoundPlaces
from app.ui.failures import told
from app.ui.found_dialog import FoundDialog
from app.ui.messages import FoundArrived, TaskFailed
from app.ui.review_conflicts import ReviewConflicts
from app.ui.workers import work
from widgets.line_bar import LineBar

if TYPE_CHECKING:
    from app.services.documents import LoadedFile
    from app.services.ports import SessionPort


class ReviewFound(ReviewConflicts):
    """Asks the keeper, which has all contents; the screen has those of a few files."""

    found_text = ""
    found = FoundPlaces()
    place_at = -1
    """The place where the cursor was put last; -1: none."""
    going_to_place = False

    def action_find_everywhere(self) -> None:
        """Find a text in all files; the one before stands there already."""
        self.everywhere = True
        self.query_one(LineBar).open("find in all files", self.found_text)

    def find_everywhere(self, text: str) -> None:
        """Search for what was typed."""
        self.query_one(LineBar).close()
        wanted = text.strip()[:MAX_FIND]
        if wanted and self.session is not None:
            self.find_worker(self.session, wanted)

    @work("load", exclusive=True)
    async def find_worker(self, session: SessionPort, text: str) -> None:
        """Ask where a text stands."""
        try:
            self.post_message(FoundArrived(text, await session.find(text)))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @on(FoundArrived)
    def show_found(self, message: FoundArrived) -> None:
        """List the places; one alone is gone to."""
        known = {place.path for place in message.found.places} <= self.by_path.keys()
        self.found_text, self.place_at = message.text, -1
        self.found = message.found if known else self._known_only(message.found)
        if not self.found.places:
            self.say("No changed file holds this text.", "f and / narrow the list of files down")
        elif len(self.found.places) == 1:
            self.go_to_place(0)
        else:
            dialog = FoundDialog(message.text, self.found, self.glyphs)
            self.cloche.push_screen(dialog, self._place_chosen)

    def _known_only(self, found: FoundPlaces) -> FoundPlaces:
        """Leave out files of a newer generation, which do not show yet."""
        places = tuple(place for place in found.places if place.path in self.by_path)
        cut = found.cut or "Places in files that changed since are left out; r shows them."
        return FoundPlaces(places, cut)

    def _place_chosen(self, number: int | None) -> None:
        if number is not None:
            self.go_to_place(number)

    def go_to_place(self, number: int) -> None:
        """Show the file of a place, with the cursor on its line."""
        self.place_at = number
        self.going_to_place = True
        self.go_to_pane()
        self.open_file(self.found.places[number].path)

    def show_file(self, loaded: LoadedFile) -> None:
        """Put the cursor on the place that the file was opened for."""
        super().show_file(loaded)
        place = self.found.places[self.place_at] if self.going_to_place else None
        if place is None or place.path != loaded.path:
            self.going_to_place &= place is not None and place.path == self.path
            return
        self.going_to_place = False
        self.pane.set_find(self.found_text)
        self.pane.reveal_place((place.side, loaded.review.line_index(place.side, place.line)))

    def go_to_found(self, direction: int) -> None:
        """Go to another place of the text: in the file that shows, or in all of them."""
        if self.place_at < 0 or self.pane.find != self.found_text:
            super().go_to_found(direction)
            return
        self.go_to_place((self.place_at + direction) % len(self.found.places))
        self.say(f"Place {self.place_at + 1} of {len(self.found.places)} in all files.", "F lists")
