"""A git folder on the host, opened once and read without following links, and how to find it."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Final

from snapshot.git_config import BadConfig, parse
from snapshot.walk import FOLDER_FLAGS, read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

_POINTER: Final = re.compile(rb"gitdir: ([^\x00]+?)[\r\n]*")
_POINTER_BYTES: Final = 8192
_MAX_DEPTH: Final = 64


class Dir:
    """One open folder; names below it are opened part by part."""

    def __init__(self, descriptor: int, path: bytes) -> None:
        """Take over `descriptor`; `path` is where it lies, for messages and pointers."""
        self.descriptor = descriptor
        self.path = path
        found = os.fstat(descriptor)
        self.identity = (found.st_dev, found.st_ino)

    @classmethod
    def open(cls, path: bytes) -> Dir | None:
        """Open the folder at `path`; None when there is none (or it cannot be opened)."""
        try:
            return cls(os.open(path, FOLDER_FLAGS), path)
        except OSError:
            return None

    def close(self) -> None:
        """Close it; closing twice is allowed."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def enter(self, name: bytes) -> Dir | None:
        """Open the sub-folder `name`; None when it is none."""
        try:
            found = os.open(name, FOLDER_FLAGS, dir_fd=self.descriptor)
        except OSError:
            return None
        return Dir(found, self.path + b"/" + name)

    def names(self) -> list[bytes]:
        """List the folder, sorted; an unreadable folder is empty."""
        try:
            return sorted(map(os.fsencode, os.listdir(self.descriptor)))
        except OSError:
            return []

    def read(self, name: bytes, limit: int) -> bytes | None:
        """Read a regular file of at most `limit` bytes below this folder, else None."""
        found = self.read_stat(name, limit)
        return None if found is None else found[0]

    def read_stat(self, name: bytes, limit: int) -> tuple[bytes, os.stat_result] | None:
        """Read as `read` does and give the file's state as well."""
        *folders, last = name.split(b"/")
        place: Dir | None = self
        opened: list[Dir] = []
        try:
            for part in folders:
                place = place.enter(part) if place else None
                if place is None:
                    return None
                opened.append(place)
            return read_regular(place.descriptor, last, limit) if place else None
        finally:
            for item in opened:
                item.close()

    def files_below(self, name: bytes, depth: int = 0) -> Iterator[bytes]:
        """Give the paths of all names below the sub-folder `name` that are no folders."""
        folder = self.enter(name.rpartition(b"/")[2]) if depth < _MAX_DEPTH else None
        if folder is None:
            return
        try:
            for item in folder.names():
                found = os.lstat(item, dir_fd=folder.descriptor)
                if stat.S_ISDIR(found.st_mode):
                    yield from folder.files_below(name + b"/" + item, depth + 1)
                elif stat.S_ISREG(found.st_mode):
                    yield name + b"/" + item
        except FileNotFoundError:  # deleted meanwhile: packed, or gone
            return
        finally:
            folder.close()


def find(workspace: bytes, tree: bytes, directory: int) -> tuple[Dir, Dir] | str:
    """Find the git folder of the working tree `tree` and the one with its refs and objects.

    `workspace` and `tree` are real absolute paths, `directory` is the open working tree. Gives the
    reason as text when `.git` leads out of the workspace to a place that does not point back.
    """
    here = _own(workspace, tree, directory)
    if isinstance(here, str):
        return here
    pointer = here.read(b"commondir", _POINTER_BYTES)
    if pointer is None:
        return here, here
    path = os.path.realpath(os.path.join(here.path, pointer.strip()))
    administration = os.path.join(path, b"worktrees")
    if os.path.dirname(here.path) != administration and not is_inside(path, workspace):
        here.close()
        return "its commondir leads to another repository"
    common = Dir.open(path)
    if common is None:
        here.close()
        return "the main repository of the worktree is not there"
    return here, common


def _own(workspace: bytes, tree: bytes, directory: int) -> Dir | str:
    """Open the git folder that `.git` is or names."""
    name = b".git"
    try:
        return Dir(os.open(name, FOLDER_FLAGS, dir_fd=directory), os.path.join(tree, name))
    except OSError:
        found = read_regular(directory, name, _POINTER_BYTES)
    match = _POINTER.fullmatch(found[0]) if found else None
    if match is None:
        return ".git is neither a folder nor a pointer to one"
    path = os.path.realpath(os.path.join(tree, match[1]))
    folder = Dir.open(path)
    if folder is None:
        return "the folder that .git points to is not there"
    if is_inside(path, workspace) or _points_back(folder, tree):
        return folder
    folder.close()
    return "the folder that .git points to lies elsewhere and does not point back"


def _points_back(folder: Dir, tree: bytes) -> bool:
    """Whether a git folder says that `tree` is its working tree (worktree or submodule)."""
    pointer = folder.read(b"gitdir", _POINTER_BYTES)
    if pointer is not None:
        path = os.path.join(folder.path, pointer.strip())
        return os.path.realpath(path) == os.path.join(tree, b".git")
    try:
        settings = parse(folder.read(b"config", 1 << 20) or b"")
    except BadConfig:
        return False
    for item in settings:
        if item.name == "core.worktree" and item.subsection is None and item.value:
            path = os.path.join(folder.path, os.fsencode(item.value))
            return os.path.realpath(path) == tree
    return False


def is_inside(path: bytes, folder: bytes) -> bool:
    """Whether `path` is `folder` or lies below it, both being absolute and without links."""
    return path == folder or path.startswith(folder.rstrip(b"/") + b"/")
