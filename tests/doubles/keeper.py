"""A keeper in memory: the process boundary of the screens, with the real review behind it."""

from __future__ import annotations

import asyncio
import os
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from app.errors import AppError
from app.protocol import (
    Changes,
    Counts,
    Event,
    FileChange,
    HunkInfo,
    MergeReport,
    SessionInfo,
    UndoReport,
)
from app.protocol_commits import CommitChange, CommitList
from app.protocol_review import (
    ChangeRequest,
    Comment,
    Conflict,
    FoundPlace,
    FoundPlaces,
    HunkResult,
    PatchReport,
    StepReport,
)
from app.services.ports import AgentChoice
from snapshot.decisions import LETTERS, Mark, Uniform, state_of
from snapshot.find import Places
from snapshot.review import ChangedFile, FileReview
from vm.egress.questions import choice

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from app.protocol import AgentState, CapChange, Decide, MergeRequest, SessionState
    from app.protocol_review import CommentRequest, EditRequest, Resolve
    from vm.egress.questions import Answer


@dataclass
class FakeFile:
    """One changed file with both contents."""

    path: str
    base: bytes | None
    agent: bytes | None
    kind: str = ""
    old_path: str = ""
    mode: str = "100644"
    old_mode: str = "100644"
    note: str = ""
    drift: bool = False

    def review(self) -> FileReview:
        """Compare the contents as the keeper does."""
        file = ChangedFile(
            path=os.fsencode(self.path),
            kind=self.change_kind,  # type: ignore[arg-type]  # one of the kinds, kept as text
            old_path=os.fsencode(self.old_path) if self.old_path else None,
            mode="" if self.agent is None else self.mode,
            old_mode="" if self.base is None else self.old_mode,
            base="" if self.base is None else f"b{zlib.crc32(self.base)}:{self.path}",
            agent="" if self.agent is None else f"a{zlib.crc32(self.agent)}:{self.path}",
            note=self.note,
        )
        return FileReview(file, self.base, self.agent)

    @property
    def change_kind(self) -> str:
        """What happened to the file."""
        if self.kind:
            return self.kind
        if self.base is None:
            return "added"
        return "deleted" if self.agent is None else "modified"


class MemoryDecisions:
    """Decisions with undo, kept nowhere."""

    def __init__(self) -> None:
        self._steps: list[list[Mark]] = []
        self._undone: list[list[Mark]] = []
        self.edits: dict[tuple[bytes, str], bytes] = {}

    def marks(self, path: bytes, unit: str, size: int) -> str:
        """Return the marks of a unit."""
        for step in reversed(self._steps):
            for mark in step:
                if (mark.path, mark.unit) == (path, unit) and len(mark.marks) == size:
                    return mark.marks
        return LETTERS["open"] * size

    def edit(self, path: bytes, unit: str) -> bytes | None:
        """Return a hunk's edit."""
        return self.edits.get((path, unit))

    def record(self, marks: list[Mark]) -> None:
        """Add one step."""
        self._steps.append(marks)
        self._undone.clear()

    def undo(self) -> bool:
        """Take the last step back."""
        if not self._steps:
            return False
        self._undone.append(self._steps.pop())
        return True

    def redo(self) -> bool:
        """Do a step again."""
        if not self._undone:
            return False
        self._steps.append(self._undone.pop())
        return True


@dataclass
class FakeSession:
    """One session's keeper."""

    info_value: SessionInfo
    files: list[FakeFile] = field(default_factory=list[FakeFile])
    clashing: tuple[str, ...] = ()
    """Paths that a merge reports as conflicts in place of writing them."""

    def __post_init__(self) -> None:
        self.decisions = MemoryDecisions()
        self.generation = 1
        self.step = StepReport(hunks=1)
        self.subscribers: list[asyncio.Queue[Event | None]] = []
        self.merges: list[MergeReport] = []
        self.undone: list[str] = []
        self.refuse: AppError | None = None
        self.decided: list[tuple[Decide, ...]] = []
        self.refreshed = 0
        self.remarks: list[Comment] = []
        self.disputes: list[Conflict] = []
        self.request = ChangeRequest("")
        self.imported: list[bytes] = []
        self.agents_commits = CommitList(self.info_value.id)
        self.commit_files: dict[tuple[str, bool], list[FakeFile]] = {}
        """What each commit changed, and what all that led to it did."""
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.answered: list[tuple[str, Answer, bool]] = []
        self.caps: list[CapChange] = []
        self.reloads = 0
        self.reads = 0
        self.viewed: dict[str, bytes | None] = {}

    def publish(self, kind: str) -> None:
        """Tell every subscriber that something happened."""
        for queue in self.subscribers:
            queue.put_nowait(Event(kind, self.info_value))  # type: ignore[arg-type]  # one of the kinds, kept as text

    async def close(self) -> None:
        """End the connection."""

    async def info(self) -> SessionInfo:
        """Return the session."""
        return self.info_value

    async def events(self) -> AsyncIterator[Event]:
        """Yield what is published until None."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self.subscribers.append(queue)
        try:
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self.subscribers.remove(queue)

    async def egress_answer(
        self, host: str, answer: Answer, *, wide: bool = False, ports: Sequence[int] = ()
    ) -> str:
        """Note an answer; the question goes."""
        if self.refuse is not None:
            raise self.refuse
        asked = [one for one in self.info_value.asks if one.host == host]
        if not asked:
            raise AppError("no-such", f"Nobody asks about {host} any more.")
        self.answered.append((host, answer, wide))
        left = tuple(one for one in self.info_value.asks if one.host != host)
        self.info_value = msgspec.structs.replace(self.info_value, asks=left)
        self.publish("session")
        shown = replace(asked[0], ports=tuple(ports) or asked[0].ports)
        return choice(shown, answer, wide=wide).text

    async def egress_cap(self, change: CapChange) -> str:
        """Note an answer about the cap; the question goes."""
        if self.refuse is not None:
            raise self.refuse
        meter = self.info_value.meter
        if change.asked != meter.asked or not meter.asks:
            raise AppError("no-such", "Nobody asks about the session's cap (any more).")
        self.caps.append(change)
        left = msgspec.structs.replace(meter, asks=False)
        self.info_value = msgspec.structs.replace(self.info_value, meter=left)
        self.publish("session")
        return "cap of $10.00"

    async def egress_reload(self) -> None:
        """Note it."""
        self.reloads += 1

    async def changes(self, *, refresh: bool = False) -> Changes:
        """Return the changes with what was decided."""
        self.reads += 1
        self.refreshed += refresh
        files = tuple(self._change(file) for file in self.files)
        done = [merge for merge in self.merges if merge.merge not in self.undone]
        last = done[-1] if done else MergeReport("")
        return Changes(
            self.info_value.id,
            self.generation,
            files,
            last_merge=last.merge,
            last_merge_files=len(last.written),
        )

    def _change(self, file: FakeFile) -> FileChange:
        review = file.review()
        hunks: list[HunkInfo] = []
        for aspect in review.aspects:
            marks = review.marks(self.decisions, aspect)
            hunks.append(HunkInfo(aspect.id, 0, 0, 0, 0, state_of(marks), aspect.kind, marks))
        for hunk in review.hunks:
            marks = review.marks(self.decisions, hunk)
            edited = review.edit(self.decisions, hunk) is not None
            numbers = review.span(hunk)
            info = HunkInfo(hunk.id, *numbers, state_of(marks), "", marks, edited=edited)
            hunks.append(info)
        return FileChange(
            path=file.path,
            kind=file.change_kind,  # type: ignore[arg-type]  # one of the kinds, kept as text
            old_path=file.old_path,
            mode=review.file.mode,
            old_mode=review.file.old_mode,
            added=review.added,
            removed=review.removed,
            binary=review.binary,
            risk=review.risk,
            tier=review.tier,
            note=file.note,
            base=review.file.base,
            agent=review.file.agent,
            decision=review.state(self.decisions) if review.units else "open",
            drift=file.drift,
            merged=any(
                file.path in merge.written
                for merge in self.merges
                if merge.merge not in self.undone
            ),
            hunks=tuple(hunks),
            comments=sum(comment.path == file.path for comment in self.remarks),
            viewed=file.path in self.viewed and self.viewed[file.path] == file.agent is not None,
        )

    async def decide(self, decisions: Sequence[Decide]) -> None:
        """Record decisions as one step."""
        if self.refuse is not None:
            raise self.refuse
        self.decided.append(tuple(decisions))
        marks: list[Mark] = []
        for decision in decisions:
            file = next(file for file in self.files if file.path == decision.path)
            review = file.review()
            if decision.lines and len(decision.hunks) == 1:
                lines = (decision.decision, decision.hunks[0], decision.lines)
                marks.append(review.decide_lines(self.decisions, *lines))
            else:
                marks += review.decide(decision.decision, decision.hunks)
        self.decisions.record(marks)
        self.publish("decisions")

    async def view(self, path: str, *, viewed: bool) -> None:
        """Mark a file as viewed, or not."""
        file = next(file for file in self.files if file.path == path)
        self.viewed[path] = file.agent if viewed else None
        self.publish("decisions")

    async def undo_decision(self) -> StepReport:
        """Take the last step back."""
        done = self.decisions.undo()
        self.publish("decisions")
        return self.step if done else StepReport()

    async def redo_decision(self) -> StepReport:
        """Do a step again."""
        done = self.decisions.redo()
        self.publish("decisions")
        return self.step if done else StepReport()

    async def comments(self) -> list[Comment]:
        """Return the comments."""
        return list(self.remarks)

    async def comment(self, request: CommentRequest) -> Comment:
        """Write a comment."""
        if self.refuse is not None:
            raise self.refuse
        made = Comment(
            id=request.id or f"c{len(self.remarks) + 1}",
            path=request.path,
            text=request.text,
            side=request.side,
            start=request.start,
            end=request.end or request.start,
            hunk=request.hunk,
        )
        if request.id:
            old = next(one for one in self.remarks if one.id == request.id)
            made = msgspec.structs.replace(old, text=request.text)
        self.remarks = [one for one in self.remarks if one.id != made.id] + [made]
        self.publish("decisions")
        return made

    async def uncomment(self, id: str) -> None:
        """Take a comment away."""
        self.remarks = [one for one in self.remarks if one.id != id]
        self.publish("decisions")

    async def hunk_result(self, path: str, hunk: str) -> HunkResult:
        """Return what stands in a hunk's place."""
        review = next(file for file in self.files if file.path == path).review()
        unit = next(one for one in review.hunks if one.id == hunk)
        proposed = review.hunk_result(Uniform("accepted"), unit)
        edited = review.edit(self.decisions, unit) is not None
        return HunkResult(review.hunk_result(self.decisions, unit), proposed, edited)

    async def edit(self, request: EditRequest) -> None:
        """Replace a hunk's result."""
        file = next(file for file in self.files if file.path == request.path)
        self.decisions.record(file.review().decide("accepted", (request.hunk,)))
        self.decisions.edits[os.fsencode(request.path), request.hunk] = request.content
        self.publish("decisions")

    async def conflicts(self, path: str = "") -> list[Conflict]:
        """Return what a test put there."""
        whole = [Conflict(p, f"w{p}", "whole", "you changed it too") for p in self.clashing]
        return [one for one in (*self.disputes, *whole) if path in ("", one.path)]

    async def resolve(self, request: Resolve) -> None:
        """Choose."""
        choice = "" if request.choice == "open" else request.choice
        self.disputes = [
            msgspec.structs.replace(one, choice=choice, text=request.text)
            if one.path == request.path and request.conflict in ("", one.id)
            else one
            for one in self.disputes
        ]
        self.publish("decisions")

    async def find(self, text: str) -> FoundPlaces:
        """Return where a text stands in the changed files."""
        places: list[FoundPlace] = []
        for file in self.files:
            review = file.review()
            lines = {"old": review.old_lines, "new": review.new_lines}
            places += [
                FoundPlace(
                    file.path, side, review.line_number(side, n) or 0, lines[side][n].decode()
                )
                for side, n in Places(review)(text)
            ]
        return FoundPlaces(tuple(places))

    async def change_request(self) -> ChangeRequest:
        """Return the prompt of everything that the agent was not told of yet."""
        return self.request

    async def request_changes(self, text: str, items: Sequence[str]) -> None:
        """Type a request for changes into the agent's terminal, and note what it was told of."""
        self.asked.append((text, tuple(items)))

    async def commits(self, *, look: bool = False, publish: bool = False) -> CommitList:
        """Return the agent's commits of the last look, or of a new one; `publish` makes refs."""
        del look
        if publish:
            branches = self.agents_commits.branches
            named = [msgspec.structs.replace(b, ref=f"refs/cloche/s/{b.name}") for b in branches]
            self.agents_commits = msgspec.structs.replace(
                self.agents_commits, branches=tuple(named)
            )
        return self.agents_commits

    async def commit_change(self, commit: str, *, whole: bool = False) -> CommitChange:
        """Return what a commit changed."""
        if self.refuse is not None:
            raise self.refuse
        files = self.commit_files[commit, whole]
        return CommitChange(commit, "", tuple(self._of_commit(file) for file in files))

    def _of_commit(self, file: FakeFile) -> FileChange:
        change = self._change(file)
        return msgspec.structs.replace(change, hunks=(), decision="open")

    async def commit_content(self, name: str) -> bytes:
        """Return one side of a file of a commit."""
        for file in (file for files in self.commit_files.values() for file in files):
            review = file.review()
            for side, content in ((review.file.base, file.base), (review.file.agent, file.agent)):
                if side == name and content is not None:
                    return content
        raise AppError("not-found", "There is no such content.")

    async def import_patch(self, patch: bytes) -> PatchReport:
        """Decide the files that a patch names as it says; one undo step."""
        self.imported.append(patch)
        return PatchReport((), 0, 0)

    async def merge(self, request: MergeRequest) -> MergeReport:
        """Report what is accepted as written, without writing."""
        if self.refuse is not None:
            raise self.refuse
        results = {
            file.path: (file.old_path or file.path if file.base is not None else None, result.path)
            for file in self.files
            if file.review().units and (result := file.review().result(self.decisions)) is not None
        }
        accepted = list(results)
        moves = [(old, new) for path, (old, new) in results.items() if path not in self.clashing]
        report = MergeReport(
            merge=f"m{len(self.merges) + 1}",
            written=tuple(path for path in accepted if path not in self.clashing),
            conflicts=tuple(path for path in accepted if path in self.clashing),
            dry_run=request.dry_run,
            wrote=tuple(os.fsdecode(new) for _, new in moves if new is not None),
            deleted=tuple(old for old, new in moves if old is not None and os.fsencode(old) != new),
        )
        if not request.dry_run:
            self.merges.append(report)
            self.publish("merge")
        return report

    async def undo(self, merge: str) -> UndoReport:
        """Take a merge back."""
        self.undone.append(merge)
        report = next(report for report in self.merges if report.merge == merge)
        self.publish("merge")
        made = {file.path for file in self.files if file.base is None} | {
            file.path for file in self.files if file.old_path
        }
        return UndoReport(
            merge,
            report.written,
            wrote=(*(path for path in report.wrote if path not in made), *report.deleted),
            deleted=tuple(path for path in report.wrote if path in made),
        )

    async def blob(self, digest: str) -> bytes:
        """Return one side of a file."""
        side, _, path = digest.partition(":")
        file = next(file for file in self.files if file.path == path)
        content = file.base if side[0] == "b" else file.agent
        assert content is not None
        return content


class FakeFleet:
    """All sessions, in memory."""

    def __init__(self, sessions: Sequence[FakeSession] = ()) -> None:
        self.keepers = {session.info_value.id: session for session in sessions}
        self.changed = asyncio.Event()
        self.started: list[tuple[str, Path, str]] = []
        self.stopped: list[str] = []
        self.resumed: list[str] = []
        self.removed: list[str] = []
        self.opened: list[str] = []
        self.refuse: Exception | None = None

    def agents(self) -> tuple[AgentChoice, ...]:
        """Return two agents."""
        return (
            AgentChoice("demo", "works for about ten seconds and changes a bit of everything"),
            AgentChoice("shell", "a login shell in the workspace"),
        )

    async def watch(self) -> AsyncIterator[list[SessionInfo]]:
        """Yield the list each time that it changed."""
        while True:
            yield [keeper.info_value for keeper in self.keepers.values()]
            await self.changed.wait()
            self.changed.clear()

    def update(self, session_id: str, **changes: object) -> None:
        """Change facts of a session and tell the watchers."""
        keeper = self.keepers[session_id]
        keeper.info_value = msgspec.structs.replace(keeper.info_value, **changes)
        keeper.publish("session")
        self.changed.set()

    async def open(self, session_id: str) -> FakeSession:
        """Connect to a keeper."""
        if self.refuse is not None:
            raise self.refuse
        self.opened.append(session_id)
        return self.keepers[session_id]

    async def start(self, agent: str, workspace: Path, name: str) -> str:
        """Start a session in memory."""
        if self.refuse is not None:
            raise self.refuse
        self.started.append((agent, workspace, name))
        session_id = f"new{len(self.started)}"
        info = SessionInfo(
            session_id,
            name or f"{agent}-{len(self.started)}",
            agent,
            "starting",
            str(workspace),
            "tcg",
            0.0,
        )
        self.keepers[session_id] = FakeSession(info)
        self.changed.set()
        return session_id

    async def resume(self, session_id: str) -> None:
        """Note it."""
        self.resumed.append(session_id)
        self.update(session_id, state="starting")

    async def stop(self, session_id: str) -> None:
        """Note it."""
        self.stopped.append(session_id)
        self.update(session_id, state="stopped")

    async def remove(self, session_id: str) -> None:
        """Forget the session."""
        self.removed.append(session_id)
        del self.keepers[session_id]
        self.changed.set()


def session_info(
    session_id: str,
    name: str,
    agent: str,
    state: SessionState = "running",
    agent_state: AgentState = "working",
    *,
    workspace: str = "/home/me/parser",
    created: float = 0.0,
    counts: tuple[int, int, int] = (0, 0, 0),
    since: float = 0.0,
    message: str = "",
) -> SessionInfo:
    """Return a session's facts; `counts` are files, added, removed."""
    return SessionInfo(
        id=session_id,
        name=name,
        agent=agent,
        state=state,
        workspace=workspace,
        accelerator="tcg",
        created=created,
        changes=Counts(*counts),
        agent_state=agent_state,
        since=since,
        open_units=counts[0] * 2,
        message=message,
    )
