"""All repositories of one workspace while it is captured: what they track, what goes along."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from snapshot.display import printable
from snapshot.git_borrowing import GitLeftOut
from snapshot.git_history import scan
from snapshot.git_repo import GitRepo, Member, open_repo
from snapshot.ignore import GitRules, PatternFile
from snapshot.paths import folders_above

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from snapshot.capture_report import CaptureOptions


class GitCapture:
    """The workspace's own repository, nested ones, submodules and worktrees."""

    def __init__(self, workspace: bytes, options: CaptureOptions) -> None:
        """`workspace` is its real absolute path."""
        self._workspace = workspace
        self._options = options
        self._repos: list[GitRepo] = []
        self._borrowed: dict[object, bytes] = {}
        self._tracked: dict[bytes, GitRepo] = {}
        self._folders: set[bytes] = set()
        self._notices: list[str] = []
        self.now_ns = time.time_ns()
        """The time that the rebuilt files bear."""
        self.tracked_withheld: tuple[bytes, ...] = ()
        self.history: tuple[bytes, ...] = ()
        self.history_cut = False

    def open(self, folder: bytes, directory: int, rules: GitRules) -> None:
        """Open the repository whose working tree is `folder`; note it when it cannot go along."""
        try:
            repo = open_repo(
                *(self._workspace, folder, directory, self._borrowed),
                alternates=self._options.alternates,
            )
        except GitLeftOut as reason:
            shown = printable(folder) or "."
            self._notices.append(f"The git repository of '{shown}' was left out: {reason}.")
            return
        self._repos.append(repo)
        if repo.index is not None:
            for path in repo.index.tracked():
                self._tracked[path] = repo
                self._note_folders(path)
        if not folder:
            exclude = PatternFile()
            exclude.add_bytes(repo.exclude(), ".git/info/exclude")
            rules.exclude = exclude.lines

    def _note_folders(self, path: bytes) -> None:
        for folder in folders_above(path):
            if folder in self._folders:
                break
            self._folders.add(folder)

    def notices(self) -> list[str]:
        """Give sentences about what is not as in the workspace."""
        return self._notices + [text for repo in self._repos for text in repo.notices]

    def tracks(self, path: bytes) -> bool:
        """Whether an index lists `path`."""
        return path in self._tracked

    def holds_tracked(self, folder: bytes) -> bool:
        """Whether an index lists `folder` (a submodule) or anything below it."""
        return folder in self._folders or folder in self._tracked

    def saw(self, path: bytes, found: os.stat_result) -> None:
        """Tell the index the state of a tracked file as it was captured."""
        index = self._tracked[path].index
        if index is not None:
            index.saw(path, found)

    def members(self, left_out: set[bytes]) -> Iterator[Member]:
        """Give all rebuilt `.git` folders (none with the option `git: none`)."""

        def is_left_out(path: bytes) -> bool:
            return path in left_out or any(folder in left_out for folder in folders_above(path))

        if left_out:
            self.tracked_withheld = tuple(sorted(filter(is_left_out, self._tracked)))
        for repo in self._repos if self._options.git == "full" else ():
            yield from repo.members(is_left_out)

    def scan_history(self) -> None:
        """Look for withheld names in the histories that go along, within the budget."""
        if self._options.git != "full":
            return
        deadline = time.monotonic() + self._options.history_seconds
        found: set[bytes] = set()
        for repo in self._repos:
            left = max(deadline - time.monotonic(), 0.0)
            objects = repo.objects()
            try:
                history = scan(objects, repo.heads(), left, self._options.history_commits)
            finally:
                objects.close()
            found.update(repo.prefix + path for path in history.paths)
            self.history_cut |= history.cut
        self.history = tuple(sorted(found))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for repo in self._repos:
            repo.close()
