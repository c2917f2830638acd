"""Go through what a session changed, hunk by hunk, and take home what was accepted."""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from app.protocol import Decide
from app.services.documents import key_of, load_file
from app.ui.failures import told
from app.ui.messages import (
    ChangesArrived,
    DecisionFailed,
    DecisionRecorded,
    FileLoaded,
    SessionEvent,
    SessionOpened,
    SpansArrived,
    TaskFailed,
)
from app.ui.review_facts import (
    file_row,
    in_order,
    next_open,
    progress_of,
    safe_to_accept,
    units_of,
    with_decisions,
)
from app.ui.review_lines import file_facts, head_facts, unit_facts
from app.ui.review_merge import MergeKeys
from snapshot.safe_text import safe_name
from widgets.diff_pane import SPLIT_FROM, DiffPane
from widgets.file_list import FileList
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.line_list import LineList
from widgets.placard import Placard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult

    from app.protocol import Changes, FileChange, HunkInfo, SessionInfo
    from app.services.documents import LoadedFile
    from app.services.ports import SessionPort
    from themes.glyphs import Glyphs
    from widgets.diff_model import Layout, Side

KEPT_FILES = 16
"""How many loaded files are kept."""

NARROW = 100
SIDES: tuple[Side, Side] = ("new", "old")
"""The order in which the sides of a file are coloured."""


class ReviewScreen(MergeKeys):
    """The changes of one session."""

    AUTO_FOCUS = "DiffPane"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - declared on instances by the base class
        (0, "-narrow"),
        (NARROW, "-normal"),
        (160, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "space",
            "accept",
            "accept",
            show=False,
            tooltip="Accept the hunk (in the list: the file), or open it again",
            id="review.accept",
        ),
        Binding(
            "x",
            "reject",
            "reject",
            show=False,
            tooltip="Reject the hunk (in the list: the file), or open it again",
            id="review.reject",
        ),
        Binding(
            "A",
            "accept_file",
            "accept file",
            tooltip="Accept the whole file",
            id="review.accept-file",
        ),
        Binding(
            "plus",
            "accept_safe",
            "all safe",
            tooltip="Accept everything open that cannot run by side effect",
            id="review.accept-safe",
        ),
        Binding(
            "M",
            "merge",
            "merge…",
            tooltip="Write what is accepted into the workspace; shows it first",
            id="review.merge",
        ),
        Binding("u", "undo", "undo", tooltip="Take back the last decision", id="review.undo"),
        Binding(
            "n",
            "next_open",
            "next open",
            tooltip="Go to what is undecided",
            id="review.next-open",
        ),
        Binding("q", "leave", "leave", tooltip="Keep all decisions and leave", id="review.leave"),
        Binding(
            "right_square_bracket",
            "unit(1)",
            "hunk",
            key_display="] [",
            tooltip="Next hunk",
            id="review.next-hunk",
        ),
        Binding(
            "left_square_bracket",
            "unit(-1)",
            "previous hunk",
            show=False,
            tooltip="Previous hunk",
            id="review.previous-hunk",
        ),
        Binding(
            "right_curly_bracket",
            "file(1)",
            "file",
            key_display="} {",
            tooltip="Next file",
            id="review.next-file",
        ),
        Binding(
            "left_curly_bracket",
            "file(-1)",
            "previous file",
            show=False,
            tooltip="Previous file",
            id="review.previous-file",
        ),
        Binding(
            "tab",
            "other_side",
            "files",
            tooltip="To the list of files and back",
            id="review.files",
        ),
        Binding(
            "s", "split", "split", tooltip="Both sides, or one after the other", id="review.split"
        ),
        Binding("w", "wrap", "wrap", tooltip="Wrap long lines", id="review.wrap"),
        Binding(
            "slash", "find", "find", tooltip="Find a text; in the list: filter", id="review.find"
        ),
        Binding("D", "reject_file", "drop file", tooltip="Reject the file", id="review.drop-file"),
        Binding(
            "f",
            "solo",
            "hide files",
            tooltip="Hide the list of files, or show it",
            id="review.solo",
        ),
        Binding(
            "ctrl+r",
            "redo",
            "redo",
            show=False,
            tooltip="Decide again what was taken back",
            id="review.redo",
        ),
        Binding(
            "R",
            "refresh",
            "refresh",
            show=False,
            tooltip="Fetch what the agent changed since",
            id="review.refresh",
        ),
        Binding(
            "t",
            "take_back",
            "take back the merge",
            show=False,
            tooltip="Undo the last merge of this review; asks first",
            id="review.take-back",
        ),
    ]

    def __init__(self, glyphs: Glyphs, session_id: str) -> None:
        super().__init__(glyphs)
        self.session_id = session_id
        self.info: SessionInfo | None = None
        self.changes: Changes | None = None
        self.pending: Changes | None = None
        self.loaded: LoadedFile | None = None
        self.shown_files: list[FileChange] = []
        """The files in the order of the list."""
        self._by_path: dict[str, FileChange] = {}
        self.path = ""
        self.layout_choice: Layout | None = None
        self._files: dict[str, LoadedFile] = {}
        self._goal: int | None = None
        self._taken: frozenset[tuple[str, str]] = frozenset()
        self._recorded: frozenset[tuple[str, str]] = frozenset()
        self._stale = asyncio.Event()
        self._order = asyncio.Lock()
        self._refresh_wanted = False

    def compose_body(self) -> ComposeResult:
        """Yield the files beside the diff."""
        yield InfoLine("surface", glyphs=self.glyphs, id="head")
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield FileList(glyphs=self.glyphs, id="files")
            with Vertical(id="main"):
                yield InfoLine("panel", glyphs=self.glyphs, id="file")
                yield Placard(id="empty")
                yield DiffPane(glyphs=self.glyphs, id="diff")
                yield InfoLine("panel", glyphs=self.glyphs, id="unit")
        yield LineBar(id="line")

    def on_mount(self) -> None:
        """Connect to the session."""
        super().on_mount()
        self.query_one("#empty", Placard).say("Reading what it changed")
        self.pane.display = False
        self.connect()

    async def on_unmount(self) -> None:
        """End the connection; decisions are kept by the keeper."""
        if self.session is not None:
            await self.session.close()

    # Parts

    @property
    def pane(self) -> DiffPane:
        """The diff."""
        return self.query_one(DiffPane)

    @property
    def files(self) -> FileList:
        """The list of files."""
        return self.query_one(FileList)

    @property
    def change(self) -> FileChange | None:
        """The file that is shown."""
        return self._by_path.get(self.path)

    def _keep(self, changes: Changes) -> None:
        """Keep the changes, with the files in the order of the list."""
        self.changes = changes
        self.shown_files = in_order(changes.files)
        self._by_path = {file.path: file for file in self.shown_files}

    @property
    def units(self) -> list[HunkInfo]:
        """What can be decided in the file that is shown."""
        return [] if self.change is None else units_of(self.change)

    def unit_index(self) -> int | None:
        """Return the unit under the cursor as an index into `units`."""
        at = self.pane.current_unit
        if at is None or self.loaded is None or at >= len(self.loaded.units):
            return None
        wanted = self.loaded.units[at]
        return next((i for i, unit in enumerate(self.units) if unit.id == wanted), None)

    # Workers gather

    @work(group="connect", exclusive=True, exit_on_error=True)
    async def connect(self) -> None:
        """Connect to the keeper."""
        try:
            session = await self.cloche.fleet.open(self.session_id)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(SessionOpened(session))

    @on(SessionOpened)
    def begin(self, message: SessionOpened) -> None:
        """Read the changes and follow what happens."""
        self.session = message.session
        self._stale.set()
        self.read_changes(message.session)
        self.follow(message.session)

    @work(group="follow", exclusive=True, exit_on_error=True)
    async def follow(self, session: SessionPort) -> None:
        """Turn the keeper's events into messages."""
        try:
            async for event in session.events():
                self.post_message(SessionEvent(event))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @work(group="changes", exclusive=True, exit_on_error=True)
    async def read_changes(self, session: SessionPort) -> None:
        """Read the changes each time that they are known to be stale."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            refresh, self._refresh_wanted = self._refresh_wanted, False
            try:
                self.post_message(ChangesArrived(await session.changes(refresh=refresh), refresh))
            except self.cloche.failures as error:
                self.post_message(TaskFailed(*told(error)))

    @work(group="load", exclusive=True, exit_on_error=True)
    async def load(self, session: SessionPort, change: FileChange) -> None:
        """Fetch and compare a file."""
        try:
            self.post_message(FileLoaded(await load_file(session, change)))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @work(group="colours", exclusive=True, exit_on_error=True)
    async def colour(self, loaded: LoadedFile) -> None:
        """Colour both sides of a file; its text is shown already."""
        name = os.fsencode(loaded.path)
        for side in SIDES:
            text, first = loaded.text_of(side)
            async with aclosing(self.cloche.colours.spans(name, text)) as parts:
                async for lines in parts:
                    spans = {number + first: line for number, line in lines.items()}
                    self.post_message(SpansArrived(loaded.key, side, spans))

    @work(group="decide", exit_on_error=True)
    async def send(
        self, session: SessionPort, decisions: Sequence[Decide], units: frozenset[tuple[str, str]]
    ) -> None:
        """Send decisions in the order in which they were made."""
        try:
            async with self._order:
                await session.decide(decisions)
        except self.cloche.failures as error:
            self.post_message(DecisionFailed(*told(error), units))
        else:
            self.post_message(DecisionRecorded(units))

    @work(group="decide", exit_on_error=True)
    async def step_back(self, session: SessionPort, *, again: bool) -> None:
        """Take the last decision back, or decide it again."""
        try:
            async with self._order:
                await (session.redo_decision() if again else session.undo_decision())
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(DecisionRecorded(frozenset()))

    # Handlers change

    @on(SessionEvent)
    def see_event(self, message: SessionEvent) -> None:
        """Read again what may have changed."""
        self.info = message.event.session
        if message.event.kind in ("changes", "decisions", "merge"):
            self._stale.set()
        self.show_head()

    @on(ChangesArrived)
    def take_changes(self, message: ChangesArrived) -> None:
        """Show the changes; a newer generation waits until it is asked for, decisions do not."""
        newer = message.changes
        self._taken -= self._recorded
        self._recorded = frozenset()
        if self.changes is None or message.wanted or newer.generation == self.changes.generation:
            self.pending = None
            self._keep(newer)
        else:
            self.pending = newer
            self._keep(with_decisions(self.changes, newer))
        self.show_changes()

    @on(FileLoaded)
    def take_file(self, message: FileLoaded) -> None:
        """Show a file that was asked for, unless another one is wanted by now."""
        loaded = message.loaded
        self._files[loaded.key] = loaded
        while len(self._files) > KEPT_FILES:
            del self._files[next(iter(self._files))]
        if self.change is not None and key_of(self.change) == loaded.key:
            self.show_file(loaded)

    @on(SpansArrived)
    def take_spans(self, message: SpansArrived) -> None:
        """Colour the file if it is still shown."""
        self.pane.set_spans(message.key, message.side, message.spans)

    @on(DecisionRecorded)
    def take_decision(self, message: DecisionRecorded) -> None:
        """Read what the keeper made of the decision."""
        self._recorded |= message.units
        self._stale.set()

    @on(DecisionFailed)
    def say_undecided(self, message: DecisionFailed) -> None:
        """Say why the keeper did not take a decision."""
        self._taken -= message.units
        self._stale.set()
        self.say(message.text, message.hint or "R fetches what the agent changed since", "error")

    @on(TaskFailed)
    def say_failure(self, message: TaskFailed) -> None:
        """Say what did not work."""
        if self.changes is None:
            placard = self.query_one("#empty", Placard)
            placard.say(message.text, [message.hint], [("q", "back")], tone="$error")
        self.say(message.text, message.hint, "error")

    # Showing

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Follow the session's own state."""
        self.info = next((i for i in sessions if i.id == self.session_id), self.info)
        self.show_head()

    def show_head(self) -> None:
        """Show whose changes these are and how far the review is."""
        progress = None if self.changes is None else progress_of(self.changes)
        left, right = head_facts(
            self.info, progress, self.conflicts, self.glyphs, pending=self.pending is not None
        )
        self.query_one("#head", InfoLine).show(left, right)

    def show_changes(self) -> None:
        """Show files and decisions as they are now."""
        line = self.query_one(LineBar)
        needle = line.text.lower() if line.is_open and self._filtering else ""
        rows = [file_row(file) for file in self.shown_files]
        self.files.set_items([row for row in rows if needle in row.path.lower()])
        self.show_head()
        self._show_nothing(not self.shown_files)
        if self.change is None and self.shown_files:
            self.open_file(self.shown_files[0].path)
        elif self.change is not None:
            self.files.select(self.path)
            if self.loaded is None or self.loaded.key != key_of(self.change):
                self.open_file(self.path)
        self.show_decisions()

    def _show_nothing(self, nothing: bool) -> None:
        self.query_one("#empty").display = nothing
        self.pane.display = not nothing
        if nothing:
            lines = ["When the agent changes a file, it is listed here."]
            keys = [("R", "look again"), ("q", "back")]
            self.query_one("#empty", Placard).say("It changed nothing yet", lines, keys)
        elif self.focused is None:
            self.set_focus(self.pane)

    def show_decisions(self) -> None:
        """Show what was decided in the file that is shown."""
        if self.loaded is not None:
            known = {unit.id: unit.decision for unit in self.units}
            self.pane.set_decisions([known.get(unit, "open") for unit in self.loaded.units])
        self.show_place()

    def show_place(self) -> None:
        """Show which file and which hunk the cursor is on."""
        left, right = file_facts(self.change, self.units, self.glyphs)
        self.query_one("#file", InfoLine).show(left, right)
        at = self.pane.current_unit
        left, right = unit_facts(self.units, self.unit_index(), at, self.glyphs)
        self.query_one("#unit", InfoLine).show(left, right)

    def open_file(self, path: str, unit: int | None = None) -> None:
        """Show a file, with the cursor on one of its units."""
        self.path = path
        self._goal = unit
        self.files.select(path)
        change = self.change
        if change is None or self.session is None:
            return
        loaded = self._files.get(key_of(change))
        if loaded is not None:
            self.show_file(loaded)
        else:
            self.load(self.session, change)

    def show_file(self, loaded: LoadedFile) -> None:
        """Show a loaded file."""
        if self.loaded is not loaded:
            self.loaded = loaded
            self._choose_layout()
            self.pane.show(loaded.document)
            self.colour(loaded)
        if self._goal is not None:
            self._go_to(self._goal)
        self._goal = None
        self.show_decisions()

    def _go_to(self, unit: int) -> None:
        ids = [info.id for info in self.units]
        if self.loaded is not None and 0 <= unit < len(ids) and ids[unit] in self.loaded.units:
            self.pane.go_to_unit(self.loaded.units.index(ids[unit]))

    def _choose_layout(self) -> None:
        one_sided = self.loaded is not None and 0 in self.loaded.document.lines
        wide = self.size.width >= SPLIT_FROM and not one_sided
        chosen: Layout = "split" if wide else "unified"
        self.pane.set_layout(self.layout_choice or chosen)

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new width, unless the user chose one."""
        self.call_after_refresh(self._choose_layout)

    # Moving

    @on(DiffPane.CursorMoved)
    def follow_cursor(self) -> None:
        """Say which hunk the cursor is on."""
        self.show_place()

    @on(LineList.Moved, "#files")
    def follow_files(self, message: LineList.Moved) -> None:
        """Show the file under the cursor of the list."""
        self.open_file(message.key)

    @on(LineList.Chosen, "#files")
    def enter_file(self, message: LineList.Chosen) -> None:
        """Go into the file."""
        self.open_file(message.key)
        self._leave_files()

    def _leave_files(self) -> None:
        self.remove_class("-files")
        self.set_focus(self.pane)

    def action_other_side(self) -> None:
        """Go to the files, or back to the diff."""
        if self.files.has_focus:
            self._leave_files()
        else:
            self.add_class("-files")
            self.remove_class("-solo")
            self.set_focus(self.files)

    def action_solo(self) -> None:
        """Give the diff the whole width, or show the files again."""
        self.toggle_class("-solo")
        if self.files.has_focus:
            self._leave_files()

    def action_unit(self, step: int) -> None:
        """Go to the next or previous hunk, on into the next file."""
        at = self.pane.current_unit
        if at is not None and 0 <= at + step < self.pane.unit_count:
            self.pane.go_to_unit(at + step)
        else:
            self.action_file(step)

    def action_file(self, step: int) -> None:
        """Go to the next or previous file."""
        paths = [file.path for file in self.shown_files]
        if self.path not in paths:
            return
        position = paths.index(self.path) + step
        if 0 <= position < len(paths):
            change = self.shown_files[position]
            self.open_file(change.path, 0 if step > 0 else len(units_of(change)) - 1)
        else:
            self.say("This is the last file." if step > 0 else "This is the first file.")

    def action_next_open(self) -> None:
        """Go to the next thing that is undecided, in this file or a later one."""
        index = self.unit_index()
        place = next_open(self.shown_files, self.path, -1 if index is None else index, self._taken)
        if place is None:
            self.say("Everything is decided.", "M merges what is accepted", "done")
        elif place[0] == self.path:
            self._go_to(place[1])
        else:
            self.open_file(*place)

    def action_split(self) -> None:
        """Show both sides beside each other, or one after the other."""
        self.layout_choice = "unified" if self.pane.layout_name == "split" else "split"
        self._choose_layout()

    def action_wrap(self) -> None:
        """Wrap long lines, or not."""
        if not self.pane.set_wrap(not self.pane.wrap_lines):
            self.say("This file has too many lines to wrap.", "h and l scroll to the side")

    # Deciding

    def _decide(self, decisions: Sequence[Decide], units: Sequence[tuple[str, str]]) -> None:
        if self.session is not None:
            taken = frozenset(units)
            self._taken |= taken
            self.send(self.session, decisions, taken)

    def _decide_unit(self, wanted: str) -> None:
        change, index = self.change, self.unit_index()
        if change is None:
            return
        if change.note:
            self.say(f"This file cannot be merged: {safe_name(change.note).text}.")
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
        place = next_open(self.shown_files, self.path, index, self._taken)
        if place is not None and place[0] == self.path:
            self._go_to(place[1])
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
        """Accept everything open that cannot run by side effect; say what was left out."""
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
        text = f"Accepted {len(units)} {noun} in {len(safe)} files.{left_out}"
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
        self._refresh_wanted = True
        self._stale.set()

    def action_leave(self) -> None:
        """Go back to the fleet; decisions are kept."""
        self.cloche.pop_screen()

    # Find

    _filtering = False

    def action_find(self) -> None:
        """Find a text in the file, or filter the list of files when that has the focus."""
        self._filtering = self.files.has_focus
        self.query_one(LineBar).open("filter files" if self._filtering else "find", "")

    @on(LineBar.Changed)
    def apply_find(self, message: LineBar.Changed) -> None:
        """Show what was found as it is typed."""
        if self._filtering:
            self.show_changes()
            return
        self.pane.set_find(message.text)
        found = bool(message.text) and self.pane.find_next(here=True)
        self.query_one(LineBar).tell("" if found or not message.text else "not in this file")

    @on(LineBar.Stepped)
    def step_find(self, message: LineBar.Stepped) -> None:
        """Go to the next place; in a filter, into the file."""
        if self._filtering:
            self.query_one(LineBar).close(accepted=True)
        else:
            self.pane.find_next(message.direction)

    @on(LineBar.Closed)
    def end_find(self) -> None:
        """Show everything again."""
        if self._filtering:
            self._filtering = False
            self.show_changes()
            self.set_focus(self.files)
        else:
            self.pane.set_find("")
            self.set_focus(self.pane)


def _decide(path: str, decision: str, unit: str = "") -> Decide:
    hunks = (unit,) if unit else ()
    if decision == "accepted":
        return Decide(path, "accepted", hunks)
    return Decide(path, "rejected" if decision == "rejected" else "open", hunks)
