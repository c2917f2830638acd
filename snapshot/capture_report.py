"""What a capture is asked for and what it tells, on disk as `snapshot.json` beside the manifest."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

from snapshot.errors import StoreDamaged
from snapshot.ignore import IgnoreRules
from snapshot.manifest import Manifest
from snapshot.whole_files import whole_file

if TYPE_CHECKING:
    from pathlib import Path

IMAGE: Final = "workspace.squashfs"
MANIFEST: Final = "manifest.json"
REPORT: Final = "snapshot.json"

SCHEMA: Final = 1
MAX_BYTES: Final = 256 << 20

_PATHS: Final = (
    *("withheld", "heavy", "excluded", "tracked_withheld", "history", "escaping_links"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """How to take a snapshot.

    `own_folders` are Cloche's state and store: a workspace inside one is refused, one inside the
    workspace is left out. `exclude` are gitignore-style patterns of the config and command line.
    `max_file_bytes` bounds single files of the workspace (git's objects are not bounded);
    `alternates` lets the workspace's repository borrow git objects from outside of the workspace;
    `history_seconds` and `history_commits` bound the look for withheld names in git's history.
    """

    own_folders: tuple[Path, ...] = ()
    exclude: tuple[str, ...] = ()
    git: Literal["none", "full"] = "full"
    alternates: bool = False
    max_file_bytes: int = 8 << 30
    history_seconds: float = 1.0
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
    """Heavy folders left out, and ignored files beside tracked ones inside such folders."""
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


def bind_rules(rules: IgnoreRules, manifest: Manifest) -> IgnoreRules:
    """Let rules ask the manifest what git tracks."""

    def tracked(path: bytes) -> bool:
        entry = manifest.get(path)
        return entry is not None and entry.tracked

    def holds_tracked(path: bytes) -> bool:
        return tracked(path) or any(entry.tracked for _, entry in manifest.under(path))

    return IgnoreRules(rules.user, rules.git, rules.withheld, tracked, holds_tracked)


def save_report(dest: Path, report: SnapshotReport) -> None:
    """Write everything of `report` but the manifest, atomically, for its owner alone."""
    value: dict[str, object] = {"snapshot": SCHEMA, "rules": report.rules.to_json()}
    for name in _PATHS:
        value[name] = [os.fsdecode(path) for path in getattr(report, name)]
    value["skipped"] = [[os.fsdecode(path), reason] for path, reason in report.skipped]
    for name in ("history_cut", "notices", "files", "bytes", "seconds", "hash_seconds"):
        value[name] = getattr(report, name)
    with whole_file(dest / REPORT) as file:
        json.dump(value, file, separators=(",", ":"))


def load_snapshot(dest: Path) -> SnapshotReport:
    """Read back what `take_snapshot` left in `dest`. Raises StoreDamaged."""
    try:
        manifest = Manifest.load(dest / MANIFEST)
        with (dest / REPORT).open("rb") as file:
            value = cast("dict[str, object]", json.loads(file.read(MAX_BYTES)))
        if value["snapshot"] != SCHEMA:
            raise ValueError("another schema")
        return _report(value, manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreDamaged(
            f"The snapshot in {dest} cannot be read ({error}).",
            "Remove the session with: cloche rm ID",
        ) from error


def _report(value: dict[str, object], manifest: Manifest) -> SnapshotReport:
    rules = IgnoreRules.from_json(cast("dict[str, object]", value["rules"]))
    paths = {name: tuple(map(os.fsencode, cast("list[str]", value[name]))) for name in _PATHS}
    skipped = cast("list[tuple[str, str]]", value["skipped"])
    return SnapshotReport(
        manifest=manifest,
        rules=bind_rules(rules, manifest),
        withheld=paths["withheld"],
        heavy=paths["heavy"],
        excluded=paths["excluded"],
        tracked_withheld=paths["tracked_withheld"],
        history=paths["history"],
        history_cut=bool(value["history_cut"]),
        skipped=tuple((os.fsencode(path), str(reason)) for path, reason in skipped),
        escaping_links=paths["escaping_links"],
        notices=tuple(map(str, cast("list[object]", value["notices"]))),
        files=int(cast("int", value["files"])),
        bytes=int(cast("int", value["bytes"])),
        seconds=float(cast("float", value["seconds"])),
        hash_seconds=float(cast("float", value["hash_seconds"])),
    )
