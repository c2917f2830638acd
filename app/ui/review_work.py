"""What a review knows, and the workers that gather it; handlers elsewhere change state."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from textual import on

from app.services.documents import load_file
from app.ui.failures import told
from app.ui.messages import (
    ChangesArrived,
    CommentsArrived,
    DecisionFailed,
    DecisionRecorded,
    FileLoaded,
    FoldersFound,
    SessionEvent,
    SessionOpened,
    SteppedBack,
    TaskFailed,
    WorkspaceMoved,
)
from app.ui.reading import ReadingScreen
from app.ui.review_facts import Units
from app.ui.review_merge import MergeKeys
from app.ui.review_rows import KeptRows, with_known
from app.ui.review_tree import FILE_ORDERS, Shape
from app.ui.workers import work
from widgets.file_list import FileList

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from app.protocol import Changes, Decide, FileChange, HunkInfo, SessionInfo
    from app.protocol_review import Comment
    from app.services.ports import SessionPort
    from app.ui.review_facts import Progress
    from themes.glyphs import Glyphs


def folders_and_names(
    workspace: Path, paths: Sequence[str]
) -> tuple[frozenset[Path], frozenset[str]]:
    """Return the folders of some files in a workspace, and every name on the way to them."""
    from app.services.drift import folders_of

    names = frozenset(part for path in paths for part in path.split("/"))
    return folders_of(workspace, paths), names


class ReviewWork(MergeKeys, ReadingScreen):
    """The state of a review and its link to the keeper."""

    def __init__(self, glyphs: Glyphs, session_id: str) -> None:
        super().__init__(glyphs)
        self.session_id = session_id
        self.info: SessionInfo | None = None
        self.changes: Changes | None = None
        self.pending: Changes | None = None
        self.shown_files: list[FileChange] = []
        """The files in the order of the list."""
        self.by_path: dict[str, FileChange] = {}
        self.path = ""
        self.order = FILE_ORDERS[0]
        self.closed: frozenset[str] = frozenset()
        """Folders whose files do not show."""
        self.kept_rows = KeptRows()
        self._units = Units(None)
        self._progress: tuple[tuple[FileChange, ...], Progress] | None = None
        self.goal: int | None = None
        self.taken: frozenset[tuple[str, str]] = frozenset()
        self.recorded: frozenset[tuple[str, str]] = frozenset()
        self.stale = asyncio.Event()
        self.in_turn = asyncio.Lock()
        self.refresh_wanted = False
        self.comments: tuple[Comment, ...] = ()
        self.watched: frozenset[Path] = frozenset()
        """Folders of the real workspace that are watched."""
        self.watched_for = -1
        """The generation whose files they hold."""

    async def on_unmount(self) -> None:
        """End the connection; decisions are kept by the keeper."""
        if self.session is not None:
            await self.session.close()

    # Parts

    @property
    def shape(self) -> Shape:
        """What the list of files depends on besides them."""
        return Shape(self.order, self.closed, self.conflicts)

    @property
    def files(self) -> FileList:
        """The list of files."""
        return self.query_one(FileList)

    @property
    def change(self) -> FileChange | None:
        """The file that is shown."""
        return self.by_path.get(self.path)

    def keep(self, changes: Changes) -> None:
        """Keep the changes, with the files in the order of the list."""
        self.changes = changes
        self.shown_files = self.kept_rows.ordered(self.changes.files, self.order)
        self.by_path = {file.path: file for file in self.shown_files}

    @property
    def progress(self) -> Progress | None:
        """How far the review is; counted once for each state of it."""
        changes = self.changes
        if changes is None:
            return None
        if self._progress is None or self._progress[0] is not changes.files:
            self._progress = (changes.files, self.kept_rows.progress(changes.files))
        return self._progress[1]

    @property
    def unit_table(self) -> Units:
        """What can be decided in the file that is shown; made once for each state of it."""
        change = self.change
        if self._units.change is not change:
            self._units = Units(change)
        return self._units

    @property
    def units(self) -> list[HunkInfo]:
        """What can be decided in the file that is shown."""
        return self.unit_table.all

    def unit_index(self) -> int | None:
        """Return the unit under the cursor as an index into `units`."""
        at = self.pane.current_unit
        if at is None or self.loaded is None or at >= len(self.loaded.units):
            return None
        return self.unit_table.places.get(self.loaded.units[at])

    # Workers gather

    @work("connect", exclusive=True)
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
        self.stale.set()
        self.read_changes(message.session)
        self.follow(message.session)

    @work("follow", exclusive=True)
    async def follow(self, session: SessionPort) -> None:
        """Turn the keeper's events into messages."""
        try:
            async for event in session.events():
                self.post_message(SessionEvent(event))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @work("folders", exclusive=True)
    async def find_folders(self, workspace: Path, paths: Sequence[str]) -> None:
        """Find the folders of some files, in a thread: there may be thousands to look at."""
        try:
            found = await asyncio.to_thread(folders_and_names, workspace, paths)
        except OSError as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(FoldersFound(*found))

    @work("drift", exclusive=True)
    async def watch_workspace(self, folders: frozenset[Path], names: frozenset[str]) -> None:
        """Say each time that one of the files changes in the real workspace."""
        from app.services.drift import moves

        async with aclosing(moves(folders)) as news:
            async for changed in news:
                if changed & names:
                    self.post_message(WorkspaceMoved())

    @work("changes", exclusive=True)
    async def read_changes(self, session: SessionPort) -> None:
        """Read the changes each time that they are known to be stale."""
        while True:
            await self.stale.wait()
            self.stale.clear()
            refresh, self.refresh_wanted = self.refresh_wanted, False
            try:
                changes = await with_known(await session.changes(refresh=refresh), self.by_path)
                await self.kept_rows.get_ready(changes.files, self.shape)
                self.post_message(ChangesArrived(changes, refresh))
                self.post_message(CommentsArrived(tuple(await session.comments())))
            except self.cloche.failures as error:
                self.post_message(TaskFailed(*told(error)))

    @work("load", exclusive=True)
    async def load(self, session: SessionPort, change: FileChange) -> None:
        """Fetch and compare a file."""
        try:
            self.post_message(FileLoaded(await load_file(session.blob, change)))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @work("decide")
    async def send(
        self, session: SessionPort, decisions: Sequence[Decide], units: frozenset[tuple[str, str]]
    ) -> None:
        """Send decisions in the order in which they were made."""
        try:
            async with self.in_turn:
                await session.decide(decisions)
        except self.cloche.failures as error:
            self.post_message(DecisionFailed(*told(error), units))
        else:
            self.post_message(DecisionRecorded(units))

    @work("decide")
    async def step_back(self, session: SessionPort, *, again: bool) -> None:
        """Take the last decision back, or decide it again."""
        try:
            async with self.in_turn:
                step = await (session.redo_decision() if again else session.undo_decision())
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(SteppedBack(step, again=again))
