"""Taking a merge back: another merge, from what was written to what was there before.

A file that still is what the merge wrote gets its old content, mode, owner and attributes. One
that the user edited since is merged by lines; where that is not possible it stays as it is and is
named. The undo has its own journal and its own pre-images.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import DecisionUnknown, MergeAborted, StoreDamaged, WorkspaceRefused
from .writeback_commit import Drift
from .writeback_journal import Record, note_state, read_exactly, read_journal
from .writeback_ops import (
    UNTOUCHED,
    Done,
    MergePlan,
    Refusal,
    Side,
    Touched,
    Wish,
    no_tick,
    touched_by,
)
from .writeback_plan import ALREADY, make_plan
from .writeback_run import carry_out, new_merge_id, recover, workspace_lock
from .writeback_tree import Entry, Tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from .writeback_images import Images

UNDO_SUFFIX: Final = "-undo"
"""What the id ends with under which the taking back of a merge is journalled itself."""

_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """What taking back a merge did; a path in `conflicts` was left as it is."""

    merge: str
    restored: tuple[bytes, ...]
    """The changes that were taken back, by the names that the merge gave them."""
    conflicts: tuple[Refusal, ...]
    notices: tuple[Refusal, ...] = ()
    touched: Touched = UNTOUCHED
    """The paths of the workspace that it changed."""


class _Change(NamedTuple):
    """What a merge did to one path, all of its steps together."""

    pre: Entry
    pre_at: int
    """Number of the step that holds the pre-image."""
    post: Entry
    post_at: int
    wish: int
    mergeable: bool


def undo_merge(merges_dir: Path, merge: str, tick: Callable[[str], None] = no_tick) -> UndoOutcome:
    """Take a merge back: files that moved on are merged, or named as conflicts.

    Undoing what is undone already restores nothing and is no error.

    Raises:
        DecisionUnknown: there is no such merge, or it never was completed.
        MergeAborted: nothing was restored, or all of it was taken back.
        WorkspaceRefused: the workspace is not there.

    """
    record = _completed(merges_dir, merge)
    workspace = Path(record.workspace)
    drifted = b""
    with Tree(workspace) as tree, workspace_lock(tree):
        if tree.identity[1] != record.root[1]:
            raise WorkspaceRefused(
                f"{workspace} is not the folder that was merged into.",
                f"Restore by hand from {record.folder}.",
            )
        for _ in range(_ATTEMPTS):
            plan = _plan(record, workspace)
            try:
                return _undo(tree, record, plan, merges_dir, tick)
            except Drift as drift:
                drifted = drift.path
    raise MergeAborted(
        f"{os.fsdecode(drifted)!a} kept changing; nothing was restored.",
        f"Stop what writes to it, then: cloche undo {merge}",
    )


def _completed(merges_dir: Path, merge: str) -> Record:
    """Return the journal of a merge that can be undone."""
    if not merge or "/" in merge or merge.startswith("."):
        raise DecisionUnknown(
            f"{merge!a} is no merge.", "See which merges there are: cloche changes ID"
        )
    record = read_journal(merges_dir / merge)
    if record is not None and record.state == "COMMITTED":
        recover(merges_dir)
        record = read_journal(merges_dir / merge)
    if record is None or record.state not in ("DONE", "UNDONE"):
        raise DecisionUnknown(
            f"Merge {merge} was never completed, so there is nothing to take back.",
            "See what changed: cloche changes ID",
        )
    return record


def _plan(record: Record, workspace: Path) -> MergePlan:
    changes = _changes(record)
    wishes = [_wish(record, path, change) for path, change in changes.items()]
    made = [path for path, change in changes.items() if change.wish < 0 and _is_new_dir(change)]
    wishes = [wish for wish in wishes if wish.old_path not in made]
    return make_plan(wishes, workspace, gone_dirs=made, allow_links=tuple(changes))


def _is_new_dir(change: _Change) -> bool:
    return change.pre.kind == "none" and change.post.kind == "dir"


def _changes(record: Record) -> dict[bytes, _Change]:
    """Join the steps of each path: the first says what was there, the last what was left."""
    changes: dict[bytes, _Change] = {}
    for number, op in enumerate(record.ops):
        first = changes.get(op.path)
        pre, pre_at = (first.pre, first.pre_at) if first else (op.pre, number)
        wish = max(op.wish, first.wish) if first else op.wish
        changes[op.path] = _Change(pre, pre_at, op.post, number, wish, op.mergeable)
    return changes


def _wish(record: Record, path: bytes, change: _Change) -> Wish:
    """Return the wish that turns one path back."""
    before = _side(record.images, f"pre/{change.pre_at}", change.pre)
    exactly = read_exactly(record.images, change.pre_at, change.pre)
    return Wish(
        name=record.names[change.wish] if change.wish >= 0 else path,
        old_path=path if change.post.kind != "none" else None,
        new_path=path if change.pre.kind != "none" else None,
        base=_left_side(record, change),
        result=before,
        exactly=exactly if change.pre.kind in ("file", "dir") else None,
        group=change.wish if change.wish >= 0 else None,
    )


def _left_side(record: Record, change: _Change) -> Side:
    """Return what the merge left; of files that cannot be merged only the digest is known."""
    if change.mergeable:
        return _side(record.images, f"post/{change.post_at}", change.post)
    kind = "none" if change.post.kind == "special" else change.post.kind
    return Side(kind, b"", change.post.executable, change.post.digest)


def _side(images: Images, name: str, entry: Entry) -> Side:
    """Return a side from what is kept of the merge."""
    match entry.kind:
        case "file" | "link":
            side = Side(entry.kind, _read_image(images, name), entry.executable)
            if side.digest != entry.digest:
                raise _damaged(f"{images.path(name)} does not hold what it must.")
            return side
        case "dir":
            return Side("dir")
        case _:
            return Side("none")


def _read_image(images: Images, name: str) -> bytes:
    try:
        return images.read(name)
    except FileNotFoundError as error:
        raise _damaged(f"{images.path(name)} is missing.") from error
    except OSError as error:
        raise _damaged(f"{images.path(name)} cannot be read: {error.strerror}.") from error


def _damaged(message: str) -> StoreDamaged:
    return StoreDamaged(message, "Restore the file from your history.")


def _undo(
    tree: Tree, record: Record, plan: MergePlan, merges_dir: Path, tick: Callable[[str], None]
) -> UndoOutcome:
    done = Done([], [])
    if plan.ops:
        again = f"{new_merge_id()}{UNDO_SUFFIX}"
        done = carry_out(tree, plan, merges_dir / again, again, tick)
    stuck = [refusal for refusal in plan.skipped if refusal.reason != ALREADY]
    conflicts = (*plan.conflicts, *stuck, *done.late)
    named = {refusal.path for refusal in conflicts}
    restored = dict.fromkeys(path for path in plan.written if path not in named)
    if not conflicts:
        note_state(record.folder, "UNDONE")
    elif restored:
        note_state(record.folder, record.state, restored)
    ours = (op for op in plan.ops if op.wish >= 0 and plan.names[op.wish] not in named)
    return UndoOutcome(
        record.merge, tuple(restored), conflicts, tuple(done.notices), touched_by(ours)
    )
