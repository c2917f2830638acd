"""Doing a plan's steps, each by one rename.

The new content changes places with what is there, and only then is looked at what came out. If it
is not what the plan expected, somebody else wrote in between: it goes back in place, untouched.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from . import renameat
from .errors import MergeAborted
from .temp_names import temp_name
from .writeback_journal import Journal, drop_images, write_attributes
from .writeback_ops import Done, Refusal
from .writeback_revert import Place, Reverter, exchange, is_old
from .writeback_stage import copy_out, stage
from .writeback_sync import InFolder, sync_state, sync_workspace
from .writeback_tree import BECAME_OTHER, Blocked, split_last

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from .writeback_images import ImageWriter
    from .writeback_ops import Op

_SPARE: Final = 1 << 20
"""Bytes that must stay free besides what a merge writes."""


_NAMED: Final = 5
"""Most paths that one sentence names."""

_WHY_WEAKER: Final = (
    "this file system has no renames that exchange or keep what is there, so a save by another"
    " program in that very moment may have been lost"
)


class Drift(Exception):
    """A path is not what the plan saw; `path` names it."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path)
        self.path = path


@dataclass
class Commit(Reverter):
    """One merge (or undo) being done: `run`, and on any failure everything is taken back."""

    prepared: bool = False
    """Whether every new content lies ready, so that steps may have been done."""
    in_pieces: int = 0
    """How many steps took more than one rename."""

    def run(self, journal: Journal) -> Done:
        """Do every step and return what there is to tell.

        Raises:
            Drift: a path changed; nothing is changed by us.
            OSError: a step failed; nothing is changed by us.
            MergeAborted: a step failed, and something could not be taken back.

        """
        try:
            self._do_all(journal)
        except BaseException:
            self._take_back(journal)
            raise
        self.tick("finish")
        late = self.finish()
        with contextlib.suppress(OSError):
            # If the disk is full this line is missing; recovery then finishes once more.
            journal.reach("DONE")
        return Done(late, self._weaker_guarantee())

    def _do_all(self, journal: Journal) -> None:
        self._check_space()
        self._prepare(journal.images)
        self._sync_staged()
        self.tick("prepared")
        journal.prepared()
        self.prepared = True
        for number, op in enumerate(self.ops):
            self._do(number, op)
        self.tick("sync")
        self._sync_names()
        self.tick("commit")
        journal.reach("COMMITTED")

    def _take_back(self, journal: Journal) -> None:
        left = self.roll_back(self.prepared)
        with contextlib.suppress(OSError):
            # If the disk is full this line is missing; recovery then finds nothing to do.
            journal.reach("ABORTED")
        if left:
            raise self._incomplete(left) from None
        drop_images(self.folder)

    def _weaker_guarantee(self) -> list[Refusal]:
        if not self.in_pieces:
            return []
        what = "step was" if self.in_pieces == 1 else "steps were"
        return [
            Refusal(b".", f"{self.in_pieces} {what} done with a weaker guarantee: {_WHY_WEAKER}")
        ]

    def _incomplete(self, left: Sequence[Refusal]) -> MergeAborted:
        paths = {item.path for item in left}
        for number, op in enumerate(self.ops):
            if op.path in paths and op.pre.kind in ("file", "link"):
                self.old_version(number)
        names = ", ".join(os.fsdecode(item.path) for item in left[:_NAMED])
        more = ", …" if len(left) > _NAMED else ""
        where = "1 path" if len(left) == 1 else f"{len(left)} paths"
        return MergeAborted(
            f"The merge was taken back except for {where}: {names!a}{more}.",
            f"Compare this with the contents kept in {self.folder}.",
        )

    def _check_space(self) -> None:
        """Fail before anything is written if it cannot fit."""
        wanted = sum(len(op.content) for op in self.ops)
        kept = sum(op.pre.size for op in self.ops) + sum(
            len(op.content) for op in self.ops if op.mergeable
        )
        here = os.fstatvfs(self.tree.fd)
        there = os.statvfs(self.folder)
        for room, need in ((here, wanted), (there, kept)):
            if room.f_bavail * room.f_frsize < need + (_SPARE if need else 0):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _prepare(self, kept: ImageWriter) -> None:
        """Keep what will go and lay ready what will come."""
        for number, op in enumerate(self.ops):
            self.tick(f"stage {number}")
            attributes = self._keep(number, op, kept)
            if op.post.kind != "none":
                with self._folder(op.temp_dir, op.path) as fd:
                    stage(fd, temp_name(self.merge, number), op, attributes)
            if op.mergeable:
                kept.add(f"post/{number}", (op.content,))

    def _keep(self, number: int, op: Op, kept: ImageWriter) -> dict[str, bytes]:
        """Copy what a step replaces; it must be what the plan saw."""
        folder, name = split_last(op.path)
        if op.pre.kind not in ("file", "link"):
            return {}
        with self._folder(folder, op.path) as fd:
            try:
                found, attributes = copy_out(fd, name, partial(kept.add, f"pre/{number}"))
            except OSError as error:
                if error.errno in BECAME_OTHER or isinstance(error, FileNotFoundError):
                    raise Drift(op.path) from error
                raise
        if not found.is_same(op.pre):
            raise Drift(op.path)
        write_attributes(kept, number, attributes)
        return attributes

    @contextlib.contextmanager
    def _folder(self, folder: bytes, path: bytes) -> Generator[int]:
        """Hold a folder open; one that is no longer a plain folder is a drift of `path`."""
        try:
            with self.tree.folder(folder) as fd:
                yield fd
        except Blocked as error:
            raise Drift(path) from error

    def _sync_staged(self) -> None:
        """Bring what lies ready, and what is kept, to the disk."""
        staged = [(n, op) for n, op in enumerate(self.ops) if op.post.kind != "none"]
        files = [
            InFolder(op.temp_dir, temp_name(self.merge, n))
            for n, op in staged
            if op.post.kind == "file"
        ]
        sync_workspace(self.tree, files, {op.temp_dir for _, op in staged})
        sync_state(self.folder)

    def _sync_names(self) -> None:
        """Bring the renames to the disk; the contents are there."""
        sync_workspace(self.tree, [], {f for op in self.ops for f in _folders_of(op)})

    def _do(self, number: int, op: Op) -> None:
        """Do one step and look at what came out."""
        self.tick(f"rename {number}")
        temp = temp_name(self.merge, number)
        folder, name = split_last(op.path)
        with self._folder(op.temp_dir, op.path) as temp_fd, self._folder(folder, op.path) as fd:
            try:
                self.in_pieces += not _swap(op, (temp_fd, temp), (fd, name))
            except (FileExistsError, FileNotFoundError) as error:
                raise Drift(op.path) from error
            self.tick(f"verify {number}")
            if op.pre.kind != "none" and not is_old(temp_fd, temp, op):
                raise Drift(op.path)


def _folders_of(op: Op) -> tuple[bytes, bytes]:
    """Return the folders in which a step changes names."""
    return op.temp_dir, split_last(op.path)[0]


def _swap(op: Op, temp: Place, place: Place) -> bool:
    """Do the one rename of a step; returns whether the file system could do it in one."""
    if op.post.kind == "none":
        return renameat.move(*place, *temp)
    if op.pre.kind == "none":
        return renameat.move(*temp, *place)
    return exchange(temp, place)
