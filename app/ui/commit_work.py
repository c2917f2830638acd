"""What the screen of commits knows, and the workers that gather it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.services.documents import load_file
from app.ui.failures import told
from app.ui.messages import (
    CommitChangeArrived,
    CommitsArrived,
    CommitsTaken,
    FileLoaded,
    LookEnded,
    TaskFailed,
)
from app.ui.reading import ReadingScreen
from app.ui.review_rows import KeptRows
from app.ui.review_tree import FILE_ORDERS
from app.ui.workers import work
from widgets.commit_list import CommitList
from widgets.file_list import FileList

if TYPE_CHECKING:
    from app.protocol import FileChange, SessionInfo
    from app.protocol_commits import CommitChange, CommitInfo
    from app.protocol_commits import CommitList as FoundCommits
    from app.services.ports import SessionPort
    from themes.glyphs import Glyphs


class CommitWork(ReadingScreen):
    """The state of the screen, and its calls to the keeper; the connection is the review's."""

    def __init__(self, glyphs: Glyphs, session: SessionPort, info: SessionInfo | None) -> None:
        super().__init__(glyphs)
        self.session = session
        self.info = info
        self.found: FoundCommits | None = None
        self.looking = False
        self.through = False
        """The last look has ended, well or not."""
        self.wanted = ""
        """The commit or branch under the cursor of the list."""
        self.shown = ""
        """The one whose change shows."""
        self.change: CommitChange | None = None
        self.changes: dict[str, CommitChange] = {}
        """What was read already; a commit never changes, a branch may grow."""
        self.ordered: list[FileChange] = []
        self.order = FILE_ORDERS[0]
        self.closed: frozenset[str] = frozenset()
        self.kept_rows = KeptRows()
        self.path = ""
        self.goal: int | None = 0
        """The hunk that the cursor goes to once its file is there; -1: the last."""
        self.text_filter = ""

    # Parts

    @property
    def commits(self) -> CommitList:
        """The list of commits."""
        return self.query_one(CommitList)

    @property
    def files(self) -> FileList:
        """The list of files of the commit that shows."""
        return self.query_one(FileList)

    @property
    def by_id(self) -> dict[str, CommitInfo]:
        """The commits by name."""
        return {} if self.found is None else {one.id: one for one in self.found.commits}

    @property
    def file(self) -> FileChange | None:
        """The file that shows."""
        return next((file for file in self.ordered if file.path == self.path), None)

    # Workers gather

    @work("look", exclusive=True)
    async def look(self, *, fresh: bool) -> None:
        """Read what the last look found, then have the agent's machine look for more."""
        try:
            self.post_message(CommitsArrived(await self.session.commits()))
            if fresh:
                self.post_message(CommitsArrived(await self.session.commits(look=True)))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        self.post_message(LookEnded())

    @work("load", exclusive=True)
    async def read_change(self, key: str, commit: str, *, whole: bool) -> None:
        """Fetch what a commit or a branch changed."""
        try:
            change = await self.session.commit_change(commit, whole=whole)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(CommitChangeArrived(key, change))

    @work("load", exclusive=True)
    async def load(self, change: FileChange) -> None:
        """Fetch and compare a file."""
        try:
            self.post_message(FileLoaded(await load_file(self.session.commit_content, change)))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @work("decide")
    async def take_refs(self) -> None:
        """Have the agent's branches written into the user's repository."""
        try:
            found = await self.session.commits(publish=True)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(CommitsTaken(found))
