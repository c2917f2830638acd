"""Taking a snapshot: one walk that hashes every file and streams it into a squashfs image.

The manifest lists what went into the image, entry by entry, so the two cannot disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapshot.capture_report import (
    IMAGE,
    MANIFEST,
    REPORT,
    CaptureOptions,
    SnapshotReport,
    load_snapshot,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "IMAGE",
    "MANIFEST",
    "REPORT",
    "CaptureOptions",
    "SnapshotReport",
    "load_snapshot",
    "take_snapshot",
]


def take_snapshot(workspace: Path, dest: Path, options: CaptureOptions) -> SnapshotReport:
    """Capture `workspace` into `dest` (an existing folder): IMAGE, MANIFEST and REPORT.

    Blocks; run it in a thread. Raises WorkspaceRefused, ToolMissing, or SnapshotError when the disk
    is full; whatever was written until then is removed.
    """
    from snapshot.capture_run import run  # loads dulwich, which a mere reader does not need

    return run(workspace, dest, options)
