"""The methods of `cloche.control` that are about reviewing: changes, decisions, merges."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from app.keeper.finding import find
from app.keeper.threads import in_thread
from app.protocol import MAX_LINE, Changes, ChangesPage, Decide, MergeRequest
from app.protocol_commits import CommitChangePage, CommitsPage
from app.protocol_review import (
    Comment,
    CommentRequest,
    CommentsPage,
    ConflictsPage,
    EditRequest,
    Resolve,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from app.keeper.desk import Desk
    from app.keeper.keeper import Keeper
    from app.protocol import EventKind

PAGE: Final = MAX_LINE // 2
"""Bytes of items in one answer; the envelope and the last item need the rest."""

T = TypeVar("T")


class _Refresh(msgspec.Struct, frozen=True):
    refresh: bool = False
    start: int = 0


class _Decide(msgspec.Struct, frozen=True):
    decisions: list[Decide]


class _View(msgspec.Struct, frozen=True):
    path: str
    viewed: bool = True


class _Undo(msgspec.Struct, frozen=True):
    merge: str


class _Comments(msgspec.Struct, frozen=True):
    start: int = 0


class _Comment(msgspec.Struct, frozen=True):
    id: str


class _Conflicts(msgspec.Struct, frozen=True):
    path: str = ""
    start: int = 0


class _Commits(msgspec.Struct, frozen=True):
    look: bool = False
    publish: bool = False
    start: int = 0


class _CommitChange(msgspec.Struct, frozen=True):
    commit: str
    whole: bool = False
    start: int = 0


class _CommitContent(msgspec.Struct, frozen=True):
    name: str
    start: int = 0


class _Find(msgspec.Struct, frozen=True):
    text: str


class _Patch(msgspec.Struct, frozen=True):
    patch: bytes


class _Request(msgspec.Struct, frozen=True):
    text: str
    items: tuple[str, ...] = ()


class _Hunk(msgspec.Struct, frozen=True):
    path: str
    hunk: str


class ReviewMethods:
    """What clients may ask about the changes of a session."""

    def __init__(self, keeper: Keeper, send: Callable[[str], Awaitable[None]]) -> None:
        self._keeper = keeper
        self._send = send
        self._listed = Changes("", -1)  # later pages are of the list that the first one began
        self.methods: dict[str, Callable[[msgspec.Raw], Awaitable[object]]] = {
            "changes": self._changes,
            "decide": self._decide,
            "view": self._view,
            "undo_decision": self._undo_decision,
            "redo_decision": self._redo_decision,
            "merge": self._merge,
            "undo": self._undo,
            "comments": self._comments,
            "comment": self._comment,
            "uncomment": self._uncomment,
            "hunk_result": self._hunk_result,
            "edit": self._edit,
            "import_patch": self._import_patch,
            "conflicts": self._conflicts,
            "resolve": self._resolve,
            "change_request": self._change_request,
            "request_changes": self._request_changes,
            "find": self._find,
            "commits": self._commits,
            "commit_change": self._commit_change,
            "commit_content": self._commit_content,
        }

    @property
    def _desk(self) -> Desk:
        return self._keeper.tree.desk

    async def _changes(self, params: msgspec.Raw) -> object:
        asked = parse(params, _Refresh)
        if asked.refresh:
            await self._keeper.refresh()
        if asked.start <= 0 or self._listed.generation != self._keeper.tree.generation:
            self._listed = await in_thread(self._desk.changes)
        return page_of(self._listed, max(0, asked.start))

    async def _decide(self, params: msgspec.Raw) -> object:
        asked = parse(params, _Decide)
        await in_thread(partial(self._desk.decide, asked.decisions))
        return await self._decided()

    async def _view(self, params: msgspec.Raw) -> object:
        asked = parse(params, _View)
        await in_thread(partial(self._desk.view, asked.path, viewed=asked.viewed))
        return self._told("decisions")

    async def _undo_decision(self, _: msgspec.Raw) -> object:
        report = await in_thread(self._desk.undo_decision)
        await self._decided()
        return report

    async def _redo_decision(self, _: msgspec.Raw) -> object:
        report = await in_thread(self._desk.redo_decision)
        await self._decided()
        return report

    async def _decided(self) -> dict[str, object]:
        self._keeper.ledger.change(open_units=await self._keeper.tree.open_units())
        return self._told("decisions")

    async def _merge(self, params: msgspec.Raw) -> object:
        request = parse(params, MergeRequest)
        report = await in_thread(partial(self._desk.merge, request))
        if not request.dry_run:
            await self._decided()
        self._told("merge")
        return report

    async def _undo(self, params: msgspec.Raw) -> object:
        merge = parse(params, _Undo).merge
        report = await in_thread(partial(self._desk.undo, merge))
        self._told("merge")
        return report

    def _told(self, kind: EventKind) -> dict[str, object]:
        self._keeper.ledger.tell(kind)
        return {}

    async def _comments(self, params: msgspec.Raw) -> object:
        start = max(0, parse(params, _Comments).start)
        found = await in_thread(self._desk.remarks.all)
        return comments_of(found, start)

    async def _comment(self, params: msgspec.Raw) -> object:
        asked = parse(params, CommentRequest)
        comment = await in_thread(partial(self._desk.remarks.write, asked))
        self._told("decisions")
        return comment

    async def _uncomment(self, params: msgspec.Raw) -> object:
        await in_thread(partial(self._desk.remarks.remove, parse(params, _Comment).id))
        return self._told("decisions")

    async def _hunk_result(self, params: msgspec.Raw) -> object:
        asked = parse(params, _Hunk)
        return await in_thread(partial(self._desk.hunk_result, asked.path, asked.hunk))

    async def _edit(self, params: msgspec.Raw) -> object:
        asked = parse(params, EditRequest)
        await in_thread(partial(self._desk.edit, asked))
        return await self._decided()

    async def _import_patch(self, params: msgspec.Raw) -> object:
        patch = parse(params, _Patch).patch
        report = await in_thread(partial(self._desk.import_patch, patch))
        await self._decided()
        return report

    async def _conflicts(self, params: msgspec.Raw) -> object:
        asked = parse(params, _Conflicts)
        found = await in_thread(partial(self._desk.conflicts.all, asked.path))
        return ConflictsPage(_part(found, max(0, asked.start)), len(found))

    async def _find(self, params: msgspec.Raw) -> object:
        return await in_thread(partial(find, self._desk, parse(params, _Find).text))

    async def _commits(self, params: msgspec.Raw) -> object:
        asked = parse(params, _Commits)
        found = await self._keeper.commits.list() if not asked.look else None
        if found is None:
            found = await self._keeper.commits.look(self._keeper.links())
        if asked.publish:
            found = await self._keeper.commits.publish()
        part = _part(found.commits, max(0, asked.start))
        return CommitsPage(msgspec.structs.replace(found, commits=part), len(found.commits))

    async def _commit_change(self, params: msgspec.Raw) -> object:
        asked = parse(params, _CommitChange)
        found = await self._keeper.commits.change(asked.commit, whole=asked.whole)
        part = msgspec.structs.replace(found, files=_part(found.files, max(0, asked.start)))
        return CommitChangePage(part, len(found.files))

    async def _commit_content(self, params: msgspec.Raw) -> object:
        asked = parse(params, _CommitContent)
        return await self._keeper.commits.content(asked.name, asked.start)

    async def _change_request(self, _: msgspec.Raw) -> object:
        return await in_thread(self._desk.requests.request)

    async def _request_changes(self, params: msgspec.Raw) -> object:
        asked = parse(params, _Request)
        await self._send(asked.text)
        await in_thread(partial(self._desk.requests.note_sent, asked.items))
        return self._told("decisions")

    async def _resolve(self, params: msgspec.Raw) -> object:
        asked = parse(params, Resolve)
        await in_thread(partial(self._desk.conflicts.resolve, asked))
        return self._told("decisions")


def parse(params: msgspec.Raw, kind: type[T]) -> T:
    """Return a method's parameters. Raises MsgspecError."""
    return msgspec.json.decode(params, type=kind)


def page_of(changes: Changes, start: int) -> ChangesPage:
    """Return as many files from `start` on as one answer holds, one at least."""
    part = msgspec.structs.replace(changes, files=_part(changes.files, start))
    return ChangesPage(part, len(changes.files))


def comments_of(comments: tuple[Comment, ...], start: int) -> CommentsPage:
    """Return as many comments from `start` on as one answer holds, one at least."""
    return CommentsPage(_part(comments, start), len(comments))


def _part(items: Sequence[T], start: int) -> tuple[T, ...]:
    room, end = PAGE, start
    while end < len(items):
        size = len(msgspec.json.encode(items[end]))
        if size > room and end > start:
            break
        room -= size
        end += 1
    return tuple(items[start:end])
