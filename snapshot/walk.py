"""A walk through a tree that never leaves it.

Every name is opened relative to the folder that was listed, without following links, and what was
opened is what counts: its kind is asked again from the descriptor. A folder that somebody swaps for
a link while the walk runs is simply gone. However deep the tree, few descriptors stay open.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from snapshot.display import printable
from snapshot.errors import WorkspaceRefused
from snapshot.paths import join

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""O_NONBLOCK: a FIFO that took a file's name must not hold the walk."""

OPEN_FOLDERS: Final = 64
"""Most folders of one path that stay open; higher ones are opened again when the walk returns."""

_SPECIAL: Final = re.compile(r"[\\*?\[ ]")
"""What a pattern of an ignore file takes for something else than itself."""

_GONE: Final = (FileNotFoundError, NotADirectoryError)


@dataclass(slots=True)
class Folder:
    """One folder while it is walked: its descriptor is valid until the walk goes on."""

    path: bytes
    descriptor: int
    stat: os.stat_result
    entries: list[os.DirEntry[str]]
    """Sorted by name; the names are decoded as the file system's (surrogateescape)."""

    def child(self, name: str) -> bytes:
        """Give the path of `name` in this folder, relative to the tree's root."""
        return join(self.path, os.fsencode(name))


@dataclass(slots=True)
class _Frame:
    path: bytes
    descriptor: int | None
    identity: tuple[int, int]
    names: list[str] = field(default_factory=list[str])
    """Sub-folders that are still to be entered, the next one last."""


def walk(root: int, choose: Callable[[Folder], list[str]]) -> Generator[Folder]:
    """Yield the root folder and every folder below it, parents first, in order of names.

    `root` is an open descriptor that stays the caller's. `choose` is asked after the caller has
    handled a folder: which of its sub-folders to enter. Raises WorkspaceRefused for a folder that
    cannot be read.
    """
    stack: list[_Frame] = []
    try:
        folder = _open(root, ".", b"")
        while folder is not None:
            stack.append(_frame(folder))  # first: whatever the caller raises, the folder is closed
            yield folder
            stack[-1].names = choose(folder)[::-1]
            _close_far(stack)
            folder = _next(root, stack)
    finally:
        for frame in stack:
            _close(frame)


def open_below(root: int, path: bytes) -> int:
    """Open the folder `path` below `root`, following no link on the way (b"" is the root)."""
    current = os.open(".", FOLDER_FLAGS, dir_fd=root)
    for name in path.split(b"/") if path else ():
        try:
            following = os.open(name, FOLDER_FLAGS, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current


def read_regular(
    directory: int, name: str | bytes, limit: int
) -> tuple[bytes, os.stat_result] | None:
    """Read a regular file of at most `limit` bytes in the open folder `directory`.

    None for anything else: missing, unreadable, a link, a folder, too long.
    """
    try:
        descriptor = os.open(name, FILE_FLAGS, dir_fd=directory)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            return None
        pieces: list[bytes] = []
        left = limit
        while left > 0 and (piece := os.read(descriptor, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces), found
    except OSError:
        return None
    finally:
        os.close(descriptor)


def refused(path: bytes, error: OSError) -> WorkspaceRefused:
    """Say which path of the workspace (a folder's ends in a slash) cannot be read, what to do.

    The name is whoever's who wrote into the workspace, and the hint is pasted into a shell.
    """
    if path in (b"", b"/"):
        return WorkspaceRefused(
            f"The workspace cannot be read: {error.strerror}.",
            "In the workspace, run: chmod u+rx .",
        )
    shown = printable(path)
    right = "u+rx" if shown.endswith("/") else "u+r"
    pattern = "/" + _SPECIAL.sub(r"\\\g<0>", shown)
    return WorkspaceRefused(
        f"'{shown}' in the workspace cannot be read: {error.strerror}.",
        f"In the workspace, run: chmod {right} {shlex.quote('./' + shown)}"
        f" || echo {shlex.quote(pattern)} >> .clocheignore",
    )


def _open(parent: int, name: str, path: bytes) -> Folder | None:
    """Open and list one folder; None when it is no folder any more."""
    try:
        descriptor = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    except _GONE:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link has taken its place
            return None
        raise refused(path + b"/", error) from error
    try:
        with os.scandir(descriptor) as listing:
            entries = sorted(listing, key=_name_of)
        return Folder(path, descriptor, os.fstat(descriptor), entries)
    except OSError as error:
        os.close(descriptor)
        raise refused(path + b"/", error) from error


def _name_of(entry: os.DirEntry[str]) -> str:
    return entry.name


def _frame(folder: Folder) -> _Frame:
    found = folder.stat
    return _Frame(folder.path, folder.descriptor, (found.st_dev, found.st_ino))


def _close_far(stack: list[_Frame]) -> None:
    if len(stack) > OPEN_FOLDERS:
        _close(stack[-OPEN_FOLDERS - 1])


def _close(frame: _Frame) -> None:
    if frame.descriptor is not None:
        os.close(frame.descriptor)
        frame.descriptor = None


def _next(root: int, stack: list[_Frame]) -> Folder | None:
    """Enter the next sub-folder of the deepest frame that has one left."""
    while stack:
        frame = stack[-1]
        parent = _reopened(root, frame) if frame.names else None
        if parent is None:
            _close(stack.pop())
            continue
        name = frame.names.pop()
        folder = _open(parent, name, join(frame.path, os.fsencode(name)))
        if folder is not None:
            return folder
    return None


def _reopened(root: int, frame: _Frame) -> int | None:
    """Give the frame's folder, opened again if need be; None when another one is there now."""
    if frame.descriptor is not None:
        return frame.descriptor
    with contextlib.suppress(OSError):  # moved away meanwhile: what is left of it is not walked
        descriptor = open_below(root, frame.path)
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) == frame.identity:
            frame.descriptor = descriptor
            return descriptor
        os.close(descriptor)
    return None
