"""The object folders of one repository: its own and those that it borrows from (alternates).

What `info/alternates` says is untrusted where it lies in the workspace: an archive may bring a
`.git` that names another repository of the user. Such a pointer is followed out of the workspace
only where the user allowed it. A repository outside (whose linked worktree the workspace is, which
it confirms itself) was not written by the workspace, so its pointers are.
"""

from __future__ import annotations

import os
import shlex
from typing import Final

from snapshot.display import printable
from snapshot.git_dir import Dir, is_inside

MAX_ALTERNATES: Final = 16
"""Most object folders that one repository may borrow from."""

_MAX_BYTES: Final = 64 << 10


class GitLeftOut(Exception):
    """The repository cannot go along; the message says why."""


def object_folders(
    workspace: bytes, folder: bytes, common: Dir, *, alternates: bool
) -> tuple[list[Dir], list[str]]:
    """Open the object folder of `common` and those it borrows from, each once, and give notices.

    `folder` is the working tree in `workspace`. With `alternates` the workspace's own repository
    (not one nested in it) may borrow from anywhere. Raises GitLeftOut.
    """
    first = common.enter(b"objects")
    if first is None:
        raise GitLeftOut("it has no objects folder")
    found = [first]
    try:
        allowed = alternates and not folder
        return found, _follow(workspace, folder, found, allowed=allowed)
    except BaseException:
        for item in found:
            item.close()
        raise


def _follow(workspace: bytes, folder: bytes, found: list[Dir], *, allowed: bool) -> list[str]:
    """Add to `found` what its folders borrow from, and what that borrows from."""
    notices: list[str] = []
    waiting, known = list(found), {found[0].identity}
    while waiting and len(found) <= MAX_ALTERNATES:
        place = waiting.pop()
        for path in _pointers(place):
            if not (allowed or _may_lead(place.path, path, workspace)):
                raise GitLeftOut(_reason(workspace, folder, found[0], path))
            there = Dir.open(path)
            if there is None:
                notices.append(f"The git objects of {printable(path)} cannot be read.")
            elif there.identity in known:
                there.close()
            else:
                known.add(there.identity)
                found.append(there)
                waiting.append(there)
                notices.append(f"Git objects of {printable(path)} are in the snapshot as well.")
    return notices


def _may_lead(place: bytes, path: bytes, workspace: bytes) -> bool:
    """Whether a pointer that lies in `place` may lead to `path` without the user's leave."""
    return is_inside(path, workspace) or not is_inside(place, workspace)


def _pointers(objects: Dir) -> list[bytes]:
    """Read the folders that `objects` borrows from, as absolute paths."""
    data = objects.read(b"info/alternates", _MAX_BYTES) or b""
    lines = [line for line in data.split(b"\n") if line and not line.startswith((b"#", b'"'))]
    return [os.path.realpath(os.path.join(objects.path, line)) for line in lines]


def _reason(workspace: bytes, folder: bytes, first: Dir, path: bytes) -> str:
    """Say what is borrowed from where, and the command that makes the repository whole."""
    git = f"git -C {shlex.quote('./' + printable(folder))}" if folder else "git"
    pointers = os.path.join(os.path.relpath(first.path, workspace), b"info/alternates")
    return (
        f"it borrows objects of {printable(path)}, outside of the workspace; this makes it whole:"
        f" `{git} repack -a -d && rm {shlex.quote(printable(pointers))}`"
    )
