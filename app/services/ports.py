"""What the screens need of the world, as protocols; `local` implements them with `app.client`.

Screens never reach past these: a pilot test replaces exactly this boundary and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from app.protocol import (
        CapChange,
        Changes,
        Decide,
        Event,
        MergeReport,
        MergeRequest,
        SessionInfo,
        UndoReport,
    )
    from app.protocol_commits import CommitChange, CommitList
    from app.protocol_review import (
        ChangeRequest,
        Comment,
        CommentRequest,
        Conflict,
        EditRequest,
        FoundPlaces,
        HunkResult,
        PatchReport,
        Resolve,
        StepReport,
    )
    from vm.egress.questions import Answer


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """One agent that a new session can run."""

    name: str
    description: str = ""
    has_image: bool = True
    """Whether the image that it needs was built."""


class SessionPort(Protocol):
    """One connection to one session's keeper (see `app.client.session.SessionClient`).

    Every call raises AppError with the keeper's code, message and hint when it fails.
    """

    async def close(self) -> None:
        """End the connection; the session goes on."""
        ...

    async def info(self) -> SessionInfo:
        """Return the session as the keeper sees it now."""
        ...

    def events(self) -> AsyncIterator[Event]:
        """Yield events until the connection ends."""
        ...

    async def changes(self, *, refresh: bool = False) -> Changes:
        """Return the changes of the last generation; `refresh` takes a mirror pass first."""
        ...

    async def decide(self, decisions: Sequence[Decide]) -> None:
        """Record decisions as one undo step."""
        ...

    async def view(self, path: str, *, viewed: bool) -> None:
        """Mark a changed file as viewed in its present state, or take the mark away."""
        ...

    async def undo_decision(self) -> StepReport:
        """Take back the last step, and return what it was about."""
        ...

    async def redo_decision(self) -> StepReport:
        """Do the step again that was taken back last, and return what it was about."""
        ...

    async def comments(self) -> list[Comment]:
        """Return every comment: by path, then by line."""
        ...

    async def comment(self, request: CommentRequest) -> Comment:
        """Write a comment, or a new text for one; one undo step."""
        ...

    async def uncomment(self, id: str) -> None:
        """Take a comment away; one undo step."""
        ...

    async def hunk_result(self, path: str, hunk: str) -> HunkResult:
        """Return what stands in a hunk's place as it is decided now."""
        ...

    async def edit(self, request: EditRequest) -> None:
        """Replace a hunk's result by the user's own lines; accepts it, one undo step."""
        ...

    async def conflicts(self, path: str = "") -> list[Conflict]:
        """Return where what is accepted meets what the user did meanwhile, solved ones too."""
        ...

    async def resolve(self, request: Resolve) -> None:
        """Solve a conflict, or all of a path; one undo step."""
        ...

    async def find(self, text: str) -> FoundPlaces:
        """Return where a text stands in the changed files, regardless of case."""
        ...

    async def change_request(self) -> ChangeRequest:
        """Return the prompt of everything that the agent was not told of yet."""
        ...

    async def request_changes(self, text: str, items: Sequence[str]) -> None:
        """Type a request for changes into the agent's terminal, and note what it was told of."""
        ...

    async def commits(self, *, look: bool = False, publish: bool = False) -> CommitList:
        """Return the agent's commits of the last look, or of a new one; `publish` makes refs."""
        ...

    async def commit_change(self, commit: str, *, whole: bool = False) -> CommitChange:
        """Return what a listed commit changed, or with `whole` all that led to it."""
        ...

    async def commit_content(self, name: str) -> bytes:
        """Return a content by the name that a commit's change gives it."""
        ...

    async def import_patch(self, patch: bytes) -> PatchReport:
        """Decide the files that a patch names as it says; one undo step."""
        ...

    async def merge(self, request: MergeRequest) -> MergeReport:
        """Write what is accepted into the workspace, or say what would be written."""
        ...

    async def undo(self, merge: str) -> UndoReport:
        """Take a whole merge back."""
        ...

    async def blob(self, digest: str) -> bytes:
        """Return the content named by a digest."""
        ...

    async def egress_answer(
        self, host: str, answer: Answer, *, wide: bool = False, ports: Sequence[int] = ()
    ) -> str:
        """Answer an open question about a host; the rule that is in force now, in one line."""
        ...

    async def egress_cap(self, change: CapChange) -> str:
        """Put other caps on what the session uses of models; what holds now, in one line."""
        ...

    async def egress_reload(self) -> None:
        """Have the network decided by the rules as they are in the files now."""
        ...


class FleetPort(Protocol):
    """All sessions of the user (see `app.client.fleet`)."""

    def agents(self) -> tuple[AgentChoice, ...]:
        """Return the agents that a new session can run, the default first."""
        ...

    def watch(self) -> AsyncIterator[list[SessionInfo]]:
        """Yield the list of sessions now and each time it changed."""
        ...

    async def open(self, session_id: str) -> SessionPort:
        """Connect to a session's keeper, starting one when needed."""
        ...

    async def start(self, agent: str, workspace: Path, name: str) -> str:
        """Start a session and return its id at once."""
        ...

    async def resume(self, session_id: str) -> None:
        """Boot a stopped, failed or lost session again."""
        ...

    async def stop(self, session_id: str) -> None:
        """End the session's machine; returns when it has ended."""
        ...

    async def remove(self, session_id: str) -> None:
        """Delete a session that does not run."""
        ...
