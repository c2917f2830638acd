"""What the tests of capture, git and mirror share."""

from __future__ import annotations

import os
import stat
import subprocess
from typing import TYPE_CHECKING

from blake3 import blake3

from snapshot.capture import CaptureOptions, SnapshotReport, take_snapshot
from snapshot.manifest import Entry

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000

GIT_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "LC_ALL": "C",
}


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run git on the test's own data; give what it printed."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=GIT_ENVIRONMENT,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=60,
        check=False,
    )
    if check and done.returncode:
        raise AssertionError(f"git {arguments}: {done.stderr}")
    return done.stdout


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    """Write files (with their folders) below `root`."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def repository(root: Path, files: dict[str, str | bytes]) -> Path:
    """Make a repository with one commit of `files`."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, files)
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "-m", "first")
    return root


def capture(workspace: Path, place: Path, **options: object) -> SnapshotReport:
    """Take a snapshot of `workspace` into the (new) folder `place`."""
    place.mkdir(parents=True, exist_ok=True)
    return take_snapshot(workspace, place, CaptureOptions(**options))  # type: ignore[arg-type]


def unpacked(place: Path) -> Path:
    """Unpack the image of `place` as the guest would see it."""
    out = place / "unpacked"
    subprocess.run(
        ["unsquashfs", "-q", "-n", "-d", str(out), str(place / "workspace.squashfs")],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )
    return out


def tree_of(root: Path) -> dict[bytes, Entry]:
    """List a real tree the slow and simple way (whole seconds, as squashfs has them)."""
    found: dict[bytes, Entry] = {}
    top = os.fsencode(root)
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, top)] = _entry(path)
    return found


def _entry(path: bytes) -> Entry:
    state = os.lstat(path)
    mode, mtime = stat.S_IMODE(state.st_mode), int(state.st_mtime) * SECOND
    if stat.S_ISLNK(state.st_mode):
        return Entry("link", mode, 0, mtime, "", os.readlink(path))
    if stat.S_ISDIR(state.st_mode):
        return Entry("dir", mode, 0, mtime)
    if stat.S_ISREG(state.st_mode):
        with open(path, "rb") as file:
            data = file.read()
        return Entry("file", mode, len(data), mtime, blake3(data).hexdigest())
    return Entry("special", mode, 0, mtime)
