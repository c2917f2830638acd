"""Read the agent's commits one by one, or a branch as a whole; decisions are made elsewhere.

A decision is about the agent's net change against the snapshot. What a single commit did may be
undone by the next one, so nothing is decided here, and the screen says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Horizontal, Vertical

from app.ui.commit_keys import COMMIT_BINDINGS
from app.ui.commit_view import CommitView
from app.ui.review_tree import FILE_ORDERS
from app.ui.speaking import Choice
from widgets.commit_list import CommitList
from widgets.diff_pane import DiffPane
from widgets.file_list import FileList
from widgets.info_line import InfoLine
from widgets.line_bar import LineBar
from widgets.line_list import LineList

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from app.protocol import SessionInfo
    from app.services.ports import SessionPort
    from themes.glyphs import Glyphs


class CommitScreen(CommitView):
    """What is where, and the keys that move in it."""

    AUTO_FOCUS = "CommitList"
    BINDINGS: ClassVar[list[BindingType]] = COMMIT_BINDINGS

    def __init__(
        self,
        glyphs: Glyphs,
        session: SessionPort,
        info: SessionInfo | None,
        left: Callable[[str], None],
    ) -> None:
        """`left` is told the file that showed when the user went back."""
        super().__init__(glyphs, session, info)
        self.left = left

    def compose_body(self) -> ComposeResult:
        """Yield commits and files beside the diff."""
        yield InfoLine("surface", glyphs=self.glyphs, id="head")
        with Horizontal(id="body"):
            with Vertical(id="side"):
                yield InfoLine("surface", glyphs=self.glyphs, id="commits-title")
                yield CommitList(glyphs=self.glyphs, id="commits")
                yield InfoLine("surface", glyphs=self.glyphs, id="files-title")
                yield FileList(glyphs=self.glyphs, id="files")
            with Vertical(id="main"):
                yield InfoLine("panel", glyphs=self.glyphs, id="commit")
                yield from self.compose_file()
        yield LineBar(id="line")

    def on_mount(self) -> None:
        """Read the commits of the last look, and look for new ones where a machine runs."""
        super().on_mount()
        self.add_class("-files")
        self.action_look()

    def show_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Follow the session's own state."""
        wanted = "" if self.info is None else self.info.id
        self.info = next((info for info in sessions if info.id == wanted), self.info)

    # Moving

    @on(LineList.Moved, "#commits")
    @on(LineList.Chosen, "#commits")
    def follow_commits(self, message: LineList.Moved | LineList.Chosen) -> None:
        """Show the commit under the cursor; `enter` goes into its diff."""
        self.wanted = message.key
        self.show_change()
        if isinstance(message, LineList.Chosen):
            self.go_to_pane()

    @on(LineList.Moved, "#files")
    @on(LineList.Chosen, "#files")
    def follow_files(self, message: LineList.Moved | LineList.Chosen) -> None:
        """Show the file under the cursor; `enter` goes into it, or folds a folder."""
        chosen = isinstance(message, LineList.Chosen)
        if any(file.path == message.key for file in self.ordered):
            self.open_file(message.key, 0)
            if chosen:
                self.go_to_pane()
        elif chosen:
            self.fold(FileList.FoldWanted(message.key, message.key not in self.closed))

    @on(FileList.FoldWanted)
    def fold(self, message: FileList.FoldWanted) -> None:
        """Close or open a folder."""
        self.closed = self.closed ^ {message.key}
        self.show_files()

    @on(FileList.SortWanted)
    def action_sort_files(self) -> None:
        """List the files in the next order."""
        self.order = FILE_ORDERS[(FILE_ORDERS.index(self.order) + 1) % len(FILE_ORDERS)]
        if self.change is not None:
            self.ordered = self.kept_rows.ordered(self.change.files, self.order)
            self.show_files()

    def action_other_side(self) -> None:
        """Go on from the diff to the commits, to the files, and back."""
        if self.files.has_focus:
            self.go_to_pane()
            return
        self.set_focus(self.files if self.commits.has_focus else self.commits)
        self.add_class("-files")
        self.remove_class("-solo")

    def action_commit(self, step: int) -> None:
        """Go to the next or previous commit, wherever the focus is."""
        before = self.commits.cursor
        self.commits.action_move(step)
        if self.commits.cursor == before:
            self.say("This is the last commit." if step > 0 else "This is the first row.")

    def action_file(self, step: int) -> None:
        """Go to the next or previous file of the commit."""
        paths = [file.path for file in self.ordered]
        at = paths.index(self.path) + step if self.path in paths else -1
        if 0 <= at < len(paths):
            self.open_file(paths[at], 0 if step > 0 else -1)
        else:
            end = "last" if step > 0 else "first"
            self.say(f"This is the {end} file of the commit.", ". goes to the next commit")

    def action_found(self, direction: int) -> None:
        """Go to another place of the text that was searched for."""
        if self.pane.find:
            self.pane.find_next(direction)
        else:
            self.say("Nothing is searched for.", "/ finds a text in the file")

    # Filter

    def action_find(self) -> None:
        """Find a text in the file, or filter the commits when their list has the focus."""
        if self.commits.has_focus:
            self.filtering = True
            self.query_one(LineBar).open("filter commits", self.text_filter)
        else:
            super().action_find()

    def filter_typed(self) -> None:
        """List what the typed words leave."""
        self.show_commits()

    def filter_ended(self, text: str) -> None:
        """Keep the words that the list is filtered by, and go to it."""
        self.text_filter = text
        self.show_commits()
        self.set_focus(self.commits)

    # What else

    def action_read_only(self) -> None:
        """Say where decisions are made."""
        text = "Nothing is decided about a single commit: decisions are about the whole change."
        self.say(text, "q goes there")

    @on(DiffPane.MarkClicked)
    def refuse_mark(self) -> None:
        """Say where decisions are made."""
        self.action_read_only()

    def action_look(self) -> None:
        """Read what is known, and have the agent's machine look for more."""
        runs = self.info is not None and self.info.state == "running"
        self.looking, self.through = runs, False
        self.look(fresh=runs)
        self.show_commits()

    def action_fetch(self) -> None:
        """Write the agent's branches into the user's repository, after a question."""
        branches = () if self.found is None else self.found.branches
        if not branches:
            self.say("There are no commits to take.")
            return
        noun = "branch" if len(branches) == 1 else "branches"
        self.ask(
            f"Write {len(branches)} {noun} as refs/cloche/… into your repository? "
            "Your own branches and files stay as they are.",
            {"y": Choice("write", self.write_refs), "escape": Choice("leave it")},
        )

    def write_refs(self) -> None:
        """Have the refs written."""
        self.take_refs()

    def action_leave(self) -> None:
        """Go back to the whole change, to the file that shows."""
        path = self.path
        super().action_leave()
        self.left(path)
