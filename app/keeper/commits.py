"""The agent's commits: bundled in the guest by its own git, indexed and read on this side.

The list of the last look is kept in `commits.json`, the objects in `commits.git` of the session's
folder; nothing of the user's repository is touched before the user asks for it.
"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from app.errors import AppError
from app.files import read_regular, write_atomic
from app.keeper.agent_terminal import ENVIRONMENT
from app.keeper.commit_changes import CommitChanges
from app.keeper.threads import in_thread
from app.protocol_commits import Branch, CommitFile, CommitInfo, CommitList
from app.wire_text import text_path, to_text
from snapshot.capture import load_snapshot
from snapshot.git_import import MAX_BUNDLE, Quarantine, find_repository
from snapshot.safe_text import decode, safe_line
from vm.machine import guest_exec

if TYPE_CHECKING:
    from app.keeper.links import Links
    from app.protocol_commits import CommitChange, ContentPart
    from app.records import SessionRecord
    from snapshot.git_commits import AgentCommit
    from snapshot.git_import import Taken, UserRepository

LIST: Final = "commits.json"
QUARANTINE: Final = "commits.git"

BUNDLE_S: Final = 120.0
MAX_BASES: Final = 500
"""Commits of the user that the guest is told of; more would only make a bundle smaller."""

MAX_TEXT: Final = 4000
MAX_SHOWN_FILES: Final = 500
"""Characters of a message and files of a commit that clients get."""

_EMPTY: Final = b"empty bundle"


class Commits:
    """The commits of one session."""

    def __init__(self, record: SessionRecord, folder: Path) -> None:
        self._record = record
        self._folder = folder
        self._look_turn = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._changes = CommitChanges(folder / QUARANTINE, self._user)

    async def list(self) -> CommitList:
        """Return what the last look found."""
        return await in_thread(self._read)

    async def look(self, links: Links) -> CommitList:
        """Have the guest bundle what is new, and take it into the quarantine.

        Raises the errors of `snapshot` (BundleRefused), AppError `no-commits`, LinkLost.
        """
        async with self._look_turn:
            user = await in_thread(self._user)
            data = await self._bundle(links, user)
            async with self._turn:  # the guest's git may take minutes; reading goes on meanwhile
                return await in_thread(partial(self._take, data, user))

    async def publish(self) -> CommitList:
        """Write what the last look found as refs of the user's repository."""
        async with self._turn:
            return await in_thread(self._publish)

    async def change(self, commit: str, *, whole: bool) -> CommitChange:
        """Return what a listed commit changed, or with `whole` all that led to it."""
        async with self._turn:
            found = await in_thread(self._read)
            return await in_thread(partial(self._changes.change, found, commit, whole=whole))

    async def content(self, name: str, start: int) -> ContentPart:
        """Return a part of a content that a change names."""
        async with self._turn:
            return await in_thread(partial(self._changes.content, name, start))

    def _user(self) -> UserRepository:
        return find_repository(Path(text_path(self._record.workspace)), self._record.id)

    async def _bundle(self, links: Links, user: UserRepository) -> bytes:
        """Return the guest's bundle, empty when there is nothing new."""
        words = ("git", "-c", "core.hooksPath=/dev/null", "bundle", "create", "-q", "-")
        news = ("HEAD", "--branches", "--ignore-missing", "--not", *user.heads[:MAX_BASES])
        env = ENVIRONMENT | self._record.image_env
        command = guest_exec.Command((*words, *news), env=env)
        ssh, shells = await links.shells()
        done = await guest_exec.run(
            ssh, command, max_output=MAX_BUNDLE, timeout_s=BUNDLE_S, shells=shells
        )
        if done.exit_code == 0 and not done.stdout_truncated:
            return done.stdout
        if _EMPTY in done.stderr.lower():
            return b""
        raise self._failed(done)

    def _failed(self, done: guest_exec.ExecResult) -> AppError:
        if done.stdout_truncated:
            why = f"they are larger than {MAX_BUNDLE >> 20} MiB"
        elif done.timed_out:
            why = f"the guest's git took longer than {BUNDLE_S:.0f} s"
        else:
            lines = [line for line in decode(done.stderr[-2000:]).splitlines() if line.strip()]
            why = f"the guest's git says '{safe_line((lines or ['nothing'])[-1]).text[:200]}'"
        hint = f"Take the changes as files: cloche changes {self._record.id}"
        return AppError("no-commits", f"The agent's commits could not be had: {why}.", hint)

    def _take(self, data: bytes, user: UserRepository) -> CommitList:
        self._changes.forget()
        if not data:
            return self._write(CommitList(self._record.id))
        report = load_snapshot(self._folder)
        withheld = {*report.withheld, *report.tracked_withheld}
        taken = Quarantine(self._folder / QUARANTINE).take(data, user, withheld)
        return self._write(listed(self._record.id, taken))

    def _publish(self) -> CommitList:
        found = self._read()
        if not found.branches:
            raise AppError(
                "no-commits",
                "There are no commits of the agent to take.",
                f"Look for new ones: cloche commits {self._record.id}",
            )
        user = self._user()
        pairs = [(branch.name, branch.commit) for branch in found.branches]
        Quarantine(self._folder / QUARANTINE).publish(user, self._record.id, pairs)
        branches = [
            Branch(name, commit, f"refs/cloche/{self._record.id}/{name}") for name, commit in pairs
        ]
        return self._write(msgspec.structs.replace(found, branches=tuple(branches)))

    def _read(self) -> CommitList:
        try:
            return msgspec.json.decode(read_regular(self._folder / LIST), type=CommitList)
        except FileNotFoundError:
            return CommitList(self._record.id)

    def _write(self, found: CommitList) -> CommitList:
        write_atomic(self._folder / LIST, msgspec.json.encode(found))
        return found


def listed(session: str, taken: Taken) -> CommitList:
    """Return what a bundle held as clients are told of it."""
    return CommitList(
        session,
        tuple(Branch(branch, commit) for branch, commit in taken.branches),
        tuple(map(_wire, taken.commits)),
        tuple(to_text(ref) for ref in taken.left_out),
    )


def _wire(commit: AgentCommit) -> CommitInfo:
    files = tuple(
        CommitFile(to_text(file.path), file.change, file.submodule, file.added, file.removed)
        for file in commit.files[:MAX_SHOWN_FILES]
    )
    return CommitInfo(
        commit.id,
        commit.parents,
        to_text(commit.author[:MAX_TEXT]),
        commit.at,
        to_text(commit.message)[:MAX_TEXT],
        files,
        commit.cut or len(commit.files) > len(files),
        tuple(to_text(path) for path in commit.withheld),
    )
