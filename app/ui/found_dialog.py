"""Where a text stands in all files of a review: a list to choose from."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from app.ui.dialogs import LOW, key_line
from app.wording import plural
from snapshot.safe_text import safe_line, safe_name
from widgets.line_list import LineList
from widgets.place_list import PlaceList, PlaceRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from app.protocol_review import FoundPlace, FoundPlaces
    from themes.glyphs import Glyphs


class FoundDialog(ModalScreen[int]):
    """Answers with the number of the place that was chosen."""

    VERTICAL_BREAKPOINTS = LOW
    BINDING_GROUP_TITLE = "Found in all files"
    AUTO_FOCUS = "PlaceList"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "cancel", "back", tooltip="Back to the review", id="found.cancel"),
    ]

    def __init__(self, text: str, found: FoundPlaces, glyphs: Glyphs, at: int = 0) -> None:
        """Show where `text` was found, with the cursor on place `at`."""
        super().__init__()
        self.text, self.found, self.glyphs, self.at = text, found, glyphs, at

    def compose(self) -> ComposeResult:
        """Yield what was found, and the places."""
        places = self.found.places
        files = len({place.path for place in places})
        noun = plural(files, "file")
        lines = "1 line" if len(places) == 1 else f"{len(places)} lines"
        title = f"{safe_line(self.text).text}   {lines} in {files} {noun}"
        keys = [("enter", "goes there"), ("n N", "there: next, previous"), ("esc", "back")]
        with Vertical(classes="dialog -wide -text"):
            yield Static(title, classes="dialog-title", markup=False)
            if self.found.cut:
                yield Static(safe_line(self.found.cut).text, classes="about", markup=False)
            yield PlaceList(glyphs=self.glyphs)
            yield Static(key_line(keys))

    def on_mount(self) -> None:
        """List the places."""
        listed = self.query_one(PlaceList)
        listed.find = self.text
        listed.set_items(place_rows(self.found.places))
        listed.select(str(self.at))

    @on(LineList.Chosen)
    def choose(self, message: LineList.Chosen) -> None:
        """Answer with the place."""
        self.dismiss(int(message.key))

    def action_cancel(self) -> None:
        """Go back to the review."""
        self.dismiss(None)


def place_rows(places: Sequence[FoundPlace]) -> list[PlaceRow]:
    """Return the rows of places, each file once above its own; keys are numbers of places."""
    width = max((len(str(place.line)) for place in places), default=1)
    rows: list[PlaceRow] = []
    before = ""
    for number, place in enumerate(places):
        if place.path != before:
            rows.append(PlaceRow("", "", safe_name(place.path).text))
        before = place.path
        sign = "-" if place.side == "old" else " "
        shown = f"{place.line:>{width}}{sign}"
        rows.append(PlaceRow(str(number), shown, safe_line(place.text).text))
    return rows
