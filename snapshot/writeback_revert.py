"""Taking a merge's steps back, and dropping what they left behind.

What to do is read from the disk alone, from what lies at the path and under the temporary name, so
the same code serves a merge that failed and one that a crash interrupted.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from . import renameat
from .temp_names import BACKUP, temp_name
from .writeback_ops import Op, Refusal, no_tick
from .writeback_stage import copy_out
from .writeback_sync import together
from .writeback_tree import Blocked, Tree, look_at, split_last

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from .writeback_images import Images
    from .writeback_tree import Entry

Place = tuple[int, bytes]
"""An open folder and a name in it."""

_CHANGED: Final = "you changed it after it was written; it was left"


@dataclass
class Reverter:
    """Brings the paths of one merge back, or clears up after it.

    Args:
        tree: the workspace, open.
        merge: the merge's id.
        ops: its steps in their order.
        folder: the merge's folder.
        images: what is kept in it.
        tick: called before each step with its name; for tests, which fail or meddle there.

    """

    tree: Tree
    merge: str
    ops: Sequence[Op]
    folder: Path
    images: Images
    tick: Callable[[str], None] = no_tick

    def finish(self) -> list[Refusal]:
        """Drop the old contents that still lie under temporary names.

        One that is not what it was when it came out was written through an open file since: it
        is kept in the merge's folder and told.
        """
        numbers = range(len(self.ops))
        found = together(self._drop_one, numbers, lambda number: self.tick(f"drop {number}"))
        return [refusal for refusals in found for refusal in refusals]

    def _drop_one(self, number: int) -> list[Refusal]:
        return self._guarded(self.ops[number], self._drop_old, number)

    def _drop_old(self, number: int, op: Op) -> list[Refusal]:
        temp = temp_name(self.merge, number)
        with self.tree.folder(op.temp_dir) as fd:
            found = look_at(fd, temp)
            if found.kind == "none":
                return []
            if is_old(fd, temp, op):
                _discard(fd, temp)
                return []
            return [self._save_late(fd, temp, number, op)]

    def _save_late(self, fd: int, temp: bytes, number: int, op: Op) -> Refusal:
        """Move something unexpected from a temporary name into the merge's folder."""
        found = look_at(fd, temp)
        late = self.folder / "late"
        late.mkdir(exist_ok=True)
        if found.kind not in ("file", "link"):
            return Refusal(op.path, f"was written to while merging; see {os.fsdecode(temp)}")
        copied, _ = copy_out(fd, temp, partial(_write_new, late / str(number)))
        if copied.is_same(found):
            _discard(fd, temp)
        return Refusal(
            op.path, f"was written to while merging; that version is {late / str(number)}"
        )

    # Taking back

    def roll_back(self, prepared: bool) -> list[Refusal]:
        """Undo every step that was done, the last first; returns what could not be undone."""
        numbers = range(len(self.ops))[::-1]
        if prepared:
            found = [self._guarded(self.ops[n], self._revert, n) for n in numbers]
        else:
            found = together(self._unstage_one, numbers)
        return [refusal for refusals in found for refusal in refusals]

    def _unstage_one(self, number: int) -> list[Refusal]:
        return self._guarded(self.ops[number], self._unstage, number)

    def _guarded(
        self, op: Op, act: Callable[[int, Op], list[Refusal]], number: int
    ) -> list[Refusal]:
        """Do something for one step; a failure is told and does not stop the others."""
        try:
            return act(number, op)
        except Blocked:
            return [Refusal(op.path, "its folder is gone or no plain folder any more")]
        except OSError as error:
            return [Refusal(op.path, f"{error.strerror}")]

    def _unstage(self, number: int, op: Op) -> list[Refusal]:
        """Drop a temporary name when no step was done yet."""
        if op.post.kind != "none":
            with self.tree.folder(op.temp_dir) as fd:
                _discard(fd, temp_name(self.merge, number))
        return []

    def _revert(self, number: int, op: Op) -> list[Refusal]:
        """Bring one path back to what it was, whatever was done of its step."""
        folder, name = split_last(op.path)
        temp = temp_name(self.merge, number)
        with contextlib.ExitStack() as stack:
            temp_fd = stack.enter_context(self.tree.folder(op.temp_dir))
            try:
                fd = stack.enter_context(self.tree.folder(folder))
            except Blocked:
                if op.pre.kind != "none":
                    raise
                # Its folder was to be made by this merge and is not (or is gone again).
                _discard(temp_fd, temp)
                return []
            _unlink_backup(temp_fd, temp)
            if op.pre.kind == "none":
                return self._revert_creation(number, op, (temp_fd, temp), (fd, name))
            if op.post.kind == "none":
                return self._revert_removal(number, op, (temp_fd, temp), (fd, name))
            return self._revert_exchange(number, op, (temp_fd, temp), (fd, name))

    def _revert_creation(self, number: int, op: Op, temp: Place, place: Place) -> list[Refusal]:
        staged, now = look_at(*temp), look_at(*place)
        if staged.kind != "none":
            _discard(*temp)
            if staged.identity == now.identity:
                # A move by hard link was interrupted: both names are ours.
                _discard(*place)
            return []
        if now.kind == "none":
            return []
        if not now.is_same(op.post):
            return [] if self._is_back(op.path, now) else [Refusal(op.path, _CHANGED)]
        renameat.move(*place, *temp)
        if look_at(*temp).is_same(op.post) and _try_discard(*temp):
            return []
        renameat.move(*temp, *place)
        return [Refusal(op.path, _CHANGED)]

    def _is_back(self, path: bytes, now: Entry) -> bool:
        """Return whether an earlier try brought back what another step had taken from there."""
        return any(op.path == path and now.is_same(op.pre) for op in self.ops)

    def _revert_removal(self, number: int, op: Op, temp: Place, place: Place) -> list[Refusal]:
        out = look_at(*temp)
        if out.kind == "none":
            return []
        if out.identity == look_at(*place).identity:
            # A move by hard link was interrupted: the old name is still there.
            _discard(*temp)
            return []
        try:
            renameat.move(*temp, *place)
        except FileExistsError:
            return [self._put_aside(number, op, temp, "its name was taken meanwhile")]
        return []

    def _revert_exchange(self, number: int, op: Op, temp: Place, place: Place) -> list[Refusal]:
        out = look_at(*temp)
        if out.kind == "none":
            return []
        if out.is_same(op.post):
            _discard(*temp)
            return []
        now = look_at(*place)
        if not now.is_same(op.post):
            return [self._put_aside(number, op, temp, "you changed it after it was written")]
        exchange(temp, place)
        if look_at(*temp).is_same(op.post):
            _discard(*temp)
            return []
        exchange(temp, place)
        return [self._put_aside(number, op, temp, "you changed it after it was written")]

    def _put_aside(self, number: int, op: Op, temp: Place, reason: str) -> Refusal:
        """Leave a path to its new owner; what was there before lies in the merge's folder."""
        if look_at(*temp).is_same(op.pre):
            old = self.old_version(number)
            _try_discard(*temp)
            return Refusal(op.path, f"{reason}; the old version is {old}")
        return self._save_late(*temp, number, op)

    def old_version(self, number: int) -> str:
        """Return where what a step replaced can be found, if there is room as a file of its own."""
        name = f"pre/{number}"
        try:
            return str(self.images.put_out(name))
        except OSError:
            return self.images.path(name)


def _write_new(path: Path, chunks: Iterable[bytes]) -> None:
    with path.open("xb") as file:
        file.writelines(chunks)


def exchange(temp: Place, place: Place) -> bool:
    """Swap two names; without kernel support by a hard link and a rename.

    Returns whether it was one step.
    """
    try:
        renameat.exchange(*temp, *place)
    except renameat.Unsupported:
        backup = temp[1] + BACKUP
        os.link(place[1], backup, src_dir_fd=place[0], dst_dir_fd=temp[0], follow_symlinks=False)
        os.rename(temp[1], place[1], src_dir_fd=temp[0], dst_dir_fd=place[0])
        os.rename(backup, temp[1], src_dir_fd=temp[0], dst_dir_fd=temp[0])
        return False
    return True


def _unlink_backup(fd: int, temp: bytes) -> None:
    """Finish or forget a swap by hard link that was interrupted between its renames."""
    backup = temp + BACKUP
    if look_at(fd, backup).kind == "none":
        return
    if look_at(fd, temp).kind == "none":
        os.rename(backup, temp, src_dir_fd=fd, dst_dir_fd=fd)
    else:
        os.unlink(backup, dir_fd=fd)


def is_old(fd: int, temp: bytes, op: Op) -> bool:
    """Return whether what came out is what the plan saw; a folder must be empty as well."""
    found = look_at(fd, temp)
    if not found.is_same(op.pre):
        return False
    return found.kind != "dir" or _is_empty(fd, temp)


def _is_empty(fd: int, name: bytes) -> bool:
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    try:
        return not os.listdir(folder)
    finally:
        os.close(folder)


def _discard(fd: int, name: bytes) -> None:
    """Remove a temporary name: a file, a link or an empty folder; none is fine."""
    try:
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISDIR(status.st_mode):
        os.rmdir(name, dir_fd=fd)
    else:
        os.unlink(name, dir_fd=fd)


def _try_discard(fd: int, name: bytes) -> bool:
    """Remove a temporary name; False when it is a folder that is not empty."""
    try:
        _discard(fd, name)
    except OSError:
        return False
    return True
