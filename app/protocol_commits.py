"""The values about an agent's commits that cross `control.sock`; as those of `app.protocol`."""

from __future__ import annotations

import msgspec

from app.protocol import FileChange  # noqa: TC001 - msgspec reads the annotations


class Branch(msgspec.Struct, frozen=True):
    """A branch of the agent's repository with new commits; `HEAD` for a detached one."""

    name: str
    commit: str
    ref: str = ""
    """The ref of the user's repository that it became, empty before it was fetched."""


class CommitFile(msgspec.Struct, frozen=True):
    """A path that a commit changed against its first parent."""

    path: str
    change: str
    """`A` added, `M` modified, `D` deleted."""
    submodule: bool = False
    added: int | None = None
    removed: int | None = None
    """Changed lines; null where they were not counted or there are none to count."""


class CommitInfo(msgspec.Struct, frozen=True):
    """A commit of the agent; author, time and message are what the agent wrote."""

    id: str
    parents: tuple[str, ...]
    author: str
    at: int
    message: str
    files: tuple[CommitFile, ...] = ()
    cut: bool = False
    """Whether it changed more paths than are listed."""
    withheld: tuple[str, ...] = ()
    """Paths that were withheld from the agent, or look like secrets."""


class CommitList(msgspec.Struct, frozen=True):
    """The agent's commits that the user's repository does not have."""

    session: str
    branches: tuple[Branch, ...] = ()
    commits: tuple[CommitInfo, ...] = ()
    """Each one after its children."""
    left_out: tuple[str, ...] = ()
    """Refs that are not taken: tags, and names that are not plain."""


class CommitsPage(msgspec.Struct, frozen=True):
    """As many commits as fit into one line; the rest is asked for by `start`."""

    list: CommitList
    total: int


class CommitChange(msgspec.Struct, frozen=True):
    """What changed from one commit to another, for the eyes alone: decisions are made elsewhere.

    `base` and `agent` of a file are names for `commit_content`, its `hunks` are empty.
    """

    commit: str
    base: str
    """The commit that it is compared with; empty: with nothing."""
    files: tuple[FileChange, ...] = ()
    left_out: int = 0
    """Changed paths beyond those that are listed."""
    uncounted: int = 0
    """Listed files whose lines were not counted, since there was too much to read."""


class CommitChangePage(msgspec.Struct, frozen=True):
    """As many files as fit into one line; the rest is asked for by `start`."""

    change: CommitChange
    total: int


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a content of the agent's commits."""

    data: bytes
    total: int
    """Bytes of the whole content."""
