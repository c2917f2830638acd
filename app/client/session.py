"""One connection to one session's keeper: `SessionClient`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self, cast

import asyncssh
import msgspec

from app.client.connection import CALL_S, Connection, keeper_lost
from app.client.launch import gone
from app.client.paging import all_pages
from app.errors import AppError
from app.programs import check_words
from app.protocol import (
    CapChange,
    CapWord,
    Changes,
    ChangesPage,
    Decide,
    EgressAnswer,
    EgressRule,
    Event,
    ExecResult,
    Forward,
    MergeReport,
    MergeRequest,
    SessionInfo,
    UndoReport,
)
from app.protocol_commits import (
    CommitChange,
    CommitChangePage,
    CommitList,
    CommitsPage,
    ContentPart,
)
from app.protocol_review import (
    ChangeRequest,
    Comment,
    CommentRequest,
    CommentsPage,
    Conflict,
    ConflictsPage,
    EditRequest,
    FoundPlaces,
    HunkResult,
    PatchReport,
    Resolve,
    StepReport,
)
from app.records import SessionRecord, read_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from app.paths import Paths
    from vm.egress.questions import Answer

MIRROR_S: Final = 300.0
"""Seconds for calls that may boot a machine, move gigabytes or decide about all files at once."""

MAX_BLOB: Final = 256 << 20
"""Largest content in bytes that is taken into memory."""


class SessionClient:
    """A connection to the keeper of one session; starts the keeper when none runs.

    An async context manager. Every call is bounded in time and raises AppError with the keeper's
    code, message and hint when it fails; a lost keeper is the code `keeper-lost`.
    """

    def __init__(self, record: SessionRecord, sockets: Path, connection: Connection) -> None:
        self.record = record
        self._sockets = sockets
        self._connection = connection
        self._sftp: asyncssh.SFTPClient | None = None

    @classmethod
    async def open(cls, paths: Paths, session_id: str, *, start: bool = True) -> Self:
        """Connect to the keeper of `session_id` (exact id), starting one when needed.

        Without `start` a session that has no keeper is the AppError `keeper-lost`.
        """
        folder = paths.session(session_id)
        try:
            record = read_session(folder)
        except FileNotFoundError as error:
            raise gone(session_id) from error
        connection = await Connection.open(
            folder, lambda: paths.sockets(session_id), record.control_key, start=start
        )
        return cls(record, paths.sockets(session_id), connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; the keeper and the session go on."""
        await self._connection.close()

    @property
    def ssh(self) -> asyncssh.SSHClientConnection:
        """The SSH connection itself, for commands with open streams."""
        return self._connection.ssh

    @property
    def pane_socket_path(self) -> Path:
        """Where the session's terminal is served (see architecture, `pane.sock`)."""
        return self._sockets / "pane.sock"

    async def info(self) -> SessionInfo:
        """Return the session as the keeper sees it now."""
        return await self._connection.ask("info", {}, SessionInfo)

    async def events(self) -> AsyncIterator[Event]:
        """Subscribe and yield events until the connection ends (then AppError `keeper-lost`)."""
        await self._connection.call("subscribe", {})
        async for event in self._connection.events():
            yield event

    async def changes(self, *, refresh: bool = False) -> Changes:
        """Return the changes of the last generation; `refresh` takes a mirror pass first."""
        page = await self._changes_page(refresh, 0)
        files = list(page.changes.files)
        first = page.changes
        while len(files) < page.total:
            page = await self._changes_page(False, len(files))
            if page.changes.generation != first.generation or not page.changes.files:
                return await self.changes()
            files += page.changes.files
        return msgspec.structs.replace(first, files=tuple(files))

    async def _changes_page(self, refresh: bool, start: int) -> ChangesPage:
        params = {"refresh": refresh, "start": start}
        return await self._connection.ask("changes", params, ChangesPage, MIRROR_S)

    async def decide(self, decisions: Sequence[Decide]) -> None:
        """Record decisions as one undo step."""
        await self._connection.call("decide", {"decisions": list(decisions)}, MIRROR_S)

    async def view(self, path: str, *, viewed: bool) -> None:
        """Mark a changed file as viewed in its present state, or take the mark away."""
        await self._connection.call("view", {"path": path, "viewed": viewed})

    async def undo_decision(self) -> StepReport:
        """Take back the last step of decisions, and return what it was about."""
        return await self._connection.ask("undo_decision", {}, StepReport)

    async def redo_decision(self) -> StepReport:
        """Do the step again that was taken back last, and return what it was about."""
        return await self._connection.ask("redo_decision", {}, StepReport)

    async def comments(self) -> list[Comment]:
        """Return every comment: by path, then by line."""

        async def page(start: int) -> CommentsPage:
            return await self._connection.ask("comments", {"start": start}, CommentsPage)

        _, found = await all_pages(page, lambda page: page.comments)
        return found

    async def comment(self, request: CommentRequest) -> Comment:
        """Write a comment, or a new text for one; one undo step."""
        return await self._connection.ask("comment", request, Comment)

    async def uncomment(self, id: str) -> None:
        """Take a comment away; one undo step."""
        await self._connection.call("uncomment", {"id": id})

    async def hunk_result(self, path: str, hunk: str) -> HunkResult:
        """Return what stands in a hunk's place as it is decided now."""
        return await self._connection.ask("hunk_result", {"path": path, "hunk": hunk}, HunkResult)

    async def edit(self, request: EditRequest) -> None:
        """Replace a hunk's result by the user's own lines; accepts it, one undo step."""
        await self._connection.call("edit", request)

    async def conflicts(self, path: str = "") -> list[Conflict]:
        """Return where what is accepted meets what the user did meanwhile, solved ones too."""

        async def page(start: int) -> ConflictsPage:
            params = {"path": path, "start": start}
            return await self._connection.ask("conflicts", params, ConflictsPage, MIRROR_S)

        _, found = await all_pages(page, lambda page: page.conflicts)
        return found

    async def resolve(self, request: Resolve) -> None:
        """Solve a conflict, or all of a path; one undo step."""
        await self._connection.call("resolve", request)

    async def find(self, text: str) -> FoundPlaces:
        """Return where a text stands in the changed files, regardless of case."""
        return await self._connection.ask("find", {"text": text}, FoundPlaces, MIRROR_S)

    async def change_request(self) -> ChangeRequest:
        """Return the prompt of everything that the agent was not told of yet."""
        return await self._connection.ask("change_request", {}, ChangeRequest)

    async def request_changes(self, text: str, items: Sequence[str]) -> None:
        """Type a request for changes into the agent's terminal, and note what it was told of."""
        await self._connection.call("request_changes", {"text": text, "items": list(items)})

    async def commits(self, *, look: bool = False, publish: bool = False) -> CommitList:
        """Return the agent's commits of the last look, or of a new one; `publish` makes refs."""

        async def page(start: int) -> CommitsPage:
            once = {"look": look and not start, "publish": publish and not start}
            params = {**once, "start": start}
            return await self._connection.ask("commits", params, CommitsPage, MIRROR_S)

        first, commits = await all_pages(page, lambda page: page.list.commits)
        return msgspec.structs.replace(first.list, commits=tuple(commits))

    async def commit_change(self, commit: str, *, whole: bool = False) -> CommitChange:
        """Return what a listed commit changed, or with `whole` all that led to it."""

        async def page(start: int) -> CommitChangePage:
            params = {"commit": commit, "whole": whole, "start": start}
            return await self._connection.ask("commit_change", params, CommitChangePage, MIRROR_S)

        first, files = await all_pages(page, lambda page: page.change.files)
        return msgspec.structs.replace(first.change, files=tuple(files))

    async def commit_content(self, name: str) -> bytes:
        """Return a content by the name that a commit's change gives it."""
        data = bytearray()
        while True:
            params = {"name": name, "start": len(data)}
            part = await self._connection.ask("commit_content", params, ContentPart, MIRROR_S)
            data += part.data
            if len(data) >= part.total or not part.data:
                return bytes(data)

    async def import_patch(self, patch: bytes) -> PatchReport:
        """Decide the files that a patch names as it says; one undo step."""
        return await self._connection.ask("import_patch", {"patch": patch}, PatchReport)

    async def merge(self, request: MergeRequest) -> MergeReport:
        """Write what is accepted into the workspace (or say what would be written)."""
        return await self._connection.ask("merge", request, MergeReport, MIRROR_S)

    async def undo(self, merge: str) -> UndoReport:
        """Take a whole merge back."""
        return await self._connection.ask("undo", {"merge": merge}, UndoReport, MIRROR_S)

    async def blob(self, digest: str) -> bytes:
        """Return the content named by a blake3 digest (base or agent side of a change)."""
        try:
            if self._sftp is None:
                self._sftp = await self.ssh.start_sftp_client()
            path = f"/{digest[:2]}/{digest}"
            size = (await self._sftp.stat(path)).size or 0
            if size > MAX_BLOB:
                raise AppError("too-large", f"The content has {size} bytes.")
            async with self._sftp.open(path, "rb") as file:
                return cast("bytes", await file.read())  # pyright: ignore[reportUnknownMemberType]
        except asyncssh.SFTPNoSuchFile as error:
            raise AppError("not-found", f"There is no content {digest}.") from error
        except (asyncssh.Error, OSError) as error:
            raise keeper_lost() from error

    async def exec(
        self,
        argv: Sequence[str],
        *,
        root: bool = False,
        cwd: str = "/workspace",
        timeout_s: float = 60.0,
    ) -> ExecResult:
        """Run a program in the guest to its end and return what it printed (1 MiB at most)."""
        check_words((*argv, cwd))
        params = {"argv": list(argv), "root": root, "cwd": cwd, "timeout_s": timeout_s}
        return await self._connection.ask("exec", params, ExecResult, timeout_s + CALL_S)

    async def send(self, text: str) -> None:
        """Type a prompt into the agent's terminal and submit it; never tried again."""
        await self._connection.call("send", {"text": text})

    async def ports(self) -> list[Forward]:
        """Return the session's forwarded ports."""
        return await self._connection.ask("ports", {}, list[Forward])

    async def add_port(self, forward: Forward) -> Forward:
        """Forward a port of this host's 127.0.0.1 to one of the guest's; what was bound."""
        return await self._connection.ask("add_port", forward, Forward)

    async def remove_port(self, host_port: int) -> None:
        """Forget a forwarded port and end its connections."""
        await self._connection.call("remove_port", {"host_port": host_port})

    async def egress_answer(
        self, host: str, answer: Answer, *, wide: bool = False, ports: Sequence[int] = ()
    ) -> str:
        """Answer an open question about a host; the rule that is in force now, in one line.

        `ports` are those that were shown: an allow is about no other; none: all that are asked.
        Raises AppError `no-such` when nobody asks about that host any more, `not-effective` when
        another rule decides before the answer's.
        """
        given = EgressAnswer(host, answer, wide, tuple(ports))
        return (await self._connection.ask("egress_answer", given, EgressRule)).rule

    async def egress_reload(self) -> None:
        """Have the session's network decided by the rules as they are in the files now."""
        await self._connection.call("egress_reload", {})

    async def egress_cap(self, change: CapChange) -> str:
        """Put other caps on the session's use of models; what holds now, in one line.

        Raises AppError `usage` for one that is reached already, or without a broker, `no-such` for
        an answer to a question that is over.
        """
        return (await self._connection.ask("egress_cap", change, CapWord)).cap

    async def resume(self, *, agent: bool = True, patience_s: float | None = None) -> None:
        """Boot the session's disk again; without `agent` only to mirror what it holds.

        `patience_s` is how long it may wait for memory, without it what the session's limits say.
        """
        await self._connection.call("resume", {"agent": agent, "patience_s": patience_s})

    async def rename(self, name: str) -> None:
        """Give the session another name; whether it is free is the caller's to know."""
        await self._connection.call("rename", {"name": name})

    async def stop(self) -> None:
        """Freeze, mirror for the last time and end the machine; returns when it has ended."""
        await self._connection.call("stop", {}, MIRROR_S)

    async def quit(self) -> None:
        """Ask a keeper without a machine to end; AppError `busy` while a machine runs."""
        await self._connection.call("quit", {})
