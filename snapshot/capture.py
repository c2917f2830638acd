"""Taking a snapshot: one walk that hashes every file and streams it into a squashfs image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from snapshot.ignore import IgnoreRules
    from snapshot.manifest import Manifest

IMAGE = "workspace.squashfs"
MANIFEST = "manifest.json"
REPORT = "snapshot.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """How to take a snapshot.

    `own_folders` are Cloche's state and store: a workspace inside one is refused, one inside the
    workspace is left out. `exclude` are gitignore-style patterns of the config and command line.
    """

    own_folders: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()
    git: Literal["none", "full"] = "full"
    max_file_bytes: int = 8 << 30
    history_seconds: float = 1.5
    history_commits: int = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotReport:
    """What was captured and what was left out; paths as in the manifest."""

    manifest: Manifest
    rules: IgnoreRules
    """What the review ignores, and which names were withheld; decided once, here."""
    withheld: tuple[bytes, ...] = ()
    """Secrets that the agent does not see."""
    heavy: tuple[bytes, ...] = ()
    """Heavy folders left out (untracked or ignored ones only)."""
    excluded: tuple[bytes, ...] = ()
    """What `.clocheignore` and the options left out."""
    tracked_withheld: tuple[bytes, ...] = ()
    """Tracked files among those left out: they bear skip-worktree in the guest's index."""
    history: tuple[bytes, ...] = ()
    """Withheld paths that the git history still shows to the agent."""
    history_cut: bool = False
    """The history was longer than the budget: `history` may lack some."""
    skipped: tuple[tuple[bytes, str], ...] = ()
    """Sockets, FIFOs, devices, files over the limit: path and reason."""
    escaping_links: tuple[bytes, ...] = ()
    """Links whose target is absolute or outside; the agent sees them as they are, dangling."""
    notices: tuple[str, ...] = ()
    """Sentences for the user."""
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    hash_seconds: float = 0.0


def take_snapshot(workspace: Path, dest: Path, options: CaptureOptions) -> SnapshotReport:
    """Capture `workspace` into `dest` (an existing folder): IMAGE, MANIFEST and REPORT.

    Blocks; run it in a thread. Raises WorkspaceRefused, ToolMissing, or SnapshotError when the disk
    is full; whatever was written until then is removed.
    """
    raise NotImplementedError


def load_snapshot(dest: Path) -> SnapshotReport:
    """Read back what `take_snapshot` left in `dest`. Raises StoreDamaged."""
    raise NotImplementedError
