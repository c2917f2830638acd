"""What could not be done with a tree or a decision.

SnapshotError
├─ WorkspaceRefused  the workspace cannot be captured (missing, unreadable, inside our own state)
├─ ToolMissing       mksquashfs or unsquashfs is not installed (exit 5)
├─ StoreDamaged      a file of ours does not hold what it must
├─ ListingRefused    a guest's listing broke a limit or a rule
├─ DecisionUnknown   a decision names a file or hunk that is not there (exit 4)
└─ MergeAborted      nothing was written, or all of it was taken back
"""

from __future__ import annotations

import errno
from typing import Final

DISK_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""How the system says that a disk, or the user's part of it, is full."""


class SnapshotError(Exception):
    """Something that `snapshot` could not do.

    `code` is stable and machine readable, `message` one sentence, `hint` the exact next step.
    """

    code = "snapshot"

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class WorkspaceRefused(SnapshotError):
    """The workspace cannot be captured."""

    code = "workspace-refused"


class ToolMissing(SnapshotError):
    """A program that the snapshot needs is not installed."""

    code = "host-lacks"


class StoreDamaged(SnapshotError):
    """A file of our own store does not hold what it must."""

    code = "store-damaged"


class ListingRefused(SnapshotError):
    """A guest's listing broke a limit or a rule."""

    code = "listing-refused"


class DecisionUnknown(SnapshotError):
    """A decision names a file or hunk that is not there."""

    code = "not-found"


class MergeAborted(SnapshotError):
    """The merge did not happen: nothing was written, or all of it was taken back."""

    code = "merge-aborted"
