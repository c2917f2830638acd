"""Running a merge from lock to journal's end, and finishing what a crash interrupted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .errors import MergeAborted, SnapshotError, WorkspaceRefused
from .writeback_commit import Commit, Drift
from .writeback_journal import Journal, Record, drop_images, note_state, read_journal
from .writeback_ops import UNTOUCHED, Done, Refusal, Touched, no_tick
from .writeback_revert import Reverter
from .writeback_tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .writeback_ops import MergePlan

LOCK_TIMEOUT_S: Final = 30.0
"""How long a merge waits for another one of the same workspace."""

_LOCK_POLL_S: Final = 0.05
_INTERRUPTED: Final = ("PLANNED", "PREPARED", "COMMITTED")
"""States that no merge stays in."""

_ATTEMPTS: Final = 3
"""Plans that are tried while files change under the merge."""


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """What a merge did; `merge` is its id, the name of its folder ("" if nothing was to do)."""

    merge: str
    written: tuple[bytes, ...]
    conflicts: tuple[Refusal, ...]
    skipped: tuple[Refusal, ...]
    notices: tuple[Refusal, ...]
    touched: Touched = UNTOUCHED
    """The paths of the workspace that it changed."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A merge that a crash had interrupted; `rolled_back` False: it was complete already."""

    merge: str
    rolled_back: bool
    leftovers: tuple[Refusal, ...]
    """What could not be brought back by itself, and where its contents lie."""


def new_merge_id() -> str:
    """Return an id that sorts by time and cannot be guessed."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(4)


def run_merge(
    plan: Callable[[], MergePlan],
    merges_dir: Path,
    tick: Callable[[str], None] = no_tick,
) -> MergeOutcome:
    """Plan and write, once more (three times at most) if a file changes in between.

    `run_merge(lambda: plan_merge(…), folder)`: the plan is made again under the workspace's lock if
    another merge held it, and whenever a file turns out to be another than planned for.

    Args:
        plan: makes a plan of the workspace as it is now.
        merges_dir: the session's folder of merges.
        tick: called before each step; for tests.

    Raises:
        MergeAborted: nothing was written, or all of it was taken back.
        WorkspaceRefused: the workspace is not there.

    """
    made = plan()
    workspace = made.workspace
    drifted = b""
    with Tree(workspace) as tree, workspace_lock(tree) as waited:
        for attempt in range(_ATTEMPTS):
            made = plan() if waited or attempt else made
            if made.root != tree.identity:
                raise _moved(workspace)
            try:
                return _write(tree, made, merges_dir, tick)
            except Drift as drift:
                drifted = drift.path
    raise MergeAborted(
        f"{os.fsdecode(drifted)!a} kept changing while it was merged; nothing was written.",
        "Stop what writes to it, then merge again.",
    )


def _moved(workspace: Path) -> WorkspaceRefused:
    return WorkspaceRefused(
        f"{workspace} is another folder than a moment ago.", "Merge again once it stays in place."
    )


def _write(
    tree: Tree, plan: MergePlan, merges_dir: Path, tick: Callable[[str], None]
) -> MergeOutcome:
    """Carry out one plan."""
    merge, done = "", Done([], [])
    if plan.ops:
        merge = new_merge_id()
        done = carry_out(tree, plan, merges_dir / merge, merge, tick)
    conflicts, notices = (*plan.conflicts, *done.late), (*plan.notices, *done.notices)
    return MergeOutcome(merge, plan.written, conflicts, plan.skipped, notices, plan.touched)


def carry_out(
    tree: Tree, plan: MergePlan, folder: Path, merge: str, tick: Callable[[str], None]
) -> Done:
    """Do a plan's steps with a journal and return what there is to tell.

    Raises:
        Drift: a path changed since the plan; nothing is changed by us.
        MergeAborted: a step failed; all of it was taken back.

    """
    tick("journal")
    try:
        journal = Journal.create(folder, merge, plan)
    except OSError as error:
        raise _aborted(error) from error
    try:
        return Commit(tree, merge, plan.ops, folder, journal.images, tick).run(journal)
    except OSError as error:
        raise _aborted(error) from error
    finally:
        journal.close()


def _aborted(error: OSError) -> MergeAborted:
    name = error.filename
    where = f" ({os.fsdecode(name)!a})" if isinstance(name, (bytes, str)) else ""
    return MergeAborted(
        f"The merge was taken back: {error.strerror}{where}.",
        "Free space or give yourself write access, then merge again.",
    )


@contextlib.contextmanager
def workspace_lock(tree: Tree, timeout_s: float = LOCK_TIMEOUT_S) -> Generator[bool]:
    """Hold the workspace's lock: one merge at a time, from whichever session.

    The lock is on the folder itself, so no file of ours is needed in it. The value is whether
    somebody else had it.

    Raises:
        MergeAborted: another merge did not end in time.

    """
    until = time.monotonic() + timeout_s
    waited = False
    while True:
        try:
            fcntl.flock(tree.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise MergeAborted(
                    f"Another merge into {tree.root} is still running; nothing was written.",
                    "Wait for it to end, then merge again.",
                ) from error
            waited = True
            time.sleep(_LOCK_POLL_S)
    try:
        yield waited
    finally:
        fcntl.flock(tree.fd, fcntl.LOCK_UN)


def recover(merges_dir: Path) -> list[Recovered]:
    """Roll back or finish what a crash interrupted; call it before anything else merges.

    A merge whose workspace is not there now is told as a leftover and tried again next time.
    """
    try:
        folders = sorted(path for path in merges_dir.iterdir() if path.is_dir())
    except FileNotFoundError:
        return []
    recovered: list[Recovered] = []
    for folder in folders:
        found = _recover_safely(folder)
        recovered += [found] if found else []
    return recovered


def _recover_safely(folder: Path) -> Recovered | None:
    """Recover one merge; what stands in the way is told and does not stop the others."""
    where = str(folder)
    try:
        record = read_journal(folder)
        if record is None or record.state not in _INTERRUPTED:
            return None
        where = record.workspace
        return _recover(record)
    except SnapshotError as error:
        reason = f"{error.message} {error.hint}"
    except OSError as error:
        reason = f"cannot be recovered now: {error.strerror}; it is tried again at the next start"
    return Recovered(folder.name, False, (Refusal(os.fsencode(where), reason),))


def _recover(seen: Record) -> Recovered | None:
    """Bring one interrupted merge to an end; None when it was only still running."""
    workspace = Path(seen.workspace)
    with Tree(workspace) as tree:
        if tree.identity[1] != seen.root[1]:
            raise _moved(workspace)
        with workspace_lock(tree):
            record = read_journal(seen.folder)
            if record is None or record.state not in _INTERRUPTED:
                return None
            complete = record.state == "COMMITTED"
            reverter = Reverter(tree, record.merge, record.ops, record.folder, record.images)
            left = _bring_to_an_end(reverter, record)
            note_state(record.folder, "DONE" if complete else "ABORTED")
            if not complete and not left:
                drop_images(record.folder)
    return Recovered(record.merge, not complete, tuple(left))


def _bring_to_an_end(reverter: Reverter, record: Record) -> list[Refusal]:
    if record.state == "COMMITTED":
        return reverter.finish()
    return reverter.roll_back(record.state == "PREPARED")
