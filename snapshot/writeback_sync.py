"""Bringing what a merge wrote to the disk, with as little of everybody else's as possible.

A few files are synced one by one by a small pool; that waits for nothing but them. Many are synced
at once with their whole file system, which is far cheaper unless somebody else writes a lot there:
then, after a limit, the pool does it after all.
"""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from . import renameat
from .durable import sync_path
from .writeback_tree import OPEN_FILE, Blocked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from .writeback_tree import Tree

MAX_SINGLE: Final = 500
"""Most files that are synced one by one; one takes 1 to 10 ms of a disk, and they add up."""

SYNCFS_LIMIT_S: Final = 10.0
"""How long a whole file system may take before its files are synced one by one."""

_POOL: Final = 8
"""Threads that wait for the disk; it joins what is asked for at the same time."""

_CHUNK: Final = 16

_T = TypeVar("_T")
_R = TypeVar("_R")


class InFolder(NamedTuple):
    """One name in a folder of the workspace."""

    folder: bytes
    name: bytes


def _nothing(_item: object) -> None:
    """Let an item pass."""


def sync_workspace(tree: Tree, files: Sequence[InFolder], folders: Iterable[bytes]) -> None:
    """Bring files of the workspace, and which names its folders hold, to the disk.

    What is not there any more, or no plain file or folder, is left to the steps that look at it.

    Raises:
        OSError: the disk refused.

    """
    if len(files) > MAX_SINGLE and _sync_all_of(tree.fd):
        return
    chunks = [files[at : at + _CHUNK] for at in range(0, len(files), _CHUNK)]
    together(lambda chunk: _sync_files(tree, chunk), chunks)
    together(lambda folder: _sync_folder(tree, folder), sorted(set(folders)))


def sync_state(folder: Path) -> None:
    """Bring a merge's folder, and the few files in it, to the disk.

    Raises:
        OSError: the disk refused.

    """
    together(sync_path, sorted(folder.iterdir()))
    sync_path(folder)


def together(
    work: Callable[[_T], _R], items: Sequence[_T], before: Callable[[_T], object] = _nothing
) -> list[_R]:
    """Do something for all items, some at a time; what came of each, in their order.

    `before` is called for each item in this thread, in their order. The first failure is raised
    when no item is being worked on any more.
    """
    if len(items) < 2:
        for item in items:
            before(item)
        return [work(item) for item in items]
    waiting: list[Future[_R]] = []
    with ThreadPoolExecutor(min(_POOL, len(items)), "disk") as pool:
        for item in items:
            before(item)
            waiting.append(pool.submit(work, item))
    return [done.result() for done in waiting]


def _sync_files(tree: Tree, files: Sequence[InFolder]) -> None:
    for folder, name in files:
        with contextlib.suppress(Blocked, FileNotFoundError), tree.folder(folder) as fd:
            try:
                file = os.open(name, OPEN_FILE, dir_fd=fd)
            except PermissionError:  # its mode lets nobody read it
                renameat.sync_file_system(fd)
                continue
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _sync_folder(tree: Tree, folder: bytes) -> None:
    with contextlib.suppress(Blocked), tree.folder(folder) as fd:
        os.fsync(fd)


def _sync_all_of(fd: int) -> bool:
    """Sync a whole file system; False when that takes longer than it may (it goes on alone)."""
    own = os.dup(fd)
    failed: list[OSError] = []

    def work() -> None:
        try:
            renameat.sync_file_system(own)
        except OSError as error:
            failed.append(error)
        finally:
            os.close(own)

    thread = threading.Thread(target=work, name="syncfs", daemon=True)
    thread.start()
    thread.join(SYNCFS_LIMIT_S)
    if failed:
        raise failed[0]
    return not thread.is_alive()
