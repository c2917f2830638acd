"""What workers tell the screens: every message that crosses from gathering to changing state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from pathlib import Path

    from app.protocol import Changes, Event, MergeReport, SessionInfo, UndoReport
    from app.protocol_commits import CommitChange, CommitList
    from app.protocol_review import (
        ChangeRequest,
        Comment,
        Conflict,
        FoundPlaces,
        HunkResult,
        StepReport,
    )
    from app.services.documents import LoadedFile
    from app.services.layouts import Layout
    from app.services.ports import SessionPort
    from widgets.diff_model import Side, Spans


@dataclass
class SessionsArrived(Message):
    """The list of sessions as it is now."""

    sessions: list[SessionInfo]


@dataclass
class TaskFailed(Message):
    """Something that a worker tried did not work; both texts are for the user."""

    text: str
    hint: str = ""


@dataclass
class AnswerTaken(Message):
    """A keeper put an answer in force; the rule is safe to print."""

    rule: str


@dataclass
class AnswerFailed(Message):
    """An answer to a question did not arrive."""

    key: str
    """Names the question in the queue."""
    text: str
    hint: str


@dataclass
class StartFailed(Message):
    """A new session could not be started; both texts are for the user."""

    text: str
    hint: str


@dataclass
class SessionStarted(Message):
    """A new session exists."""

    session_id: str


@dataclass
class LayoutArrived(Message):
    """How the user left the fleet screen."""

    layout: Layout


@dataclass
class TaskDone(Message):
    """Something that a worker did is done."""

    text: str
    hint: str = ""


@dataclass
class ChangesArrived(Message):
    """The changes of one generation, with what was decided."""

    changes: Changes
    wanted: bool = False
    """The user asked to see them now."""


@dataclass
class WorkspaceMoved(Message):
    """Somebody changed files of the real workspace that a review is about."""


@dataclass
class CommentsArrived(Message):
    """Every comment of the review."""

    comments: tuple[Comment, ...]


@dataclass
class HunkRead(Message):
    """What a hunk's lines become as it is decided now."""

    path: str
    hunk: str
    result: HunkResult


@dataclass
class RequestRead(Message):
    """What the agent would be asked for."""

    request: ChangeRequest


@dataclass
class ConflictsArrived(Message):
    """Where what is accepted meets what the user did meanwhile."""

    conflicts: tuple[Conflict, ...]


@dataclass
class SessionOpened(Message):
    """The keeper of a session answered."""

    session: SessionPort


@dataclass
class SessionEvent(Message):
    """The keeper said that something happened."""

    event: Event


@dataclass
class FileLoaded(Message):
    """A file can be shown."""

    loaded: LoadedFile


@dataclass
class FoldersFound(Message):
    """The folders of the changed files in the real workspace, and the names on the way to them."""

    folders: frozenset[Path]
    names: frozenset[str]


@dataclass
class SpansArrived(Message):
    """Syntax colours of one side of a file."""

    key: str
    side: Side
    spans: Spans


@dataclass
class DecisionFailed(Message):
    """The keeper did not take a decision."""

    text: str
    hint: str
    units: frozenset[tuple[str, str]]


@dataclass
class DecisionRecorded(Message):
    """The keeper took a decision."""

    units: frozenset[tuple[str, str]]


@dataclass
class SteppedBack(Message):
    """The keeper took the last decision back, or took it `again`."""

    step: StepReport
    again: bool


@dataclass
class MergePlanned(Message):
    """What a merge would do."""

    report: MergeReport


@dataclass
class MergeDone(Message):
    """A merge was done."""

    report: MergeReport


@dataclass
class MergeUndone(Message):
    """A merge was taken back."""

    report: UndoReport


@dataclass
class CommitsArrived(Message):
    """The agent's commits."""

    found: CommitList


@dataclass
class LookEnded(Message):
    """Nobody looks for new commits any more."""


@dataclass
class CommitChangeArrived(Message):
    """What a commit, or a branch, changed."""

    key: str
    change: CommitChange


@dataclass
class CommitsTaken(Message):
    """The agent's branches are refs of the user's repository now."""

    found: CommitList


@dataclass
class FoundArrived(Message):
    """Where a text stands in the changed files."""

    text: str
    found: FoundPlaces
